"""The lists of formats and of composable formats, and the table of the README.

The folders `descriptions` and `decomposition/library` are the only lists that are kept by hand. The table has
the first lines of the docstrings of the modules that describe formats."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tools import ROOT, with_table

PACKAGE = ROOT / "packages/formats/src/gossamer_formats"
README = ROOT / "packages/formats/README.md"
HEADER = "| format | storage |"
_NAMES = re.compile(r"NAMES = \([^)]*\)\n")
_LITERAL = re.compile(r"Literal\[[^]]*\]")


def files() -> dict[Path, str]:
    """Return the text of each file that lists formats."""
    rows = (f"| `{name}` | {_summary(name)} |" for name in module_names("descriptions"))
    return {
        **dict((_with_names("descriptions"), _with_composable_names())),
        README: with_table(README.read_text(), header=HEADER, rows=rows),
    }


def module_names(folder: str) -> list[str]:
    """Return the names of the modules in a folder of the package, sorted."""
    return sorted(path.stem for path in PACKAGE.glob(f"{folder}/[!_]*.py"))


def _with_names(folder: str) -> tuple[Path, str]:
    """Return the file that lists the modules of a folder, and its text."""
    path = PACKAGE / folder / "__init__.py"
    names = [f'"{name}",' for name in module_names(folder)]
    lines = "".join(f"    {name}\n" for name in names)
    return path, _NAMES.sub(f"NAMES = (\n{lines})\n", path.read_text())


def _with_composable_names() -> tuple[Path, str]:
    """Return the file with the names of composable formats, and its text."""
    path = PACKAGE / "registry/composable_names.py"
    names = ", ".join(f'"{name}"' for name in module_names("decomposition/library"))
    return path, _LITERAL.sub(f"Literal[{names}]", path.read_text())


def _summary(name: str) -> str:
    """Return the first line of the docstring of a module, without its full stop."""
    docstring = ast.get_docstring(ast.parse((PACKAGE / f"descriptions/{name}.py").read_text()))
    return (docstring or "").partition("\n")[0].removesuffix(".")
