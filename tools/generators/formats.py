"""The lists of formats in `gossamer_formats`.

The folder `descriptions` is the only list that is kept by hand: a format is a module with a function of its
own name. From the folder follow `DESCRIPTIONS` and the exports of the folder and of the package, and from the
docstrings of its modules the table of the README. They are written out, because type checkers and the
documentation site read them. The package is not imported here: it cannot be while an export is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from tools import ROOT, with_table

PACKAGE = ROOT / "packages/formats/src/gossamer_formats"
README = ROOT / "packages/formats/README.md"
HEADER = "| format | storage |"
_IMPORTS = re.compile(r"(?:from gossamer_formats\.descriptions\.\w+ import \w+\n)+")
_TABLE = re.compile(r"(?<== )\{[^}]*\}\n")
_PACKAGE_IMPORT = re.compile(r"from gossamer_formats\.descriptions import \([^)]*\)\n")
_EXPORTS = re.compile(r"__all__ = \[.*?\]\n", re.DOTALL)


def files() -> dict[Path, str]:
    """Return the text of each file that lists formats."""
    names = format_names()
    folder, package = PACKAGE / "descriptions/__init__.py", PACKAGE / "__init__.py"
    imports = "".join(
        f"from gossamer_formats.descriptions.{name} import {name}\n" for name in names
    )
    entries = "".join(f'    "{name}": {name},\n' for name in names)
    listing = _TABLE.sub(f"{{\n{entries}}}\n", _IMPORTS.sub(imports, folder.read_text()))
    exported = "".join(f"    {name},\n" for name in ["DESCRIPTIONS", *names])
    importing = _PACKAGE_IMPORT.sub(
        f"from gossamer_formats.descriptions import (\n{exported})\n", package.read_text()
    )
    rows = (f"| `{name}` | {_summary(name)} |" for name in names)
    return {
        folder: _EXPORTS.sub(_exports(["DESCRIPTIONS", *names]), listing),
        package: _EXPORTS.sub(_exports(_imported_names(importing)), importing),
        README: with_table(README.read_text(), header=HEADER, rows=rows),
    }


def format_names() -> list[str]:
    """Return the names of the modules in the folder of descriptions, sorted."""
    return sorted(path.stem for path in PACKAGE.glob("descriptions/[!_]*.py"))


def _summary(name: str) -> str:
    """Return the first line of the docstring of a module, without its full stop."""
    docstring = ast.get_docstring(ast.parse((PACKAGE / f"descriptions/{name}.py").read_text()))
    return (docstring or "").partition("\n")[0].removesuffix(".")


def _imported_names(text: str) -> list[str]:
    return [
        alias.name
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


def _exports(names: Sequence[str]) -> str:
    listed = "".join(f'    "{name}",\n' for name in sorted(names))
    return f"__all__ = [\n{listed}]\n"
