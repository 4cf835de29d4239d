"""ELL and SELL with one row per vector lane: gathered slots, and results scattered by a permutation of
rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from stepwise_schedules import integers, require_schedule, step

import gossamer as gs
from gossamer_ir.errors import ArgumentError, ScheduleError
from gossamer_ir.script import parse_module
from gossamer_schedule import ScheduleBuilder

ELL = """
@T.prim_func
def ell(a: T.handle, indices: T.handle, x: T.handle, y: T.handle, m: T.int64, n: T.int64,
        width: T.int64, k: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), indices)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(x, (N, K), "float32")
    Y = T.sp.match_buffer(y, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "product") as [i, j, kk]:
        with T.init():
            Y[i, kk] = 0.0
        Y[i, kk] = Y[i, kk] + A[i, j] * X[j, kk]
"""


def rows_as_lanes(lanes: int, *, rest: tuple[Any, ...] = ()) -> Any:
    return (
        step("decompose_reduction", "product", loop="i"),
        step("split", "i", factors=(None, lanes)),
        step("reorder", "i_0", "j", "kk", "i_1"),
        step("vectorize", "i_1"),
        step("split", "i_init", factors=(None, lanes)),
        step("reorder", "i_init_0", "kk_init", "i_init_1"),
        step("vectorize", "i_init_1"),
        *rest,
    )


def ell_case(rows: int, columns: int, features: int) -> Any:
    random = np.random.default_rng(rows + columns)
    dense = integers(random, rows, columns) * (random.random((rows, columns)) < 0.4)
    if rows > 2:
        dense[0] = dense[-1] = 0
    a = sparse.csr_matrix(dense.astype(np.float32))
    width = int(np.diff(a.indptr).max(initial=0))
    indices = np.full((rows, width), columns, np.int32)
    values = np.zeros((rows, width), np.float32)
    for row in range(rows):
        begin, end = a.indptr[row], a.indptr[row + 1]
        indices[row, : end - begin] = a.indices[begin:end]
        values[row, : end - begin] = a.data[begin:end]
    x = integers(random, columns, features)
    arguments = {
        "a": values, "indices": indices, "x": x, "y": np.full((rows, features), 77, np.float32),
        "m": rows, "n": columns, "width": width, "k": features,
    }  # fmt: skip
    return arguments, {"y": a @ x}


ELL_CASES = [ell_case(0, 3, 1), ell_case(5, 7, 1), ell_case(17, 9, 2), ell_case(8, 4, 0)]


@pytest.mark.parametrize("lanes", [4, 16])
def test_rows_of_ell_are_lanes(lanes: int) -> None:
    parallel = (step("parallel", "i_0"), step("parallel", "i_init_0"))
    require_schedule(parse_module(ELL), ELL_CASES, loop=rows_as_lanes(lanes, rest=parallel))


def test_rows_of_ell_are_lanes_at_the_position_stage() -> None:
    require_schedule(parse_module(ELL), ELL_CASES, position=rows_as_lanes(8))


SELL = """
@T.prim_func
def sell(data: T.handle, indptr: T.handle, indices: T.handle, rows: T.handle, x: T.handle,
         y: T.handle, m: T.int64, n: T.int64, slices: T.int64, longest: T.int64,
         slots: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    S = T.sp.dense_fixed(slices)
    W = T.sp.dense_varied(S, (longest, slots), indptr)
    R = T.sp.dense_fixed(8, parent=W)
    J = T.sp.compressed_fixed(R, (n, 1), indices)
    L = T.sp.dense_fixed(8)
    I = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(data, (S, W, R, J), "float32")
    ROWS = T.sp.match_buffer(rows, (S, L), "int32")
    T.assume(in_range(ROWS, 0, m))
    FACT
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I], "S", "zero") as [i]:
        Y[i] = 0.0
    with T.sp.iteration([S, W, R, J], "SRSR", "product") as [s, w, r, j]:
        Y[T.int64(ROWS[s, r])] = Y[T.int64(ROWS[s, r])] + A[s, w, r, j] * X[j]
"""
DISTINCT = SELL.replace("FACT", "T.assume(distinct(ROWS))")
SLICES = (
    step("reorder", "s", "w", "j", "r"),
    step("vectorize", "r"),
    step("parallel", "s"),
)


def sell_case(slices: int, columns: int, *, twice: bool = False) -> Any:
    """Slices of eight rows, sorted by their lengths."""
    random = np.random.default_rng(slices)
    rows = 8 * slices
    dense = integers(random, rows, columns) * (random.random((rows, columns)) < 0.3)
    a = sparse.csr_matrix(dense.astype(np.float32))
    order = np.argsort(-np.diff(a.indptr), kind="stable").astype(np.int32)
    x = integers(random, columns)
    expected = a @ x
    indptr, indices, data = [0], [], []
    for at in range(slices):
        part = a[order[8 * at : 8 * at + 8]]
        width = int(np.diff(part.indptr).max(initial=0))
        slot, value = np.full((width, 8), columns), np.zeros((width, 8), np.float32)
        for lane in range(8):
            begin, end = part.indptr[lane], part.indptr[lane + 1]
            slot[: end - begin, lane] = part.indices[begin:end]
            value[: end - begin, lane] = part.data[begin:end]
        indptr.append(indptr[-1] + width)
        indices.append(slot.ravel())
        data.append(value.ravel())
    arguments = {
        "data": np.concatenate([*data, []]).astype(np.float32),
        "indptr": np.array(indptr, np.int32),
        "indices": np.concatenate([*indices, []]).astype(np.int32),
        "rows": order.reshape(slices, 8), "x": x, "y": np.full(rows, 77, np.float32), "m": rows,
        "n": columns, "slices": slices, "longest": columns, "slots": indptr[-1],
    }  # fmt: skip
    return arguments, {"y": expected}


def test_rows_of_sell_are_lanes() -> None:
    cases = [sell_case(0, 3), sell_case(1, 5), sell_case(3, 9)]
    require_schedule(parse_module(DISTINCT), cases, loop=SLICES)


@pytest.mark.parametrize(("op", "loop"), [("vectorize", "r"), ("parallel", "s")])
def test_without_the_fact_rows_may_conflict(op: str, loop: str) -> None:
    module = parse_module(SELL.replace("FACT", ""))
    builder = ScheduleBuilder(gs_loops(module)).reorder("s", "w", "j", "r")
    with pytest.raises(ScheduleError) as caught:
        getattr(builder, op)(loop)
    assert caught.value.code == f"schedule.{op}.not_proved"


def gs_loops(module: Any) -> Any:
    from gossamer_lower import lower_buffers, lower_iterations

    return lower_buffers(lower_iterations(module))


def test_a_row_that_is_there_twice_stops_the_call() -> None:
    kernel = gs.compile(parse_module(DISTINCT))
    arguments, expected = sell_case(2, 5)
    kernel(**arguments)
    np.testing.assert_array_equal(arguments["y"], expected["y"])
    rows = arguments["rows"].copy()
    rows[1, 7] = rows[0, 2]
    with pytest.raises(
        ArgumentError, match=r"Element 15 of 'rows' is .*, as is element 2"
    ) as caught:
        kernel(**(arguments | {"rows": rows}))
    assert caught.value.code == "kernel.distinct"
