"""The imports in `gossamer_lower/passes.py` and `gossamer_lower/__init__.py`.

The tuple `ORDERED_PASSES` of `passes.py` is the only list of passes that is kept by hand; the file of a pass
has its name. The imports are written out, because type checkers, the checks of imports and the documentation
site read them. The package is not imported here: it cannot be while the import of a new pass is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools import ROOT

PACKAGE = ROOT / "packages/lower/src/gossamer_lower"
_IMPORTS = re.compile(r"(?:from gossamer_\w+(?:\.\w+)* import .*\n)+")
_OF_PASS = re.compile(r"from gossamer_lower\.\w+\.\w+ import ")
_COMPOSED = {
    "bounds_check_flat": "gossamer_lower.bounds_check_flat",
    "DEVICE_PASSES, lower_to_device": "gossamer_lower.lower_to_device",
    "FLAT_PASSES, lower_to_flat": "gossamer_lower.lower_to_flat",
}
"""The exports of the package besides the passes of the list, each with its module."""


def files() -> dict[Path, str]:
    """Return the text of `passes.py` and of the package's `__init__.py`."""
    passes, package = PACKAGE / "passes.py", PACKAGE / "__init__.py"
    homes = {name: _home(name) for name in ordered_names()}
    imported = _IMPORTS.search(passes.read_text())
    assert imported is not None
    # Every pass is in a folder; what is imported from elsewhere is not a pass of the list.
    kept = [line for line in imported[0].splitlines(keepends=True) if not _OF_PASS.match(line)]
    exports = {**homes, **_COMPOSED}
    return {
        passes: _IMPORTS.sub(_sort_imports([*kept, *_imports(homes)]), passes.read_text(), count=1),
        package: _IMPORTS.sub(_sort_imports(_imports(exports)), package.read_text(), count=1),
    }


def ordered_names() -> list[str]:
    """Return the names in `ORDERED_PASSES`, without importing it."""
    for node in ast.parse((PACKAGE / "passes.py").read_text()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "ORDERED_PASSES":
            assert isinstance(node.value, ast.Tuple)
            return [ast.unparse(item) for item in node.value.elts]
    raise LookupError("passes.py has no tuple ORDERED_PASSES")


def _home(name: str) -> str:
    """Return the module of a pass: the file with its name, in one of the folders of the package."""
    (path,) = PACKAGE.glob(f"*/{name}.py")
    return f"gossamer_lower.{path.parent.name}.{name}"


def _imports(homes: Mapping[str, str]) -> list[str]:
    return [f"from {module} import {names}\n" for names, module in homes.items()]


def _sort_imports(lines: Iterable[str]) -> str:
    """Return imports in the order in which `ruff` sorts them."""
    return "".join(sorted(lines, key=lambda line: line.split()[1]))
