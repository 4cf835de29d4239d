"""The exports of packages: `__all__` and `_HOMES` in their `__init__.py`, `internal_api.py` and
`plugin_api.py`.

The imports are the only list that is kept by hand, or is written by the generators `operators`, `primitives`
and `pass_imports`. Those for type checkers (`if TYPE_CHECKING`) are of names that `lazy_exports` imports when
they are first used; `_HOMES` has their modules. Both lists are written out, because type checkers and the
documentation site read them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from tools import ROOT

_EXPORTS = re.compile(r"__all__ = \[.*?\]\n", re.DOTALL)
_HOMES = re.compile(r"_HOMES = \{.*?\}\n", re.DOTALL)
_LAZY = "gossamer_support.lazy_exports"


def files() -> dict[Path, str]:
    """Return the text of each module that exports names of others."""
    interfaces = ("__init__", "internal_api", "plugin_api")
    paths = [path for name in interfaces for path in ROOT.glob(f"packages/*/src/*/{name}.py")]
    inner = ROOT / "packages/ir/src/gossamer_ir/script/__init__.py"
    return {path: with_exports(path.read_text()) for path in sorted((*paths, inner))}


def with_exports(text: str) -> str:
    """Return the text of an `__init__.py` with the exports that follow from its imports.

    >>> text = "from math import pi, e; __all__ = []".replace("; ", chr(10)) + chr(10)
    >>> print(with_exports(text), end="")
    from math import pi, e
    __all__ = [
        "e",
        "pi",
    ]
    """
    homes = dict(sorted(lazy_names(text).items()))
    names = [*(homes or _imported_names(ast.parse(text).body)), *_assigned_names(text)]
    listed = "".join(f'    "{name}",\n' for name in sorted(names))
    modules = "".join(f'    "{name}": "{module}",\n' for name, module in homes.items())
    text = _EXPORTS.sub(f"__all__ = [\n{listed}]\n", text)
    return _HOMES.sub(f"_HOMES = {{\n{modules}}}\n", text)


def lazy_names(text: str) -> dict[str, str]:
    """Return the module of each name that a text imports for type checkers only."""
    return {
        name: module
        for node in ast.parse(text).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for name, module in _imported_names(node.body).items()
    }


def _imported_names(body: Iterable[ast.stmt]) -> dict[str, str]:
    return {
        alias.name: str(node.module)
        for node in body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("gossamer", "math"))
        for alias in node.names
        if node.module != _LAZY
    }


def _assigned_names(text: str) -> list[str]:
    """Return the version, if the package has it."""
    return ["__version__"] if "\n__version__ = " in text else []
