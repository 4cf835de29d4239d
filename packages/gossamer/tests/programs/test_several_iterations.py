"""Several iterations whose schedules make copies of one operand, or partial results of one output, against
NumPy in float64.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.compilation.pipeline import schedule_for_target
from gossamer.targets.resolve_target import resolve_elsewhere
from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module

LONG = Stats(rows=64, columns=64, nnz=64 * 40, longest_row=60, empty_rows=1)
HEAD = """
@T.prim_func
def main(a: T.handle, b: T.handle, x: T.handle, y: T.handle, ap: T.handle, aj: T.handle, bp: T.handle,
         bj: T.handle, m: T.int64, n: T.int64, na: T.int64, nb: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    U = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(32)
"""
BOTH_PACKED = f"""{HEAD}
    J = T.sp.compressed_varied(I, (n, na), (ap, aj), "int32")
    V = T.sp.compressed_varied(U, (n, nb), (bp, bj), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (U, V), "float32")
    X = T.sp.match_buffer(x, (N, K), "float32")
    Y = T.sp.match_buffer(y, (I, K), "float32")
    Z = T.sp.alloc_buffer((U, K), "float32")
    with T.sp.iteration([U, V, K], "SRS", "first") as [u, v, w]:
        with T.init():
            Z[u, w] = 0.0
        Z[u, w] = Z[u, w] + B[u, v] * X[v, w]
    with T.sp.iteration([I, J, K], "SRS", "second") as [i, j, k]:
        with T.init():
            Y[i, k] = 0.0
        Y[i, k] = Y[i, k] + A[i, j] * X[j, k]
    with T.sp.iteration([I, K], "SS", "third") as [s, t]:
        Y[s, t] = Y[s, t] + Z[s, t]
"""
ONE_OUTPUT = BOTH_PACKED.replace("Z[u, w]", "Y[u, w]").replace("Z[s, t]", "X[0, t] - X[0, t]")
TILES = f"""{HEAD}
    TA = T.sp.dense_fixed(2)
    TB = T.sp.dense_fixed(2)
    RA = T.sp.dense_fixed(m, parent=TA)
    RB = T.sp.dense_fixed(m, parent=TB)
    J = T.sp.compressed_varied(RA, (32, na), (ap, aj), "int32")
    V = T.sp.compressed_varied(RB, (32, nb), (bp, bj), "int32")
    A = T.sp.match_buffer(a, (TA, RA, J), "float32")
    B = T.sp.match_buffer(b, (TB, RB, V), "float32")
    X = T.sp.match_buffer(x, (N, K), "float32")
    Y = T.sp.match_buffer(y, (I, K), "float32")
    with T.sp.iteration([TA, RA, J, K], "RSRS", "first") as [f, i, j, k]:
        Y[i, k] = Y[i, k] + A[f, i, j] * X[f * 32 + j, k]
    with T.sp.iteration([TB, RB, V, K], "RSRS", "second") as [g, u, v, w]:
        Y[u, w] = Y[u, w] + B[g, u, v] * X[g * 32 + v, w]
"""


FUSED = f"""{HEAD.replace("dense_fixed(32)", "dense_fixed(700)")}
    J = T.sp.compressed_varied(I, (n, na), (ap, aj), "int32")
    V = T.sp.compressed_varied(I, (n, nb), (bp, bj), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (I, V), "float32")
    X = T.sp.match_buffer(x, (N, K), "float32")
    Y = T.sp.match_buffer(y, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "first") as [i, j, k]:
        with T.init():
            Y[i, k] = 0.0
        Y[i, k] = Y[i, k] + A[i, j] * X[j, k]
    with T.sp.iteration([I, V, K], "SRS", "second") as [u, v, w]:
        Y[u, w] = Y[u, w] + B[u, v] * X[v, w]
"""


def made(schedule, op):
    """How many steps of a schedule are of one primitive."""
    return sum(step.op == op for step in schedule.loop)


def compiled(text, *, rule="separate_iterations", target="generic-cpu"):
    """The kernel of a program of several iterations, and the schedule that a rule gives it for a target."""
    module = parse_module(text)
    assert gs.explain(module, stats=LONG, target=target).rule == rule
    schedule = schedule_for_target(module, resolve_elsewhere(target)[1], LONG)
    return gs.compile(module, schedule=schedule), schedule


def matrices(seed, *, features=32):
    random = np.random.default_rng(seed)
    dense = random.integers(-3, 4, (2, 64, 64)) * (random.random((2, 64, 64)) < 0.3)
    operand = random.integers(-3, 4, (64, features)).astype("float32")
    return *map(sparse.csr_array, dense.astype("float32")), operand


def multiplied(kernel, first, second, operand):
    """The output of a kernel on two matrices in CSR."""
    result = np.full((64, operand.shape[1]), 7, "float32")
    kernel(
        a=first.data,
        b=second.data,
        x=operand,
        y=result,
        ap=first.indptr,
        aj=first.indices,
        bp=second.indptr,
        bj=second.indices,
    )
    return result


# Two vectors of features.
@pytest.mark.parametrize(("bits", "features"), [(512, 32), (256, 16)])
@pytest.mark.parametrize("text", [BOTH_PACKED, ONE_OUTPUT], ids=["two outputs", "one output"])
def test_each_iteration_packs_the_operand_and_has_partial_sums(text, bits, features):
    first, second, operand = matrices(1, features=features)
    kernel, schedule = compiled(
        text.replace("dense_fixed(32)", f"dense_fixed({features})"),
        target=f"generic-cpu:vector_bits={bits}",
    )
    assert (made(schedule, "cache_region"), made(schedule, "rfactor")) == (2, 2)
    result = multiplied(kernel, first, second, operand)
    total = first + second if text == BOTH_PACKED else first
    np.testing.assert_array_equal(result, total.astype("float64") @ operand)


def in_tiles(matrix):
    """The arrays of two tiles of 32 columns: elements, ends of rows, and columns in their tile."""
    tiles = [sparse.csr_array(matrix[:, at : at + 32]) for at in (0, 32)]
    ends = [tiles[0].indptr, tiles[0].nnz + tiles[1].indptr[1:]]
    return (
        np.concatenate([tile.data for tile in tiles]),
        np.concatenate(ends).astype("int32"),
        np.concatenate([tile.indices for tile in tiles]).astype("int32"),
    )


def test_each_iteration_packs_rows_for_its_tiles_and_has_partial_results():
    first, second, operand = matrices(2)
    kernel, schedule = compiled(TILES)
    assert (made(schedule, "cache_region"), made(schedule, "rfactor")) == (2, 2)
    result = np.ones((64, 32), "float32")
    (a, ap, aj), (b, bp, bj) = in_tiles(first), in_tiles(second)
    kernel(a=a, b=b, x=operand, y=result, ap=ap, aj=aj, bp=bp, bj=bj)
    expected = (first + second).astype("float64") @ operand + 1
    np.testing.assert_array_equal(result, expected)


def test_iterations_over_the_same_rows_accumulate_in_buffers_of_their_own():
    first, second, operand = matrices(3, features=700)
    kernel, schedule = compiled(FUSED, rule="fused_rows")
    blocks = [step.args["block"] for step in schedule.loop if step.op == "reverse_compute_at"]
    assert blocks == ["first_Y_data_local", "second_Y_data_local_1"]
    expected = (first + second).astype("float64") @ operand
    np.testing.assert_array_equal(multiplied(kernel, first, second, operand), expected)
