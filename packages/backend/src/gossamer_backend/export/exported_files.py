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
from gossamer_backend.export.manifest import manifest_text
from gossamer_backend.export.object_symbols import rename_symbol, undefined_symbols
from gossamer_backend.export.symbol import symbol_for
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.kernel_abi import KERNEL_SYMBOL


class Exported(msgspec.Struct, frozen=True):
    """Paths of the files. `library` is None if it could not be linked; `no_library` is the reason, None if
    there is a library."""

    symbol: str
    object: Path
    header: Path
    manifest: Path
    library: Path | None
    no_library: str | None


def export_artifact(
    artifact: Artifact,
    directory: str | os.PathLike[str],
    *,
    name: str | None = None,
    versions: Mapping[str, str] | None = None,
) -> Exported:
    """Write `NAME.o`, `NAME.h`, `NAME.json` and, if this machine has a linker, `libNAME.so`.

    `NAME` is `name`, by default `gossamer_` and the name of the kernel's function; it is also the symbol of
    the kernel. `versions` are those of the packages that made the artifact, for the manifest. Existing files
    are replaced atomically, the manifest last.

    Raises `ArgumentError` (`export.name`; `export.directory` if the files cannot be written) and
    `UnsupportedError` (`backend.export`) if the artifact's code is not an object file that can be
    exported. Nothing is written then.
    """
    symbol = symbol_for(artifact, name)
    code = rename_symbol(artifact.code, KERNEL_SYMBOL, new=symbol)
    requires = undefined_symbols(code)
    header = header_text(artifact, symbol=symbol, requires=requires)
    files = {"object": (f"{symbol}.o", code), "header": (f"{symbol}.h", header.encode())}
    manifest = partial(
        manifest_text,
        artifact,
        symbol=symbol,
        requires=requires,
        versions=package_versions(("gossamer-backend",)) if versions is None else versions,
    )
    try:
        reason = _write_files(Path(directory), symbol, files, manifest)
    except OSError as error:
        raise ArgumentError(
            "export.directory",
            f"The kernel cannot be exported to '{directory}': {error.strerror or error}.",
            hint="Give a directory where these files can be written.",
        ) from error
    return _exported_paths(Path(directory), symbol, reason)


def _exported_paths(folder: Path, symbol: str, no_library: str | None) -> Exported:
    return Exported(
        symbol,
        folder / f"{symbol}.o",
        folder / f"{symbol}.h",
        folder / f"{symbol}.json",
        folder / f"lib{symbol}.so" if no_library is None else None,
        no_library,
    )


_Files: TypeAlias = dict[str, tuple[str, bytes]]
"""The name and the contents of each file, by its role."""


def _write_files(
    folder: Path, symbol: str, files: _Files, manifest: Callable[..., str]
) -> str | None:
    """Write all files; return why the library is missing, or None if it was linked."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".gossamer-export-", dir=folder) as name:
        beside = Path(name)
        linked, reason = _with_library(beside, symbol, files)
        text = manifest(files=linked).encode()
        _move_into_place(beside, folder, {**linked, "manifest": (f"{symbol}.json", text)})
    return reason


def _with_library(beside: Path, symbol: str, files: _Files) -> tuple[_Files, str | None]:
    """Write the files and link the library; return the paths, and why the library is missing."""
    object_file, library = beside / f"{symbol}.o", beside / f"lib{symbol}.so"
    object_file.write_bytes(files["object"][1])
    failure = link_shared(object_file, library)
    if failure is not None:
        return files, failure
    return {**files, "library": (library.name, library.read_bytes())}, None


def _move_into_place(beside: Path, folder: Path, files: _Files) -> None:
    """Move the files into place, and remove a library of an earlier export."""
    library = folder / f"lib{files['object'][0].removesuffix('.o')}.so"
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
