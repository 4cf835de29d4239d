"""Python's garbage collection is paused while a kernel is built, and only then."""

from __future__ import annotations

import gc

import pytest

import gossamer as gs
from gossamer.compilation import build_kernels
from gossamer_ir.errors import ArgumentError

SCRIPT = """
@T.prim_func
def shifted(x: T.handle, n: T.int64):
    X = T.match_buffer(x, (n,), "float32")
    for i in T.serial(n):
        X[i] = X[i] + 17.25
"""


@pytest.fixture
def states(monkeypatch):
    """Whether collection was enabled each time that a kernel was looked up."""
    seen = []
    plain = build_kernels.request_key

    def observed(*args, **named):
        seen.append(gc.isenabled())
        return plain(*args, **named)

    monkeypatch.setattr(build_kernels, "request_key", observed)
    return seen


def test_collection_is_paused_during_a_build_and_resumed_after_it(states):
    assert gc.isenabled()
    gs.compile(SCRIPT)
    assert states == [False]
    assert gc.isenabled()


def test_collection_is_resumed_after_an_error():
    with pytest.raises(ArgumentError):
        gs.compile(SCRIPT, target="generic-cpu:cpu=z80")
    assert gc.isenabled()


def test_a_program_that_has_disabled_collection_keeps_it_so(states):
    gc.disable()
    try:
        gs.compile(SCRIPT.replace("17.25", "18.25"))
        assert not gc.isenabled()
    finally:
        gc.enable()
