"""The lists of formats: `NAMES` in `gossamer_formats.descriptions`, and the table of the package's README.

The folder `descriptions` is the only list that is kept by hand. The table has the first lines of the
docstrings of its modules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tools import ROOT, with_table

PACKAGE = ROOT / "packages/formats/src/gossamer_formats"
README = ROOT / "packages/formats/README.md"
HEADER = "| format | storage |"
_NAMES = re.compile(r"NAMES = \([^)]*\)\n")


def files() -> dict[Path, str]:
    """Return the text of each file that lists formats."""
    names = format_names()
    folder = PACKAGE / "descriptions/__init__.py"
    listed = "".join(f'    "{name}",\n' for name in names)
    rows = (f"| `{name}` | {_summary(name)} |" for name in names)
    return {
        folder: _NAMES.sub(f"NAMES = (\n{listed})\n", folder.read_text()),
        README: with_table(README.read_text(), header=HEADER, rows=rows),
    }


def format_names() -> list[str]:
    """Return the names of the modules in the folder of descriptions, sorted."""
    return sorted(path.stem for path in PACKAGE.glob("descriptions/[!_]*.py"))


def _summary(name: str) -> str:
    """Return the first line of the docstring of a module, without its full stop."""
    docstring = ast.get_docstring(ast.parse((PACKAGE / f"descriptions/{name}.py").read_text()))
    return (docstring or "").partition("\n")[0].removesuffix(".")
