"""An artifact as files in a directory, all of them or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gossamer_backend.artifact import Artifact
from gossamer_backend.export.elf import rename_symbol, undefined_symbols
from gossamer_backend.export.header import header_text
from gossamer_backend.export.linking import link_shared
from gossamer_backend.export.manifest import manifest_text
from gossamer_backend.export.names import symbol_for
from gossamer_backend.native import SYMBOL
from gossamer_backend.versions import package_versions
from gossamer_ir.errors import ArgumentError


class Exported(NamedTuple):
    """Where the files are. `library` is None where none could be linked, `no_library` says why."""

    symbol: str
    object: Path
    header: Path
    manifest: Path
    library: Path | None
    no_library: str


def export_artifact(
    artifact: Artifact,
    directory: str | os.PathLike[str],
    *,
    name: str = "",
    versions: Mapping[str, str] | None = None,
) -> Exported:
    """Writes `NAME.o`, `NAME.h`, `NAME.json` and, where this machine has a linker, `libNAME.so`.

    `NAME` is `name`, else `gossamer_` and the name of the kernel's function; it is the symbol of the
    kernel, too. `versions` are those of the packages that made the artifact, for the manifest. Files
    of these names are replaced, each at once and the manifest last.

    Raises `ArgumentError` (`export.name`; `export.directory` where the files cannot be written) and
    `UnsupportedError` (`backend.export`) where the artifact's code is no object file that can be
    exported; nothing was written then.
    """
    symbol = symbol_for(artifact, name)
    code = rename_symbol(artifact.code, SYMBOL, new=symbol)
    requires = undefined_symbols(code)
    texts = {
        "object": (f"{symbol}.o", code),
        "header": (
            f"{symbol}.h",
            header_text(artifact, symbol=symbol, requires=requires).encode(),
        ),
    }
    try:
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".gossamer-export-", dir=folder) as partial:
            files, reason = _with_library(Path(partial), symbol, texts)
            known = versions if versions is not None else package_versions(("gossamer-backend",))
            manifest = manifest_text(
                artifact, symbol=symbol, files=files, requires=requires, versions=known
            )
            files["manifest"] = (f"{symbol}.json", manifest.encode())
            _publish(Path(partial), folder, files)
    except OSError as error:
        raise ArgumentError(
            "export.directory",
            f"The kernel cannot be exported to '{directory}': {error.strerror or error}.",
            hint="Give a directory where these files can be written.",
        ) from error
    return Exported(
        symbol,
        folder / f"{symbol}.o",
        folder / f"{symbol}.h",
        folder / f"{symbol}.json",
        folder / f"lib{symbol}.so" if "library" in files else None,
        reason,
    )


_Files = dict[str, tuple[str, bytes]]


def _with_library(partial: Path, symbol: str, texts: _Files) -> tuple[_Files, str]:
    """The files and the library linked from them, or why there is none."""
    object_file, library = partial / f"{symbol}.o", partial / f"lib{symbol}.so"
    object_file.write_bytes(texts["object"][1])
    linked = link_shared(object_file, library)
    if not linked.is_done:
        return dict(texts), linked.reason
    return {**texts, "library": (library.name, library.read_bytes())}, ""


def _publish(partial: Path, folder: Path, files: _Files) -> None:
    """Moves the files into place; a library that belongs to an earlier export goes."""
    library = folder / f"lib{files['object'][0].removesuffix('.o')}.so"
    for path in (library, *(folder / name for name, _ in files.values())):
        if path.is_dir():
            raise IsADirectoryError(0, f"{path.name} is a directory")
    for name, contents in files.values():
        if not (partial / name).exists():
            (partial / name).write_bytes(contents)
    if "library" not in files:
        library.unlink(missing_ok=True)
    for name, _ in files.values():
        (partial / name).replace(folder / name)
