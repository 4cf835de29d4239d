"""The lists of operators and of other exports in `gossamer/__init__.py`, and those of oracles in
`gossamer_testkit/__init__.py`.

`NAMES` of `gossamer.operators` is the only list of operators that is kept by hand. From it follow the imports
of operators for type checkers; from all imports for type checkers follow `__all__` and `_HOMES`. They are
written out, because type checkers and the documentation site read them, and nothing is imported at run time
until it is used.

The public functions of `oracles.py` are the only list of oracles that is kept by hand.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tools import ROOT

PACKAGE = ROOT / "packages/gossamer/src/gossamer"
TESTKIT = ROOT / "packages/testkit/src/gossamer_testkit"
_ORACLES = re.compile(r"(from gossamer_testkit\.matrices\.oracles import \().*?(\n\))", re.DOTALL)
_IMPORTS = re.compile(r"(?:    from gossamer\.operators\.\w+ import \w+\n)+")
_EXPORTS = re.compile(r"__all__ = \[.*?\]\n", re.DOTALL)
_HOMES = re.compile(r"_HOMES = \{.*?\}\n", re.DOTALL)


def files() -> dict[Path, str]:
    """Return the text of the `__init__.py` of both packages."""
    return {**_package_of_operators(), **_package_of_oracles()}


def _package_of_operators() -> dict[Path, str]:
    path = PACKAGE / "__init__.py"
    imports = [f"    from gossamer.operators.{name} import {name}\n" for name in operator_names()]
    text = _IMPORTS.sub("".join(sorted(imports)), path.read_text())
    homes = dict(sorted(imported_names(text).items()))
    exports = "".join(f'    "{name}",\n' for name in sorted([*homes, "__version__"]))
    modules = "".join(f'    "{name}": "{module}",\n' for name, module in homes.items())
    text = _EXPORTS.sub(f"__all__ = [\n{exports}]\n", text)
    return {path: _HOMES.sub(f"_HOMES = {{\n{modules}}}\n", text)}


def _package_of_oracles() -> dict[Path, str]:
    path = TESTKIT / "__init__.py"
    tree = ast.parse((TESTKIT / "matrices/oracles.py").read_text())
    oracles = sorted(
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    )
    listed = "".join(f"\n    {name}," for name in oracles)
    text = _ORACLES.sub(rf"\1{listed}\2", path.read_text())
    names = sorted(
        alias.name
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )
    exports = "".join(f'    "{name}",\n' for name in names)
    return {path: _EXPORTS.sub(f"__all__ = [\n{exports}]\n", text)}


def operator_names() -> tuple[str, ...]:
    """Return `NAMES` of `gossamer.operators`, without importing it."""
    tree = ast.parse((PACKAGE / "operators" / "__init__.py").read_text())
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NAMES"
    ]
    names: tuple[str, ...] = ast.literal_eval(values[0])
    return names


def imported_names(text: str) -> dict[str, str]:
    """Return the module of each name that is imported for type checkers only."""
    (guarded,) = (
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        alias.name: str(node.module)
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
