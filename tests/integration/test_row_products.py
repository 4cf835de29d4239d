"""Products of groups of rows: the horizontal sums of a group are computed together.

Out[p] = sum of X[p, k] * Y[p, k] over k is what a sampled product of dense matrices computes for each
nonzero; here it is written at the loop stage and scheduled by hand.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from gossamer_generic_cpu.backend import GenericCpu
from gossamer_ir.interchange.records import Target
from gossamer_ir.interpret import run
from gossamer_ir.nodes import LaneReduce, TransposeReduce
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.traversal.walk import walk
from gossamer_lower import lower_to_flat
from gossamer_schedule import ScheduleBuilder

GROUP = 16
LANES = {"float32": 16, "float64": 8}
SIZES = [(0, 5), (1, 1), (5, 0), (15, 16), (16, 16), (17, 37), (48, 3), (100, 129)]


def row_products(dtype):
    return parse_module(f"""
@T.prim_func
def row_products(x: T.handle, y: T.handle, o: T.handle, n: T.int64, f: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (n, f), "{dtype}")
    Y = T.match_buffer(y, (n, f), "{dtype}")
    Out = T.match_buffer(o, (n,), "{dtype}")
    for p in T.serial(n):
        for k in T.serial(f):
            with T.block("dot"):
                vp, vk = T.axis.remap("SR", [p, k])
                with T.init():
                    Out[vp] = 0.0
                Out[vp] = Out[vp] + X[vp, vk] * Y[vp, vk]
""")


def grouped(dtype):
    builder = ScheduleBuilder(row_products(dtype))
    builder = builder.split("p", factors=(None, GROUP)).split("k", factors=(None, LANES[dtype]))
    return builder.cache_write("dot", buffer="Out", scope="local")


def copied_one_by_one(dtype):
    builder = grouped(dtype).reverse_compute_at("dot_Out_local", loop="p_1")
    builder = builder.decompose_reduction("dot", loop="k_0")
    return builder.vectorize("k_1", remainder="masked").unroll("p_1").parallel("p_0").module


def copied_at_once(dtype):
    builder = grouped(dtype).reverse_compute_at("dot_Out_local", loop="p_0")
    builder = builder.decompose_reduction("dot", loop="k_0")
    builder = builder.vectorize("k_1", remainder="masked").unroll("p_1").vectorize("p_c")
    return builder.parallel("p_0").module


SCHEDULES = [copied_one_by_one, copied_at_once]


def operands(dtype, rows, features):
    generator = np.random.default_rng(rows)
    x, y = generator.integers(-8, 9, (2, rows, features)).astype(dtype)
    return x, y, np.full(rows, np.nan, dtype)


@pytest.mark.parametrize("dtype", LANES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_results_are_those_of_numpy(schedule, dtype):
    flat = lower_to_flat(schedule(dtype))
    backend = GenericCpu()
    native = backend.load(backend.compile(flat, Target.parse("generic-cpu")))
    for rows, features in SIZES:
        x, y, out = operands(dtype, rows, features)
        expected = (x.astype(np.float64) * y).sum(1)
        run(flat, {"x": x, "y": y, "o": out, "n": rows, "f": features})
        assert np.array_equal(out, expected)
        out[:] = np.nan
        native(x=x, y=y, o=out)
        assert np.array_equal(out, expected)


@pytest.mark.parametrize("dtype", LANES)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_group_is_one_transpose_and_the_rest_a_loop(schedule, dtype):
    flat = lower_to_flat(schedule(dtype))
    kinds = [type(node) for node in walk(flat)]
    assert (kinds.count(TransposeReduce), kinds.count(LaneReduce)) == (1, 1)
    whole, _, rest = print_module(flat).partition("else:")
    assert "T.transpose_reduce" in whole
    assert "T.lane_reduce" in rest


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_sums_of_a_group_stay_in_registers(schedule):
    flat = lower_to_flat(schedule("float32"))
    assembly = GenericCpu().texts(flat, Target.parse("generic-cpu:cpu=x86-64-v4"))["asm"]
    shuffles = re.findall(r"\n\s+v(?:unpck[lh]p[sd]|shuff\w+|perm\w+)\s.*zmm", assembly)
    assert len(shuffles) == 30
    stored = re.findall(r"vmov\w+\s+%(zmm\d+), \d*\(%rsp\)", assembly)
    assert len(set(stored)) <= 1, "but for the zeros of the buffer of the rest"


def test_nan_and_infinity_stay_in_their_row():
    x, y, out = operands("float32", 35, 20)
    x[3, 19], y[20, 1], x[34, 0] = np.nan, np.inf, np.inf
    x[20, 1], y[34, 0] = 1, 0
    backend = GenericCpu()
    flat = lower_to_flat(copied_one_by_one("float32"))
    backend.load(backend.compile(flat, Target.parse("generic-cpu")))(x=x, y=y, o=out)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(out, (x * y).sum(1), equal_nan=True)
