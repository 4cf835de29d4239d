"""An artifact as files in a directory, all of them or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from gossamer_backend.artifact import Artifact
from gossamer_backend.cache.versions import package_versions
from gossamer_backend.export.header import header_text
from gossamer_backend.export.linking import link_shared
from gossamer_backend.export.manifest import manifest_text, native_entries
from gossamer_backend.export.object_symbols import rename_symbol, undefined_symbols
from gossamer_backend.export.symbol import symbol_for
from gossamer_backend.registry.protocol import ExportParts
from gossamer_backend.registry.validating import ValidatingBackend
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.kernel_abi import KERNEL_SYMBOL


class Exported(msgspec.Struct, frozen=True):
    """The symbol, the path of each file by its role, and why others are missing, by their roles."""

    symbol: str
    files: dict[str, Path]
    missing: dict[str, str]

    @property
    def object(self) -> Path:
        """The object file, of a native kernel."""
        return self.files["object"]

    @property
    def header(self) -> Path:
        """The header for C, of a native kernel."""
        return self.files["header"]

    @property
    def manifest(self) -> Path:
        """The manifest."""
        return self.files["manifest"]

    @property
    def library(self) -> Path | None:
        """The shared library; None if it could not be linked."""
        return self.files.get("library")

    @property
    def no_library(self) -> str | None:
        """The reason why there is no library; None if there is one."""
        return self.missing.get("library")


def export_artifact(
    artifact: Artifact,
    directory: str | os.PathLike[str],
    *,
    name: str | None = None,
    versions: Mapping[str, str] | None = None,
    backend: ValidatingBackend | None = None,
) -> Exported:
    """Write `NAME.o`, `NAME.h`, `NAME.json` and, if this machine has a linker, `libNAME.so`. For code that is
    not an object file, the backend has other files instead of all but `NAME.json`.

    `NAME` is `name`, by default `gossamer_` and the name of the kernel's function; it is also the symbol of
    the kernel. `versions` are those of the packages that made the artifact, for the manifest. Existing files
    are replaced atomically, the manifest last.

    Raises `ArgumentError` (`export.name`; `export.directory` if the files cannot be written) and
    `UnsupportedError` (`backend.export`) if the artifact's code is not an object file that can be
    exported. Nothing is written then.
    """
    symbol = symbol_for(artifact, name)
    parts = None if backend is None else backend.export_parts(artifact, symbol=symbol)
    if parts is None:
        parts = _native_parts(artifact, symbol)
    manifest = partial(
        manifest_text,
        artifact,
        symbol=symbol,
        entries=parts.manifest,
        versions=package_versions(("gossamer-backend",)) if versions is None else versions,
    )
    try:
        return _write_files(Path(directory), symbol, parts, manifest)
    except OSError as error:
        raise ArgumentError(
            "export.directory",
            f"The kernel cannot be exported to '{directory}': {error.strerror or error}.",
            hint="Give a directory where these files can be written.",
        ) from error


def _native_parts(artifact: Artifact, symbol: str) -> ExportParts:
    """Return the object file and the header."""
    code = rename_symbol(artifact.code, KERNEL_SYMBOL, new=symbol)
    requires = undefined_symbols(code)
    header = header_text(artifact, symbol=symbol, requires=requires)
    return ExportParts(
        {"object": (f"{symbol}.o", code), "header": (f"{symbol}.h", header.encode())},
        manifest=native_entries(artifact, requires),
    )


_Files: TypeAlias = dict[str, tuple[str, bytes]]
"""The name and the contents of each file, by its role."""


def _write_files(
    folder: Path, symbol: str, parts: ExportParts, manifest: Callable[..., str]
) -> Exported:
    """Write all files; return their paths, and why others are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    files, missing = dict(parts.files), dict(parts.missing)
    with tempfile.TemporaryDirectory(prefix=".gossamer-export-", dir=folder) as name:
        beside = Path(name)
        if "object" in files:
            files, reason = _with_library(beside, symbol, files)
            missing |= {} if reason is None else {"library": reason}
        text = manifest(files=files).encode()
        files["manifest"] = (f"{symbol}.json", text)
        _move_into_place(beside, folder, files)
    return Exported(symbol, {role: folder / name for role, (name, _) in files.items()}, missing)


def _with_library(beside: Path, symbol: str, files: _Files) -> tuple[_Files, str | None]:
    """Write the object file and link the library; return the files, and why the library is missing."""
    object_file, library = beside / f"{symbol}.o", beside / f"lib{symbol}.so"
    object_file.write_bytes(files["object"][1])
    failure = link_shared(object_file, library)
    if failure is not None:
        return files, failure
    return {**files, "library": (library.name, library.read_bytes())}, None


def _move_into_place(beside: Path, folder: Path, files: _Files) -> None:
    """Move the files into place, and remove a library of an earlier export."""
    library = folder / f"lib{files['manifest'][0].removesuffix('.json')}.so"
    for path in (library, *(folder / name for name, _ in files.values())):
        if path.is_dir():
            raise IsADirectoryError(0, f"{path.name} is a directory")
    for name, contents in files.values():
        if not (beside / name).exists():
            (beside / name).write_bytes(contents)
    if "library" not in files:
        library.unlink(missing_ok=True)
    for name, _ in files.values():
        (beside / name).replace(folder / name)
