"""The imports in the lists of passes of `gossamer_lower`, and those in its `__init__.py`.

The tuples in `LISTS` are the only lists of passes that are kept by hand; the file of a pass has its name. The
imports are written out, because type checkers, the checks of imports and the documentation site read them.
The package is not imported here: it cannot be while the import of a new pass is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools import ROOT

PACKAGE = ROOT / "packages/lower/src/gossamer_lower"
LISTS = {
    "passes.py": "ORDERED_PASSES",
    "pipelines/flat_passes.py": "FLAT_PASSES",
    "pipelines/device_passes.py": "DEVICE_PASSES",
}
"""The files that list passes, each with its tuple. The first one includes the others."""
_IMPORTS = re.compile(r"(?:^ *from gossamer_lower(?:\.\w+)+ import .*\n)+", re.MULTILINE)
_OF_PASS = re.compile(r"from gossamer_lower\.(\w+)\.(\w+) import \2$")
_COMPOSED = {
    "bounds_check_flat": "gossamer_lower.pipelines.bounds_check_flat",
    "lower_to_device": "gossamer_lower.pipelines.lower_to_device",
    "lower_to_flat": "gossamer_lower.pipelines.lower_to_flat",
}
_EXPORTED_LISTS = {
    "DEVICE_PASSES": "gossamer_lower.pipelines.device_passes",
    "FLAT_PASSES": "gossamer_lower.pipelines.flat_passes",
}


def files() -> dict[Path, str]:
    """Return the text of each list of passes and of the package's `__init__.py`."""
    package = PACKAGE / "__init__.py"
    names = [name for file in LISTS for name in listed_names(file)]
    exports = {**{name: _home(name) for name in names}, **_COMPOSED, **_EXPORTED_LISTS}
    lists = {PACKAGE / file: _with_imports(file) for file in LISTS}
    lines = _sort_imports(f"    {line}" for line in _imports(exports))
    return {**lists, package: _IMPORTS.sub(lines, package.read_text(), count=1)}


def listed_names(file: str) -> list[str]:
    """Return the names in the tuple of a list, without importing it."""
    for node in ast.parse((PACKAGE / file).read_text()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == LISTS[file]:
            assert isinstance(node.value, ast.Tuple)
            return [item.id for item in node.value.elts if isinstance(item, ast.Name)]
    raise LookupError(f"{file} has no tuple {LISTS[file]}")


def _with_imports(file: str) -> str:
    """Return the text of a list with the imports of its passes; it keeps its other imports."""
    text = (PACKAGE / file).read_text()
    imported = _IMPORTS.search(text)
    lines = imported[0].splitlines(keepends=True) if imported else []
    kept = [line for line in lines if not _OF_PASS.match(line.strip())]
    homes = {name: _home(name) for name in listed_names(file)}
    return _IMPORTS.sub(_sort_imports([*kept, *_imports(homes)]), text, count=1)


def _home(name: str) -> str:
    """Return the module of a pass: the file with its name, in one of the folders of the package."""
    (path,) = PACKAGE.glob(f"*/{name}.py")
    return f"gossamer_lower.{path.parent.name}.{name}"


def _imports(homes: Mapping[str, str]) -> list[str]:
    return [f"from {module} import {names}\n" for names, module in homes.items()]


def _sort_imports(lines: Iterable[str]) -> str:
    """Return imports in the order in which `ruff` sorts them."""
    return "".join(sorted(lines, key=lambda line: line.split()[1]))
