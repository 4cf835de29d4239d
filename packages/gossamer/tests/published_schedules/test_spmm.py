"""SpMM as published: naive over CSR, and over buckets of rows of equal length that accumulate."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from stepwise_schedules import integers, require_schedule, step

from gossamer_ir.script import parse_module
from gossamer_testkit import script

NAIVE = (
    step("split", "k", factors=(None, 2, 4)),
    step("reorder", "k_0", "j", "k_1", "k_2"),
    step("split", "i", factors=(None, 3)),
    step("cache_write", "csrmm", buffer="C_data", scope="local"),
    step("reverse_compute_at", "csrmm_C_data_local", loop="k_0"),
    step("cache_read", "csrmm", buffer="A_data", scope="local"),
    step("compute_at", "csrmm_A_data_local", loop="j"),
    step("decompose_reduction", "csrmm", loop="j"),
    step("unroll", "k_1"),
    step("vectorize", "k_2"),
    step("vectorize", "k_2_init"),
    step("parallel", "i_0"),
)


def matrix(rows: int, columns: int) -> Any:
    """Empty rows at both ends, one dense row."""
    random = np.random.default_rng(rows)
    dense = integers(random, rows, columns) * (random.random((rows, columns)) < 0.4)
    if rows > 2:
        dense[0] = dense[-1] = 0
        dense[rows // 2] = np.arange(columns) % 5 + 1
    return sparse.csr_matrix(dense.astype(np.float32))


def csr_case(rows: int, columns: int, features: int) -> Any:
    a, b = matrix(rows, columns), integers(np.random.default_rng(7), columns, features)
    arguments = {
        "a": a.data, "b": b, "c": np.full((rows, features), 77, np.float32), "indptr": a.indptr,
        "indices": a.indices, "m": rows, "n": columns, "feat_size": features, "nnz": a.nnz,
    }  # fmt: skip
    return arguments, {"c": a @ b}


SIZES = [(0, 3, 8), (7, 5, 13), (10, 4, 0), (11, 9, 8)]


def test_naive():
    module = parse_module(script("csr_spmm"))
    require_schedule(module, [csr_case(*size) for size in SIZES], loop=NAIVE)


GATHERED = (
    step("split", "j", factors=(None, 4)),
    step("split", "k", factors=(None, 8)),
    step("reorder", "i", "k_0", "j_0", "j_1", "k_1"),
    step("reindex_cache_read", "csrmm", buffer="B_data", scope="local"),
    step("compute_at", "csrmm_B_data_local", loop="j_0"),
    step("vectorize", "k_c"),
    step("parallel", "i"),
)


def test_with_gathered_rows():
    module = parse_module(script("csr_spmm"))
    require_schedule(module, [csr_case(*size) for size in SIZES], loop=GATHERED)


BUCKETED = """
@T.prim_func
def bucketed(c: T.handle, b: T.handle, a1: T.handle, rows1: T.handle, columns1: T.handle,
             a2: T.handle, rows2: T.handle, columns2: T.handle, m: T.int64, n: T.int64,
             feat_size: T.int64, count1: T.int64, count2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat_size)
    O = T.sp.dense_fixed(1)
    I1 = T.sp.compressed_fixed(O, (m, count1), rows1, padded=False)
    J1 = T.sp.compressed_fixed(I1, (n, 2), columns1, sorted=False, unique=False)
    I2 = T.sp.compressed_fixed(O, (m, count2), rows2, padded=False)
    J2 = T.sp.compressed_fixed(I2, (n, 4), columns2, sorted=False, unique=False)
    A1 = T.sp.match_buffer(a1, (O, I1, J1), "float32")
    A2 = T.sp.match_buffer(a2, (O, I2, J2), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, K], "SS", "zeros") as [i, k]:
        C[i, k] = 0.0
    with T.sp.iteration([O, I1, J1, K], "SSRS", "bucket1") as [o1, i1, j1, k1]:
        C[i1, k1] = C[i1, k1] + A1[o1, i1, j1] * B[j1, k1]
    with T.sp.iteration([O, I2, J2, K], "SSRS", "bucket2") as [o2, i2, j2, k2]:
        C[i2, k2] = C[i2, k2] + A2[o2, i2, j2] * B[j2, k2]
