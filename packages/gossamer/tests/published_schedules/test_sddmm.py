"""SDDMM as published: a loop over all elements, products in two stages, cached operands and results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from stepwise_schedules import integers, require_schedule, scheduled, step

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_lower import lower_iterations
from gossamer_schedule import ScheduleBuilder
from gossamer_testkit import script

ELEMENTS = (step("sparse_fuse", "sddmm", axes=("I", "J")),)


def two_stages(a: str, b: str, y: str, *, last: int) -> Any:
    """The steps, given the names of buffers and the number of dimensions of the result: each iteration of the
    innermost loop over features has a separate sum, in a new last dimension."""
    return (
        step("split", "k", factors=(None, 2, 4)),
        step("rfactor", "k_2", axis=last),
        step("split", "i_j", factors=(None, 3, 2)),
        step("reorder", "i_j_0", "i_j_1", "k_0", "i_j_2", "k_1", "k_2"),
        step("reverse_compute_at", "sddmm", loop="i_j_1"),
        step("set_scope", f"{y}_rf", scope="local"),
        step("reindex_cache_read", "sddmm_rf", buffer=a, scope="local"),
        step("reindex_cache_read", "sddmm_rf", buffer=b, scope="local"),
        step("compute_at", f"sddmm_rf_{a}_local", loop="i_j_2"),
        step("compute_at", f"sddmm_rf_{b}_local", loop="i_j_2"),
        step("cache_write", "sddmm", buffer=y, scope="local"),
        step("reverse_compute_at", f"sddmm_{y}_local", loop="i_j_1"),
        step("vectorize", "k_2"),
        step("vectorize", "k_2_c_1"),
        step("vectorize", "k_2_c_2"),
        step("unroll", "k_1"),
        step("unroll", "i_j_2"),
        step("parallel", "i_j_0"),
    )


def matrix(rows: int, columns: int) -> Any:
    """Empty rows at both ends, one dense row."""
    random = np.random.default_rng(rows)
    dense = random.integers(1, 4, (rows, columns)) * (random.random((rows, columns)) < 0.3)
    if rows > 2:
        dense[0] = dense[-1] = 0
        dense[rows // 2] = 1
    return sparse.csr_matrix(dense.astype(np.float32))


def case(rows: int, columns: int, features: int) -> Any:
    random = np.random.default_rng(features)
    a, b = integers(random, rows, features), integers(random, columns, features)
    x = matrix(rows, columns)
    places = x.tocoo()
    arguments = {
        "a": a, "b": b, "x": x.data, "y": np.full(x.nnz, 77, np.float32), "indptr": x.indptr,
        "indices": x.indices, "m": rows, "n": columns, "feat_size": features, "nnz": x.nnz,
    }  # fmt: skip
    return arguments, {"y": (a[places.row] * b[places.col]).sum(1) * x.data}


SIZES = [(0, 3, 8), (7, 5, 13), (10, 4, 0), (11, 9, 8), (1, 7, 3)]


def test_two_stages():
    module = parse_module(script("sddmm"))
    cases = [case(*size) for size in SIZES]
    steps = two_stages("A_data", "B_data", "Y_data", last=1)
    require_schedule(module, cases, coordinate=ELEMENTS, loop=steps)


def test_two_stages_at_the_position_stage():
    module = parse_module(script("sddmm"))
    cases = [case(*size) for size in SIZES]
    steps = two_stages("A", "B", "Y", last=2)
    require_schedule(module, cases, coordinate=ELEMENTS, position=steps)


@pytest.mark.parametrize("stage", ["position", "loop"])
def test_elements_on_a_grid_of_threads(stage):
    steps = (
        step("split", "i_j", factors=(None, 4, 2)),
        step("bind", "i_j_0", thread="blockIdx.x"),
        step("bind", "i_j_1", thread="threadIdx.y"),
        step("unroll", "i_j_2"),
    )
    modules, _ = scheduled(parse_module(script("sddmm")), coordinate=ELEMENTS, **{stage: steps})
    for arguments, expected in (case(*size) for size in SIZES):
        for module in modules:
            (function,) = module.functions
            values = {param.name: arguments[param.name] for param in function.params}
            values["y"] = arguments["y"].copy()
            run(module, values)
            np.testing.assert_array_equal(values["y"].ravel(), expected["y"])


SHARED = {
    "the element after it is read": "Y[i, j] = Y[i, j + 1] * 2.0",
    "a row is counted": "Z[i] = Z[i] + 1.0",
    "a column is counted": "Z[j] = Z[j] + X[i, j]",
    "the first element of each row is written": "Y[i, 0] = X[i, j]",
}


@pytest.mark.parametrize("name", SHARED)
def test_elements_that_iterations_share_are_found_at_the_position_stage(name):
    module = parse_module(f"""
@T.prim_func
def shared(x: T.handle, y: T.handle, z: T.handle, indptr: T.handle, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_varied(I, (n, nnz), indptr)
    X = T.sp.match_buffer(x, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I, J), "float32")
    Z = T.sp.match_buffer(z, (I,), "float32")
    with T.sp.iteration([T.sp.fuse(I, J)], "SS", "all") as [i, j]:
        {SHARED[name]}
""")
    position = lower_iterations(module)
    for op, options in (("parallel", {}), ("bind", {"thread": "blockIdx.x"})):
        for split in (False, True):
            builder = ScheduleBuilder(position)
            if split:
                builder.split("i_j", factors=(None, 2))
            with pytest.raises(ScheduleError) as caught:
                getattr(builder, op)("i_j_0" if split else "i_j", **options)
            assert caught.value.code in (f"schedule.{op}.not_proved", f"schedule.{op}.race")
