"""Nested parallel loops: threads share the outermost loop, and inner parallel loops run serially."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stepwise_schedules import require_schedule, step

from gossamer.compilation.pipeline import lower_by_stage
from gossamer_backend.call.threads import reset_num_threads, set_num_threads
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Schedule
from gossamer_ir.nodes import Atomic, For, ParallelFor
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_schedule import ScheduleBuilder

SUMS = """
@T.prim_func
def sums(a: T.handle, p: T.handle, y: T.handle, z: T.handle, n: T.int64, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (n, m), "float32")
    P = T.match_buffer(p, (m,), "int32")
    Y = T.match_buffer(y, (n, 3), "float32")
    Z = T.match_buffer(z, (n, m), "float32")
    for i in T.serial(n):
        for j in T.serial(m):
            with T.block("add"):
                vi, vj = T.axis.remap("SR", [i, j])
                Y[vi, T.int64(P[vj])] = Y[vi, T.int64(P[vj])] + A[vi, vj]
    for i2 in T.serial(n):
        for j2 in T.serial(m):
            with T.block("twice"):
                vi2, vj2 = T.axis.remap("SS", [i2, j2])
                Z[vi2, vj2] = A[vi2, vj2] * 2.0
"""
INNER_FIRST = (
    step("parallel", "j", accumulate="atomic", grain=2),
    step("parallel", "i"),
    step("parallel", "j2", grain=1),
    step("parallel", "i2", weight="i2 * 3"),
)


@pytest.fixture(params=[1, 2], autouse=True)
def threads(request: Any) -> Any:
    set_num_threads(request.param)
    yield
    reset_num_threads()


def case(rows: int, columns: int) -> Any:
    random = np.random.default_rng(rows)
    a = random.integers(-3, 4, (rows, columns)).astype(np.float32)
    p = random.integers(0, 3, columns).astype(np.int32)
    y = random.integers(-3, 4, (rows, 3)).astype(np.float32)
    expected = y.copy()
    np.add.at(expected, (slice(None), p), a)
    arguments = {"a": a, "p": p, "y": y, "z": np.full_like(a, 77), "n": rows, "m": columns}
    return arguments, {"y": expected, "z": a * 2}


CASES = [case(0, 4), case(1, 0), case(3, 5), case(40, 7)]


@pytest.mark.parametrize("steps", [INNER_FIRST, INNER_FIRST[::-1]])
def test_nested_loops_compute_the_same(steps: Any) -> None:
    require_schedule(parse_module(SUMS), CASES, loop=steps)


def test_the_outermost_is_shared_out_and_those_inside_are_serial() -> None:
    builder = ScheduleBuilder(parse_module(SUMS))
    for op, names, options in INNER_FIRST:
        getattr(builder, op)(*names, **options)
    *_, flat = lower_by_stage(parse_module(SUMS), Schedule(loop=builder.trace))
    nodes = list(walk(*flat.functions))
    started = [node.var for node in nodes if isinstance(node, ParallelFor)]
    assert started == ["i", "i2"]
    loops = {node.var: node for node in nodes if isinstance(node, For)}
    assert {loops[name].kind for name in ("j", "j2")} == {"serial"}
    # Rows are not shared, so that nothing has to be atomic.
    assert not any(isinstance(node, Atomic) for node in nodes)


def test_a_fused_loop_is_shared_out_as_a_whole() -> None:
    steps = (step("fuse", "i2", "j2"), step("parallel", "i2_j2"))
    require_schedule(parse_module(SUMS), CASES, loop=steps)


def test_an_inner_loop_that_races_is_refused_also_where_it_would_run_serially() -> None:
    builder = ScheduleBuilder(parse_module(SUMS)).parallel("i")
    with pytest.raises(ScheduleError) as caught:
        builder.parallel("j")
    assert caught.value.code == "schedule.parallel.not_proved"
    with pytest.raises(ScheduleError) as caught:
        builder.parallel_reduction("j")
    assert caught.value.code == "schedule.parallel_reduction.nested"


def test_an_outer_loop_that_races_is_refused() -> None:
    text = SUMS.replace("Y[vi, ", "Y[0, ")
    builder = ScheduleBuilder(parse_module(text)).parallel("j", accumulate="atomic")
    with pytest.raises(ScheduleError) as caught:
        builder.parallel("i")
    assert caught.value.code in ("schedule.parallel.race", "schedule.parallel.not_proved")
    builder.parallel("i", accumulate="atomic")
    *_, flat = lower_by_stage(parse_module(text), Schedule(loop=builder.trace))
    assert any(isinstance(node, Atomic) for node in walk(*flat.functions))
