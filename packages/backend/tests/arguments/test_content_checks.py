"""Checks of the contents of arrays: which arrays are read, when, and by whom."""

import numpy as np
import pytest
from array_exporters import Exporter

from gossamer_backend.arguments.content_checks import ContentChecker
from gossamer_backend.arguments.device import Device
from gossamer_backend.arguments.memory import HOST_MEMORY
from gossamer_backend.arguments.view_of import view_of
from gossamer_ir.core.build import index, index_var
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, ScalarParam, Signature
from gossamer_ir.nodes import InRange, Monotone, Relation, SortedSegments

N = index_var("n")
P_FACTS = (InRange("P", index(0), N),)
Q_FACTS = (Monotone("Q"),)


def signature(*facts_by_name):
    buffers = tuple(
        BufferParam(name.lower(), name, "int32", (N,), is_read=True, is_written=False, facts=facts)
        for name, facts in facts_by_name
    )
    order = (*(param.name for param in buffers), "n")
    return Signature("f", buffers, (ScalarParam("n", "int64"),), order)


SIGNATURE = signature(("P", P_FACTS), ("Q", Q_FACTS), ("X", ()))
ARRAYS = {"P": [0, 1, 2], "Q": [1, 1, 5], "X": [7, -7, 0]}


def views_of(arrays):
    return {name: view_of(np.array(array, np.int32), name=name) for name, array in arrays.items()}


class MemoryElsewhere:
    """Memory whose arrays are copied to the host; it notes what it is asked for."""

    device = Device(2, 0)

    def __init__(self):
        self.calls = []

    def wait(self, stream):
        self.calls.append(("wait", stream))

    def to_host(self, view):
        self.calls.append(("copy", view.shape))
        return view.array.array


def require(checker, arrays, *, verified=(), stream=None):
    checker.require_facts({"n": 3}, views_of(arrays), verified=verified, stream=stream)


def test_facts_that_hold_are_accepted():
    require(ContentChecker(SIGNATURE, HOST_MEMORY), ARRAYS)


@pytest.mark.parametrize(
    ("name", "array", "code"),
    [("P", [0, 3, 2], "kernel.range"), ("Q", [2, 1, 5], "kernel.monotone")],
)
def test_an_error_names_the_parameter_and_the_element(name, array, code):
    with pytest.raises(ArgumentError, match=rf"1\b.*'{name.lower()}'") as caught:
        require(ContentChecker(SIGNATURE, HOST_MEMORY), ARRAYS | {name: array})
    assert caught.value.code == code


def test_verified_parameters_are_not_checked():
    checker = ContentChecker(SIGNATURE, HOST_MEMORY)
    wrong = ARRAYS | {"Q": [2, 1, 5]}
    require(checker, wrong, verified=("q",))
    with pytest.raises(ArgumentError):
        require(checker, wrong, verified=("p",))


def test_a_relation_is_checked_although_one_side_was_verified():
    facts = (SortedSegments("P", None, unique=True),)
    related = (SortedSegments("Q", None, unique=True), Relation("subset", "Q", "P"))
    checker = ContentChecker(signature(("P", facts), ("Q", related)), HOST_MEMORY)
    require(checker, {"P": [0, 1, 2], "Q": [0, 1, 2]})
    with pytest.raises(ArgumentError):
        require(checker, {"P": [0, 1, 2], "Q": [0, 1, 3]}, verified=("q",))


def test_the_fast_check_decides_alone_if_all_facts_hold():
    checker = ContentChecker(SIGNATURE, HOST_MEMORY)
    seen = []

    def accepts(facts, scalars, arrays):
        seen.append((facts, dict(scalars), {name: [*array] for name, array in arrays.items()}))
        return True

    checker.fact_checker = accepts
    require(checker, ARRAYS | {"Q": [2, 1, 5]})
    # Only arrays with facts are read.
    arrays = {"P": [0, 1, 2], "Q": [2, 1, 5]}
    assert seen == [((*P_FACTS, *Q_FACTS), {"n": 3}, arrays)]


def test_numpy_checks_again_what_the_fast_check_does_not_accept():
    checker = ContentChecker(SIGNATURE, HOST_MEMORY)
    checker.fact_checker = lambda facts, scalars, arrays: False
    require(checker, ARRAYS)
    with pytest.raises(ArgumentError):
        require(checker, ARRAYS | {"Q": [2, 1, 5]})


def test_arrays_of_a_device_are_copied_only_if_the_fast_check_fails():
    memory = MemoryElsewhere()
    checker = ContentChecker(SIGNATURE, memory)
    views = {
        name: view_of(Exporter(np.array(array, np.int32), device=(2, 0)), name=name)
        for name, array in ARRAYS.items()
    }
    checker.fact_checker = lambda facts, scalars, arrays: arrays["P"] is views["P"]
    checker.require_facts({"n": 3}, views, verified=(), stream=5)
    assert memory.calls == [("wait", 5)]
    checker.fact_checker = None
    checker.require_facts({"n": 3}, views, verified=(), stream=6)
    assert memory.calls[1:] == [("wait", 6), ("copy", (3,)), ("copy", (3,))]


def test_a_buffer_without_facts_needs_no_synchronization():
    memory = MemoryElsewhere()
    checker = ContentChecker(signature(("X", ())), memory)
    checker.require_facts({"n": 3}, {}, verified=(), stream=5)
    ContentChecker(SIGNATURE, memory).require_facts({}, {}, verified=("p", "q"), stream=5)
    assert memory.calls == []
