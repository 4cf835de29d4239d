"""Exports on first access: no name is that of a submodule, whose import would replace it."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

from gossamer_support.lazy_exports import lazy_exports

PACKAGES = Path(__file__).parents[2]
LAZY = sorted(
    path.parent.name
    for path in PACKAGES.glob("*/src/*/__init__.py")
    if "lazy_exports(__name__" in path.read_text()
)
"""The packages of this repository whose exports are imported on first access."""


def test_packages_with_such_exports_are_seen():
    assert {"gossamer", "gossamer_ir"} <= {*LAZY}


@pytest.mark.parametrize("name", LAZY)
def test_no_name_is_that_of_a_submodule(name):
    """Importing a submodule makes it an attribute of the package, and so hides what is exported lazily."""
    package = pytest.importorskip(name)
    exported = {*package.__all__}
    submodules = {info.name for info in pkgutil.iter_modules(package.__path__)}
    assert exported & submodules == set()
    for each in sorted(exported):
        assert getattr(importlib.import_module(name), each) is not None


def test_names_are_those_of_the_package_and_its_exports():
    get, names = lazy_exports("gossamer_support", {"amount": "gossamer_support.message_texts"})
    assert {"amount", "__doc__"} <= {*names()}
    assert "message_texts" not in names()
    with pytest.raises(AttributeError, match="no attribute 'count'"):
        get("count")
