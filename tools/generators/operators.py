"""The imports of operators in `gossamer/__init__.py`, their entry points for CSR and their table in
`docs/plugins.md`, and the imports of oracles in `gossamer_testkit/__init__.py`.

`NAMES` and `N_M_NAMES` of `gossamer.operators` are the only lists of operators that are kept by hand. The
public functions of `oracles.py` are the only list of oracles. The exports follow from the imports (generator
`exports`).
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tools import ROOT, with_table

PACKAGE = ROOT / "packages/gossamer/src/gossamer"
TESTKIT = ROOT / "packages/testkit/src/gossamer_testkit"
_ORACLES = re.compile(r"(from gossamer_testkit\.matrices\.oracles import \().*?(\n\))", re.DOTALL)
_IMPORTS = re.compile(r"(?:    from gossamer\.operators\.\w+ import \w+\n)+")
_ENTRY_POINTS = re.compile(r'(?:"csr\.\w+" = "gossamer\.operators\.\w+:\w+"\n)+')
HEADER = "| operator | is called by | computes |"
OF_TENSORS = {
    "matmul": (
        "`tensor @ dense`",
        "the product with a dense matrix or vector; without it, `@` calls `spmm` or `spmv`",
    ),
    "rmatmul": (
        "`dense @ tensor`",
        "the product of a dense matrix or vector with the tensor",
    ),
}
"""The operators of Python, which `products.py` computes: the call, and what it computes."""


def files() -> dict[Path, str]:
    """Return the text of each file that lists the operators or the oracles."""
    return {
        **_package_of_operators(),
        **_entry_points(),
        **_table_for_plugins(),
        **_package_of_oracles(),
    }


def _package_of_operators() -> dict[Path, str]:
    path = PACKAGE / "__init__.py"
    imports = [
        f"    from gossamer.operators.{name} import {name}\n" for name in all_operator_names()
    ]
    text = _IMPORTS.sub("".join(sorted(imports)), path.read_text())
    return {path: text}


def _entry_points() -> dict[Path, str]:
    path = ROOT / "packages/gossamer/pyproject.toml"
    homes = dict.fromkeys(OF_TENSORS, "products") | {name: name for name in public_operator_names()}
    lines = (f'"csr.{name}" = "gossamer.operators.{home}:{name}"\n' for name, home in homes.items())
    return {path: _ENTRY_POINTS.sub("".join(lines), path.read_text())}


def _table_for_plugins() -> dict[Path, str]:
    """Return the page of plugins with a row for each operator: the first line of its file says what it
    computes."""
    path = ROOT / "docs/plugins.md"
    rows = [f"| `{name}` | {call} | {what} |" for name, (call, what) in OF_TENSORS.items()]
    for name in public_operator_names():
        text = (PACKAGE / "operators" / f"{name}.py").read_text()
        summary = (ast.get_docstring(ast.parse(text)) or name).splitlines()[0].rstrip(".")
        rows.append(f"| `{name}` | `gossamer.{name}` | {summary[0].lower()}{summary[1:]} |")
    return {path: with_table(path.read_text(), header=HEADER, rows=rows)}


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
    """Return the operators of any sparse matrix: those that distributions can register for formats."""
    return _operator_names("NAMES")


def all_operator_names() -> tuple[str, ...]:
    """Return the operators that `gossamer` exports."""
    return (*public_operator_names(), *_operator_names("N_M_NAMES"))


def _operator_names(listed: str) -> tuple[str, ...]:
    """Return a list of `gossamer.operators`, without importing it."""
    tree = ast.parse((PACKAGE / "operators" / "by_name.py").read_text())
    values = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == listed
    ]
    names: tuple[str, ...] = ast.literal_eval(values[0])
    return names
