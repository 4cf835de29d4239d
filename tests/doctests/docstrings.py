"""Runs the examples of the docstrings of a package, for the tests of each distribution."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any


def modules_with_examples(package: ModuleType) -> list[str]:
    """Return the names of the modules of a package that have examples."""
    infos = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [info.name for info in infos if _has_examples(info.name)]


def run_docstrings(name: str, **names: Any) -> int:
    """Return the number of examples of a module that were run; `names` are known to all of them. Raise
    `AssertionError` if there is none, or if a result differs."""
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS, extraglobs=names)
    assert result.attempted > 0
    assert result.failed == 0
    return result.attempted


def _has_examples(name: str) -> bool:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return ">>> " in Path(spec.origin).read_text(encoding="utf-8")