"""


def bucket(number: int, width: int) -> Any:
    """The steps of one bucket: equal numbers of elements in each part of the rows."""
    block, k, j, i = (f"{name}{number}" for name in ("bucket", "k", "j", "i"))
    cache = f"{block}_C_data_local" + (f"_{number - 1}" if number > 1 else "")
    return (
        step("split", k, factors=(None, 4)),
        step("reorder", f"{k}_0", j, f"{k}_1"),
        step("reindex_cache_write", block, buffer="C_data", scope="local"),
        step("reverse_compute_at", cache, loop=f"{k}_0"),
        step("decompose_reduction", block, loop=j),
        step("unroll", j),
        step("vectorize", f"{k}_1"),
        step("split", i, factors=(None, 8 // width)),
        step("parallel", f"{i}_0"),
    )


def buckets_of(a: Any, width: int, rows: list[int], count: int) -> dict[str, Any]:
    """Rows, or parts of rows, of at most `width` elements, padded."""
    columns = np.full((len(rows), width), a.shape[1], np.int32)
    values = np.zeros((len(rows), width), np.float32)
    for number, row in enumerate(rows):
        row_columns = a.indices[a.indptr[row] : a.indptr[row + 1]][:width]
        columns[number, : len(row_columns)] = row_columns
        values[number, : len(row_columns)] = a.data[a.indptr[row] : a.indptr[row + 1]][:width]
    return {f"a{count}": values.ravel(), f"rows{count}": np.array(rows, np.int32),
            f"columns{count}": columns.ravel(), f"count{count}": len(rows)}  # fmt: skip


def bucket_case(rows: int, columns: int, features: int, longest: int) -> Any:
    a, b = matrix(rows, columns), integers(np.random.default_rng(5), columns, features)
    keep = [np.minimum(np.arange(count), 4) < min(longest, 4) for count in np.diff(a.indptr)]
    a.data = a.data * np.concatenate([*keep, []])
    a.eliminate_zeros()
    a.sort_indices()
    lengths = np.diff(a.indptr)
    arguments = {"c": np.full((rows, features), 77, np.float32), "b": b, "m": rows, "n": columns,
                 "feat_size": features}  # fmt: skip
    arguments |= buckets_of(a, 2, [number for number, n in enumerate(lengths) if 0 < n <= 2], 1)
    arguments |= buckets_of(a, 4, [number for number, n in enumerate(lengths) if n > 2], 2)
    return arguments, {"c": a @ b}


def test_bucketed():
    cases = [
        bucket_case(*size) for size in ((0, 3, 4, 4), (9, 7, 5, 2), (12, 8, 9, 4), (5, 6, 0, 4))
    ]
    require_schedule(parse_module(BUCKETED), cases, loop=(*bucket(1, 2), *bucket(2, 4)))


PUBLISHED_HYB = """
@T.prim_func
def hyb(c: T.handle, b: T.handle, a1: T.handle, indptr1: T.handle, rows1: T.handle, columns1: T.handle,
        a2: T.handle, indptr2: T.handle, rows2: T.handle, columns2: T.handle, m: T.int64, n: T.int64,
        tiles: T.int64, count1: T.int64, count2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    K1 = T.sp.dense_fixed(tiles)
    K2 = T.sp.dense_fixed(2)
    K3 = T.sp.dense_fixed(4)
    O = T.sp.dense_fixed(1)
    I1 = T.sp.compressed_varied(O, (m, count1), (indptr1, rows1))
    J1 = T.sp.compressed_fixed(I1, (n, 2), columns1, sorted=False, unique=False)
    I2 = T.sp.compressed_varied(O, (m, count2), (indptr2, rows2), unique=False)
    J2 = T.sp.compressed_fixed(I2, (n, 4), columns2, sorted=False, unique=False)
    A1 = T.sp.match_buffer(a1, (O, I1, J1), "float32")
    A2 = T.sp.match_buffer(a2, (O, I2, J2), "float32")
    B = T.sp.match_buffer(b, (N, K1, K2, K3), "float32")
    C = T.sp.match_buffer(c, (I, K1, K2, K3), "float32")
    with T.sp.iteration([O, I1, J1, K1, K2, K3], "SSRSSS", "csrmm_1") as [o1, i1, j1, foo1, foi1, fi1]:
        C[i1, foo1, foi1, fi1] = C[i1, foo1, foi1, fi1] + A1[o1, i1, j1] * B[j1, foo1, foi1, fi1]
    with T.sp.iteration([O, I2, J2, K1, K2, K3], "SSRSSS", "csrmm_2") as [o2, i2, j2, foo2, foi2, fi2]:
        C[i2, foo2, foi2, fi2] = C[i2, foo2, foi2, fi2] + A2[o2, i2, j2] * B[j2, foo2, foi2, fi2]
"""
FUSED = (
    step("sparse_fuse", "csrmm_1", axes=("O", "I1")),
    step("sparse_fuse", "csrmm_2", axes=("O", "I2")),
)


def published(number: int, width: int, *, sums: str) -> Any:
    """The steps of one bucket: rows are added up in registers, and then (in atomic steps, where a long
    row stands in the bucket several times) to the result. Blocks of threads become parallel
    iterations, threads lanes or serial loops."""
    block, i = f"csrmm_{number}", f"o{number}_i{number}"
    foo, foi, fi, j = (f"{name}{number}" for name in ("foo", "foi", "fi", "j"))
    accumulate = {} if number == 1 else {"accumulate": "atomic"}
    return (
        step("reorder", foo, j, foi, fi),
        step("reindex_cache_write", block, buffer=sums, scope="local"),
        step(
            "reverse_compute_at", f"{block}_{sums}_local" + ("_1" if number > 1 else ""), loop=foo
        ),
        step("unroll", j),
        step("split", i, factors=(None, 4 // width, 3)),
        step("decompose_reduction", block, loop=j),
        step("vectorize", fi),
        step("vectorize", f"{fi}_init"),
        step("unroll", foi),
        step("parallel", f"{i}_0", **accumulate),
    )


def hyb_case(rows: int, columns: int, tiles: int) -> Any:
    """Rows of more than four elements occur in the last bucket several times."""
    a, b = matrix(rows, columns), integers(np.random.default_rng(5), columns, tiles * 8)
    dense = integers(np.random.default_rng(6), rows, tiles * 8)
    starts = [(row, int(a.indptr[row]), int(a.indptr[row + 1])) for row in range(rows)]
    short = [(row, begin, end) for row, begin, end in starts if 0 < end - begin <= 2]
    long = [
        (row, at, min(at + 4, end))
        for row, begin, end in starts
        if end - begin > 2
        for at in range(begin, end, 4)
    ]
    arguments = {
        "c": dense.reshape(rows, tiles, 2, 4), "b": b.reshape(columns, tiles, 2, 4),
        "m": rows, "n": columns, "tiles": tiles,
    }  # fmt: skip
    for bucket, width, parts in ((1, 2, short), (2, 4, long)):
        indices = np.full((len(parts), width), columns, np.int32)
        values = np.zeros((len(parts), width), np.float32)
        for number, (_, begin, end) in enumerate(parts):
            indices[number, : end - begin] = a.indices[begin:end]
            values[number, : end - begin] = a.data[begin:end]
        arguments |= {
            f"a{bucket}": values.ravel(),
            f"columns{bucket}": indices.ravel(),
            f"rows{bucket}": np.array([row for row, *_ in parts], np.int32),
            f"indptr{bucket}": np.array([0, len(parts)], np.int32),
            f"count{bucket}": len(parts),
        }
    return arguments, {"c": (dense + a @ b).reshape(rows, tiles, 2, 4)}


HYB_SIZES = ((0, 3, 1), (9, 7, 1), (6, 11, 2), (5, 6, 0))


def test_hyb():
    steps = (*published(1, 2, sums="C_data"), *published(2, 4, sums="C_data"))
    cases = [hyb_case(*size) for size in HYB_SIZES]
    require_schedule(parse_module(PUBLISHED_HYB), cases, coordinate=FUSED, loop=steps)


def test_hyb_at_the_position_stage():
    steps = (*published(1, 2, sums="C"), *published(2, 4, sums="C"))
    cases = [hyb_case(*size) for size in HYB_SIZES]
    require_schedule(parse_module(PUBLISHED_HYB), cases, coordinate=FUSED, position=steps)
