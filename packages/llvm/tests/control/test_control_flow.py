"""Loops, conditions and bounds checks: their code, and what it does when it runs."""

from __future__ import annotations

import re

import numpy as np
import pytest
from native_kernel import run_native

from gossamer_ir.core.build import ZERO, add, constant, index, index_var, mul, sub
from gossamer_ir.core.conditions import conjunction, in_range
from gossamer_ir.interchange.kernel_abi import NOT_GUARDED, OK, OUT_OF_BOUNDS
from gossamer_ir.nodes import (
    Broadcast,
    Buffer,
    Compare,
    For,
    Function,
    Guard,
    If,
    Lanes,
    Load,
    Module,
    Param,
    Ramp,
    Store,
    While,
)
from gossamer_llvm import bounds_checked_buffers

ROW, N = index_var("i"), index_var("n")
WIDE = Lanes(16)
RUN = Ramp(mul(ROW, index(16)), index(1), WIDE)
NOTHING = Broadcast(constant(0, "float32"), WIDE)


def copy(predicate):
    rest = NOTHING if predicate is not None else None
    load = Load("X", (RUN,), "float32x16", predicate, rest)
    return Store("Y", (RUN,), load, predicate)


def test_loops_are_not_unrolled_unless_asked(loop, module, text, checked):
    assert "llvm.loop.unroll.disable" in checked(text(loop(copy(None))))
    asked = For("i", ZERO, N, (copy(None),), annotations=(("unroll", 4),))
    source = checked(text(module(asked)))
    assert '!"llvm.loop.unroll.count", i32 4' in source
    assert "unroll.disable" not in source


def test_loops_and_functions_are_aligned(loop, text, checked):
    source = checked(text(loop(copy(None))))
    assert '!"llvm.loop.align", i32 64' in source
    assert "align 64 {" in source


def test_loops_of_constant_extent_need_no_test(module, text, checked):
    assert checked(text(module(For("i", ZERO, index(0), (copy(None),))))).count("phi") == 0
    assert "icmp sgt" not in text(module(For("i", ZERO, index(3), (copy(None),))))


def test_guards_are_numbered_by_buffer(module, text, checked):
    guards = [
        Guard(Compare("lt", N, index(limit)), name)
        for limit, name in ((1, "Y"), (2, "X"), (3, "Y"))
    ]
    flat = module(*guards)
    assert bounds_checked_buffers(flat) == ("Y", "X")
    numbers = re.findall(r"store atomic i64 (\d)", checked(text(flat)))
    assert numbers == ["0", "1", "0"]


@pytest.mark.parametrize("at", [-(2**63), -1, 0, 7, 8, 2**63 - 1])
def test_one_comparison_bounds_an_index_of_an_array(text, checked, at):
    out, place = np.zeros(8, np.int64), sub(index_var("k"), index(1))
    x = Buffer("X", (N,), "int64", "x")
    params = (Param("x", "handle"), Param("n", "int64"), Param("k", "int64"))
    check = Guard(conjunction(*in_range(place, N)), "X")
    body = (check, Store("X", (place,), constant(1, "int64")))
    flat = Module("flat", (Function("main", params, body, buffers=(x,)),), "main")
    source = checked(text(flat))
    assert source.count("icmp ult") == 1
    assert "icmp sge" not in source
    run = run_native(flat, [out], 8, (at + 1 + 2**63) % 2**64 - 2**63)
    assert run.status == (OK if 0 <= at < 8 else OUT_OF_BOUNDS)
    assert out.tolist() == [int(each == at) for each in range(8)]


@pytest.mark.parametrize("at", [-(2**63), -1, 0, 7, 8, 2**63 - 1])
def test_one_comparison_bounds_the_index_of_a_branch(text, checked, at):
    out = np.zeros(8, np.int64)
    x = Buffer("X", (N,), "int64", "x")
    params = (Param("x", "handle"), Param("n", "int64"), Param("k", "int64"))
    first, second = in_range(index_var("k"), N)
    choice = If(
        conjunction(Compare("lt", index_var("k"), index(5)), first, second),
        (Store("X", (ZERO,), constant(1, "int64")),),
        (Store("X", (ZERO,), constant(2, "int64")),),
    )
    flat = Module("flat", (Function("main", params, (choice,), buffers=(x,)),), "main")
    assert checked(text(flat)).count("icmp ult") == 1
    assert run_native(flat, [out], 8, at).status == OK
    assert out[0] == (1 if 0 <= at < 5 else 2)


def test_sizes_that_are_no_extents_may_be_negative(text, checked):
    out, m = np.zeros(8, np.int64), index_var("m")
    x = Buffer("X", (N,), "int64", "x")
    params = (Param("x", "handle"), Param("n", "int64"), Param("m", "int64"))
    check = Guard(conjunction(*in_range(ZERO, m)), "X")
    flat = Module("flat", (Function("main", params, (check,), buffers=(x,)),), "main")
    assert "icmp ult" not in checked(text(flat))
    assert run_native(flat, [out], 8, -1).status == OUT_OF_BOUNDS


def accumulated(*body):
    """A module over X and n, whose body adds to X[0]."""
    x = Buffer("X", (N,), "int64", "x")
    params = (Param("x", "handle"), Param("n", "int64"))
    return Module("flat", (Function("main", params, body, buffers=(x,)),), "main")


def plus(value, at=ZERO):
    return Store("X", (at,), add(Load("X", (at,), "int64"), value))


@pytest.mark.parametrize("extent", [-5, 0, 1, 2, 7])
@pytest.mark.parametrize("start", [-3, 0, 4])
def test_a_loop_runs_each_iteration_once(start, extent):
    """With a constant extent, and with one that is only known at run time."""
    for end in (index(extent), sub(N, index(100))):
        out = np.zeros(8, np.int64)
        counted = For("i", index(start), end, (plus(ROW), plus(index(1), index(1))))
        run_native(accumulated(counted), [out], 100 + extent)
        visited = range(start, start + extent)
        assert out[:2].tolist() == [sum(visited), len(visited)]


def test_a_loop_whose_end_wraps_around_ends():
    out, largest = np.zeros(8, np.int64), 2**63 - 1
    counted = For("i", add(N, index(-1)), index(3), (plus(index(1)),))
    run_native(accumulated(counted), [out], largest)
    assert out[0] == 3


@pytest.mark.parametrize("n", [2, 3, 4])
def test_one_branch_of_a_condition_runs(n):
    out = np.zeros(8, np.int64)
    is_less = Compare("lt", N, index(3))
    choice = If(is_less, (plus(index(1)),), (plus(index(10)),))
    run_native(accumulated(choice, If(is_less, (plus(index(100)),))), [out], n)
    assert out[0] == (101 if n < 3 else 10)


@pytest.mark.parametrize("n", [0, 1, 6])
def test_the_condition_of_a_while_loop_is_tested_before_each_iteration(n):
    out = np.zeros(8, np.int64)
    left = Compare("lt", Load("X", (ZERO,), "int64"), N)
    run_native(accumulated(While(left, (plus(index(2)),))), [out], n)
    assert out[0] == -(-n // 2) * 2


def test_a_bounds_check_that_fails_ends_the_kernel_and_names_the_buffer():
    inside = Compare("lt", ROW, index(3))
    flat = accumulated(For("i", ZERO, N, (Guard(inside, "X"), plus(index(1)))))
    out = np.zeros(8, np.int64)
    assert run_native(flat, [out], 3) == (OK, NOT_GUARDED)
    assert run_native(flat, [out], 9) == (OUT_OF_BOUNDS, 0)
    assert out[0] == 3 + 3
