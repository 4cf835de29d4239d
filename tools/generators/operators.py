"""The imports of operators in `gossamer/__init__.py`, and those of oracles in `gossamer_testkit/__init__.py`.

`NAMES` of `gossamer.operators` is the only list of operators that is kept by hand. The public functions of
`oracles.py` are the only list of oracles. The exports follow from the imports (generator `exports`).
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


def files() -> dict[Path, str]:
    """Return the text of the `__init__.py` of both packages."""
    return {**_package_of_operators(), **_package_of_oracles()}


def _package_of_operators() -> dict[Path, str]:
    path = PACKAGE / "__init__.py"
    imports = [
        f"    from gossamer.operators.{name} import {name}\n" for name in public_operator_names()
    ]
    text = _IMPORTS.sub("".join(sorted(imports)), path.read_text())
    return {path: text}


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
    return {path: text}


def public_operator_names() -> tuple[str, ...]:
    """Return `NAMES` of `gossamer.operators`, without importing it."""
    tree = ast.parse((PACKAGE / "operators" / "by_name.py").read_text())
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NAMES"
    ]
    names: tuple[str, ...] = ast.literal_eval(values[0])
    return names
