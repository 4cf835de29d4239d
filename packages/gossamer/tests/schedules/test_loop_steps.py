"""Schedules that fuse, lift, pad, annotate and sample, natively, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer
from gossamer_lower.pipelines.lower_to_flat import lower_to_flat
from gossamer_schedule import ScheduleBuilder
from gossamer_testkit import examples

SHAPES = [(0, 3), (3, 0), (1, 1), (5, 7), (33, 17)]


def fused(builder):
    return builder.reorder("i", "l", "j").fuse("i", "l").split("i_l", factors=(4, None))


PRODUCTS = {
    "fused": fused,
    "fused in parallel": lambda builder: builder.reorder("i", "l", "j").fuse("i", "l").parallel("i_l"),
    "fused in parallel parts": lambda builder: fused(builder).parallel("i_l_0"),
    "reductions fused": lambda builder: (
        builder.split("j", factors=(3, None)).decompose_reduction("matmul", loop="j_0").fuse("j_0", "j_1")
    ),
    "drawn": lambda builder: (
        builder.reorder("i", "l", "j")
        .sample_perfect_tile("l", name="t", parts=3, largest=8, seed=4)
        .split("l", factors=("$t_0", "$t_1", "$t_2"))
        .unroll("l_2")
        .parallel("i")
    ),
    "unsafe": lambda builder: (
        builder.split("l", factors=(None, 4))
        .unsafe_reorder("j", "l_0")
        .unsafe_vectorize("l_1")
        .unsafe_parallel("i")
    ),
    "annotated": lambda builder: builder.annotate("matmul", key="origin", value="a test"),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_products(name, shape):
    builder = PRODUCTS[name](ScheduleBuilder(examples.MATMUL))
    kernel = gossamer.compile(builder.module, target="generic-cpu:threads=2")
    (m, n), k = shape, 5
    random = np.random.default_rng(3)
    a = random.integers(-3, 4, (m, n)).astype(np.float32)
    b = random.integers(-3, 4, (n, k)).astype(np.float32)
    c = np.full((m, k), 77, np.float32)
    kernel(a=a, b=b, c=c, m=m, n=n, k=k)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("rows", [0, 1, 9])
@pytest.mark.parametrize("factor", [8, 16, 24])
@pytest.mark.parametrize("offset", [0, 1])
def test_rows_in_padded_storage(rows, factor, offset):
    builder = ScheduleBuilder(examples.STAGED).set_scope("X_shared", scope="global")
    builder.storage_align("X_shared", axis=0, factor=factor, offset=offset).pipeline("i")
    kernel = gossamer.compile(builder.module, target="generic-cpu")
    x, y = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8), np.zeros((rows, 8), np.float32)
    kernel(x=x, y=y, m=rows)
    np.testing.assert_array_equal(y, x * 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_lifted_loop(shape):
    kernel = gossamer.compile(ScheduleBuilder(examples.NESTED).lift_loop("j").parallel("i").module)
    x, y = np.arange(np.prod(shape), dtype=np.float32).reshape(shape), np.zeros(shape, np.float32)
    kernel(x=x, y=y, m=shape[0], n=shape[1])
    np.testing.assert_array_equal(y, x * 2)


def test_accesses_marked_unsafe_stay_marked_to_the_flat_stage():
    builder = ScheduleBuilder(examples.MATMUL).unsafe_parallel("i")
    flat = lower_to_flat(builder.module)
    entry = next(function for function in flat.functions if function.name == flat.entry)
    assert dict(entry.annotations)["unsafe"] == "parallel(i)"
