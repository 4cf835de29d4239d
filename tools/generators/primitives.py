"""The lists of primitives in `gossamer_schedule`.

The folder `primitives` is the only list that is kept by hand: a primitive is a module with a function
of its own name under `@primitive`. From the folder follow the imports and the methods of
`trace/registry.py`, and the imports and `__all__` of the package. They are written out, not computed when
the package is imported, so that type checkers and the documentation site see each of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools import ROOT

PACKAGE = ROOT / "packages/schedule/src/gossamer_schedule"
_IMPORTS = re.compile(r"(?:from gossamer_schedule\.primitives\..*\n)+")
_METHODS = re.compile(r"(?:    \w+ = fluent\(\w+\)\n)+")
_EXPORTS = re.compile(r"__all__ = \[.*?\]\n", re.DOTALL)


def primitives() -> list[tuple[str, str]]:
    """The module and the name of each primitive, in the order of the modules."""
    return sorted(_primitives())


def _primitives() -> Iterator[tuple[str, str]]:
    for path in PACKAGE.glob("primitives/*/*.py"):
        if re.search(rf"\n@primitive\(.*\)\ndef {path.stem}\(", path.read_text()):
            yield f"gossamer_schedule.primitives.{path.parent.name}.{path.stem}", path.stem


def files() -> dict[Path, str]:
    """Return the text of each file that lists primitives."""
    found = primitives()
    imports = "".join(f"from {module} import {name}\n" for module, name in found)
    methods = "".join(
        f"    {name} = fluent({name})\n" for name in sorted(name for _, name in found)
    )
    registry, exports = PACKAGE / "trace" / "registry.py", PACKAGE / "__init__.py"
    package = _IMPORTS.sub(imports, exports.read_text())
    head, _, _ = package.partition("__all__ = ")
    return {
        registry: _METHODS.sub(methods, _IMPORTS.sub(imports, registry.read_text())),
        exports: _EXPORTS.sub(_listed(_imported(head)), package),
    }


def _imported(text: str) -> list[str]:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return [found.name for node in nodes for found in node.names]


def _listed(names: Sequence[str]) -> str:
    """`__all__` with these names: constants and classes first, as `ruff` sorts imports."""
    ordered = sorted(names, key=lambda name: (not name.isupper(), name))
    return "".join(["__all__ = [\n", *(f'    "{name}",\n' for name in ordered), "]\n"])
