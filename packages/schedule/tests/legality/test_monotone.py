"""Loops over segments of an array are parallel if the segments do not overlap, and not otherwise.

A second implementation enumerates the accesses of each iteration, for monotone offsets.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module, print_module
from gossamer_schedule.primitives.loops.parallel import parallel
from gossamer_schedule.primitives.loops.split import split
from gossamer_testkit.show import body_text

PROGRAM = """
@T.prim_func
def segments(p: T.handle, q: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.stage("loop")
    P = T.match_buffer(p, (m + 1,), "int64")
    Q = T.match_buffer(q, (m + 1,), "int64")
    Y = T.match_buffer(y, (n,), "float32")
    T.assume(in_range(P, 0, n + 1))
    {monotone}
    for i in T.serial(m):
        for j in T.serial({extent}):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                {where}
                {body}
"""

REDUCTION = """
@T.prim_func
def segments(p: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.stage("loop")
    P = T.match_buffer(p, (m + 1,), "int64")
    Y = T.match_buffer(y, (n,), "float32")
    T.assume(in_range(P, 0, n))
    T.assume(monotone(P))
    for i in T.serial(m):
        for j in T.serial({over_j}):
            for k in T.serial({over_k}):
                with T.block("b"):
                    vi, vj, vk = T.axis.remap("S{kinds}", [i, j, k])
                    T.where(vj < P[vi + 1] - P[vi])
                    with T.init():
                        Y[{at}] = 0.0
                    Y[{at}] = Y[{at}] + 1.0
"""
LENGTH = "P[i + 1] - P[i]"
ORDERED = {
    "one's own segment": {},
    "all segments one further": {"body": "Y[P[vi] + vj + 1] = 2.0"},
    "counted from the end": {"body": "Y[P[vi + 1] - 1 - vj] = 2.0"},
    "what is read, too": {"body": "Y[P[vi] + vj] = Y[P[vi + 1] - 1 - vj]"},
    "all but the last": {"extent": "P[i + 1] - P[i] - 1"},
    "under a condition": {"extent": "m + 3", "where": "T.where(vj < P[vi + 1] - P[vi])"},
    "with gaps": {"body": "Y[P[vi] + vj + 2 * vi] = 2.0"},
}
NOT_ORDERED = {
    "one element too many": {"extent": "P[i + 1] - P[i] + 1"},
    "reading the next segment": {"body": "Y[P[vi] + vj] = Y[P[vi] + vj + 1]"},
    "a loop of another length": {"extent": "m"},
    "under a weaker condition": {"extent": "m", "where": "T.where(vj <= P[vi + 1] - P[vi])"},
    "offsets that are not declared monotone": {"monotone": ""},
    "other offsets": {"body": "Y[Q[vi] + vj] = 2.0"},
    "running backwards into the one before": {"body": "Y[P[vi] - vj] = 2.0"},
    "overlapping by a step": {"body": "Y[P[vi] + vj - vi] = 2.0"},
}


def program(
    extent=LENGTH,
    where="",
    body="Y[P[vi] + vj] = 2.0",
    monotone="T.assume(monotone(P))",
    value="",
):
    if value:
        stored = body.removesuffix(" = 2.0")
        body = f"{stored} = {value.replace('Y[AT]', stored)}"
    return parse_module(PROGRAM.format(extent=extent, where=where, body=body, monotone=monotone))


@pytest.mark.parametrize("name", ORDERED)
def test_segments_one_behind_the_other_are_parallel(name):
    module = program(**ORDERED[name])
    assert "T.parallel(m)" in body_text(parallel(module, "i").module)
    groups = split(module, "j", factors=(None, 4)).module
    assert "T.parallel(m)" in body_text(parallel(groups, "i").module)


def test_two_segments_are_ordered_as_many_are():
    module = parse_module(print_module(program()).replace("T.serial(m)", "T.serial(2)"))
    assert "T.parallel(2)" in body_text(parallel(module, "i").module)


@pytest.mark.parametrize("name", NOT_ORDERED)
def test_anything_else_is_not_proved(name):
    with pytest.raises(ScheduleError) as caught:
        parallel(program(**NOT_ORDERED[name]), "i")
    assert caught.value.code == "schedule.parallel.not_proved"


def reduction(over_j=LENGTH, over_k="n", kinds="SR", at="P[vi] + vj"):
    return parse_module(REDUCTION.format(over_j=over_j, over_k=over_k, kinds=kinds, at=at))


def test_an_init_is_ordered_by_the_loops_it_runs_in():
    assert "T.parallel(m)" in body_text(parallel(reduction(), "i").module)
    assert "T.parallel(m)" in body_text(parallel(reduction(over_j="m"), "i").module)
    exchanged = reduction(over_j="m", over_k=LENGTH, kinds="RS", at="P[vi] + vk")
    assert "T.parallel(m)" in body_text(parallel(exchanged, "i").module)


@pytest.mark.parametrize("kinds", ["RR", "RS"])
def test_an_init_runs_where_nothing_is_reduced(kinds):
    """Empty segments share their first element with the next segment."""
    with pytest.raises(ScheduleError) as caught:
        parallel(reduction(kinds=kinds, at="P[vi]"), "i")
    assert caught.value.code == "schedule.parallel.not_proved"


def test_offsets_that_the_loop_writes_prove_nothing():
    module = program(body="P[vi] = P[vi]\n                Y[P[vi] + vj] = 2.0")
    with pytest.raises(ScheduleError) as caught:
        parallel(module, "i")
    assert caught.value.code == "schedule.parallel.not_proved"


WRITES = [name for name in ORDERED if name != "what is read, too"]


@pytest.mark.parametrize("name", WRITES)
def test_no_element_is_written_twice_when_run(name):
    module = program(**ORDERED[name], value="Y[AT] + 1.0")
    for lengths in itertools.product(range(4), repeat=3):
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        result = np.zeros(int(offsets[-1]) + 8, np.float32)
        run(module, {"p": offsets, "q": offsets, "y": result, "m": 3, "n": result.size})
        assert result.max(initial=0.0) <= 1.0
        assert result.sum() == sum(
            max(length - (name == "all but the last"), 0) for length in lengths
        )
