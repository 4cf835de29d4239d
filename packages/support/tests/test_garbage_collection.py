"""Objects that an import makes while garbage collection is paused are not visited by the next collections."""

import gc
import sys
from types import ModuleType

import pytest

from gossamer_support.garbage_collection import FEW_MODULES, pause_collection


class Made:
    """An object that garbage collection visits."""

    def __init__(self) -> None:
        self.own = [self]


@pytest.fixture(autouse=True)
def nothing_frozen():
    """The run of all tests has frozen what it collected."""
    was_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    yield
    if was_frozen:
        gc.freeze()


@pytest.fixture
def imported(monkeypatch):
    def add(count: int = FEW_MODULES + 1) -> None:
        for number in range(count):
            name = f"module_{number}_of_this_test"
            monkeypatch.setitem(sys.modules, name, ModuleType(name))

    return add


def is_old(made: Made) -> bool:
    return any(each is made for each in gc.get_objects(generation=2))


def test_the_outermost_pause_resumes_collection():
    with pause_collection():
        assert not gc.isenabled()
        with pause_collection():
            assert not gc.isenabled()
    assert gc.isenabled()


def test_objects_are_old_after_an_import(imported):
    with pause_collection():
        made = Made()
        imported()
    assert is_old(made)


@pytest.mark.parametrize("count", [0, FEW_MODULES])
def test_objects_stay_young_with_few_imports(count, imported):
    with pause_collection():
        made = Made()
        imported(count)
    assert not is_old(made)


def test_what_the_program_has_frozen_stays_frozen(imported):
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with pause_collection():
            made = Made()
            imported()
        # Some frozen objects may have been deleted in between.
        assert 0 < gc.get_freeze_count() <= frozen
        assert not is_old(made)
    finally:
        gc.unfreeze()
