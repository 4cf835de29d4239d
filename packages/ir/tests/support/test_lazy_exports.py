"""Exports on first access: no name is that of a submodule, whose import would replace it."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

LAZY = (
    "gossamer",
    "gossamer_backend",
    "gossamer_formats",
    "gossamer_ir",
    "gossamer_schedule",
    "gossamer_tune",
)


@pytest.mark.parametrize("name", LAZY)
def test_no_name_is_that_of_a_submodule(name):
    """Importing a submodule makes it an attribute of the package, and so hides what is exported lazily."""
    package = pytest.importorskip(name)
    exported = {*getattr(package, "__all__", ())} if "__getattr__" in vars(package) else set()
    submodules = {info.name for info in pkgutil.iter_modules(package.__path__)}
    assert exported & submodules == set()
    for each in sorted(exported):
        assert getattr(importlib.import_module(name), each) is not None
