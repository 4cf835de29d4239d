"""Sampled dense times dense over hyb, SR-BCRS and DBSR.

    out[i, j] = A[i, j] * sum over k of X[i, k] * Y[j, k] at the nonzeros of A

Programs for blocks compute whole blocks: where A has no nonzero, the result is zero. In each block the rows
are the lanes of vectors, so that no sum over lanes is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import gossamer as gs
from examples.block_sparse_attention import schedule_scores
from examples.bound_kernel import bound_kernel
from examples.example import Call, Example, random_array
from examples.spmm import BLOCK, GROUP, load_product, padded_rows, random_product
from examples.torch_baseline import torch_call
from gossamer_formats import SparseTensor
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array

STRIP = 16

SR_BCRS = """
@T.prim_func
def sampled_in_sr_bcrs(
    data: T.handle, indptr: T.handle, indices: T.handle, x: T.handle, y: T.handle, out: T.handle,
    m: T.int64, n: T.int64, longest: T.int64, groups: T.int64, strip: T.int64, width: T.int64,
    features: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    IO = T.sp.dense_fixed((m + strip - 1) // strip)
    JO = T.sp.dense_varied(IO, (longest, groups), indptr, "int32")
    II = T.sp.dense_fixed(strip)
    JI = T.sp.compressed_fixed(JO, (n, width), indices, "int32")
    J_detach = T.sp.dense_fixed(n)
    F = T.sp.dense_fixed(features)
    A = T.sp.match_buffer(data, (IO, JO, II, JI), "float32")
    X = T.sp.match_buffer(x, (IO, II, F), "float32")
    Y = T.sp.match_buffer(y, (J_detach, F), "float32")
    OUT = T.sp.match_buffer(out, (IO, JO, II, JI), "float32")
    XT = T.sp.alloc_buffer((IO, F, II), "float32")
    S = T.sp.alloc_buffer((IO, JO, JI, II), "float32")
    with T.sp.iteration([IO, F, II], "SSS", "transpose") as [io, f, ii]:
        XT[io, f, ii] = X[io, ii, f]
    with T.sp.iteration([IO, JO, JI, II, F], "SSSSR", "scores") as [io, jo, ji, ii, f]:
        with T.init():
            S[io, jo, ji, ii] = 0.0
        S[io, jo, ji, ii] = S[io, jo, ji, ii] + XT[io, f, ii] * Y[ji, f]
    with T.sp.iteration([IO, JO, II, JI], "SSSS", "scale") as [io, jo, ii, ji]:
        OUT[io, jo, ii, ji] = A[io, jo, ii, ji] * S[io, jo, ji, ii]
"""

DBSR = """
@T.prim_func
def sampled_in_dbsr(
    data: T.handle, rows: T.handle, indptr: T.handle, indices: T.handle, x: T.handle, y: T.handle,
    out: T.handle, m: T.int64, n: T.int64, stored: T.int64, blocks: T.int64,
    block_rows: T.int64, block_columns: T.int64, features: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    O = T.sp.dense_fixed(1)
    IO = T.sp.compressed_fixed(
        O, ((m + block_rows - 1) // block_rows, stored), rows, "int32", padded=False
    )
    JO = T.sp.compressed_varied(
        IO, ((n + block_columns - 1) // block_columns, blocks), (indptr, indices), "int32"
    )
    II = T.sp.dense_fixed(block_rows)
    JI = T.sp.dense_fixed(block_columns)
    I_detach = T.sp.dense_fixed((m + block_rows - 1) // block_rows)
    J_detach = T.sp.dense_fixed((n + block_columns - 1) // block_columns)
    F = T.sp.dense_fixed(features)
    A = T.sp.match_buffer(data, (O, IO, JO, II, JI), "float32")
    X = T.sp.match_buffer(x, (I_detach, II, F), "float32")
    Y = T.sp.match_buffer(y, (J_detach, JI, F), "float32")
    OUT = T.sp.match_buffer(out, (O, IO, JO, II, JI), "float32")
    XT = T.sp.alloc_buffer((O, IO, F, II), "float32")
    S = T.sp.alloc_buffer((O, IO, JO, JI, II), "float32")
    with T.sp.iteration([O, IO, F, II], "SSSS", "transpose") as [o, io, f, ii]:
        XT[o, io, f, ii] = X[io, ii, f]
    with T.sp.iteration([O, IO, JO, JI, II, F], "SSSSSR", "scores") as [o, io, jo, ji, ii, f]:
        with T.init():
            S[o, io, jo, ji, ii] = 0.0
        S[o, io, jo, ji, ii] = S[o, io, jo, ji, ii] + XT[o, io, f, ii] * Y[jo, ji, f]
    with T.sp.iteration([O, IO, JO, II, JI], "SSSSS", "scale") as [o, io, jo, ii, ji]:
        OUT[o, io, jo, ii, ji] = A[o, io, jo, ii, ji] * S[o, io, jo, ji, ii]
"""


class Sampled(NamedTuple):
    """A sparse matrix and two dense ones."""

    matrix: sparse.csr_matrix
    x: Array
    y: Array


def schedule(script: str, sizes: Mapping[str, int]) -> ScheduleBuilder:
    """Return the schedule of both programs: strips or rows of blocks in parallel."""
    sch = gs.schedule(script, specialize=sizes).lower().lower()
    row, position = sch.get_loops("scale")[-4:-2]
    _, copy, *_ = sch.cache_write("scores", buffer="S_data", scope="local").names
    for block in (copy, "scores"):
        sch.compute_at(block, loop=position)
    sch.compute_at("transpose", loop=row)
    schedule_scores(sch, "scores", copy=copy)
    sch.vectorize(sch.get_loops("transpose")[-1])
    return sch.parallel(row, weight=f"T.int64(JO_indptr[{row}]) + {row}")


def prepare(script: str, stored: SparseTensor, fixed: Mapping[str, int], inputs: Sampled) -> Call:
    """Compile a program for a stored matrix; the call returns the values of the nonzeros."""
    sizes = {**fixed, "features": inputs.x.shape[1]}
    kernel = gs.compile(script, specialize=sizes, schedule=schedule(script, sizes))
    side = sizes.get("strip", BLOCK)
    columns = inputs.y
    if "block_columns" in sizes:
        columns = padded_rows(columns, BLOCK).reshape(-1, BLOCK, sizes["features"])
    out = np.zeros(stored.arrays["data"].shape, np.float32)
    rows = padded_rows(inputs.x, side).reshape(-1, side, sizes["features"])
    run = bound_kernel(kernel, stored, sizes, x=rows, y=columns, out=out)
    at = position_of_nonzeros(stored, inputs.matrix)

    def call() -> Array:
        run()
        return out[at]

    return call


def position_of_nonzeros(stored: SparseTensor, matrix: sparse.csr_matrix) -> Array:
    """Return the position in the values of a stored matrix of each nonzero of the CSR matrix."""
    numbers = matrix.copy()
    numbers.data = np.arange(matrix.nnz, dtype=np.float64) + 1
    fixed: dict[str, Any] = {name: stored.sizes[name] for name in FIXED[stored.format]}
    values = gs.from_scipy(numbers).asformat(stored.format, **fixed).arrays["data"]
    at = np.flatnonzero(values)
    return at[np.argsort(values[at])]


FIXED = {"sr_bcrs": ("strip", "width"), "dbsr": ("block_rows", "block_columns")}


def sr_bcrs(inputs: Sampled) -> Call:
    """Prepare the program over SR-BCRS."""
    stored = gs.from_scipy(inputs.matrix).asformat("sr_bcrs", strip=STRIP, width=GROUP)
    return prepare(SR_BCRS, stored, {"strip": STRIP, "width": GROUP}, inputs)


def dbsr(inputs: Sampled) -> Call:
    """Prepare the program over DBSR."""
    stored = gs.from_scipy(inputs.matrix).asformat("dbsr", block_rows=BLOCK, block_columns=BLOCK)
    return prepare(DBSR, stored, {"block_rows": BLOCK, "block_columns": BLOCK}, inputs)


def hyb(inputs: Sampled) -> Call:
    """Prepare the program over hyb, by the operator."""
    parts = gs.decompose(inputs.matrix, "hyb")
    return lambda: gs.sddmm(parts, inputs.x, inputs.y) * inputs.matrix.data


def csr(inputs: Sampled) -> Call:
    """Prepare the operator for CSR."""
    tensor = gs.from_scipy(inputs.matrix)
    return lambda: gs.sddmm(tensor, inputs.x, inputs.y) * inputs.matrix.data


# --- without gossamer


def rows_of(matrix: sparse.csr_matrix) -> Array:
    """Return the row of each nonzero."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def numpy_gathered(inputs: Sampled) -> Call:
    """Return NumPy's sums of products of gathered rows."""
    rows, columns = rows_of(inputs.matrix), inputs.matrix.indices

    def call() -> Array:
        products = np.einsum("pk,pk->p", inputs.x[rows], inputs.y[columns])
        return np.asarray(inputs.matrix.data * products)

    return call


@torch_call
def torch_sampled(torch: Any, inputs: Sampled) -> Callable[[], Any]:
    """Return PyTorch's `sampled_addmm`."""
    matrix = inputs.matrix
    arrays = [torch.from_numpy(each) for each in (matrix.indptr, matrix.indices)]
    values = torch.from_numpy(matrix.data)
    ones = torch.sparse_csr_tensor(*arrays, torch.zeros_like(values), size=matrix.shape)
    x, y = torch.from_numpy(inputs.x), torch.from_numpy(inputs.y).T
    return lambda: torch.sparse.sampled_addmm(ones, x, y).values() * values


# --- inputs


def random_operands(matrix: sparse.csr_matrix, features: int) -> Sampled:
    """Return random dense matrices for a sparse one."""
    matrix.sort_indices()
    x, y = (
        random_array(size, features, seed=seed)
        for seed, size in zip((2, 3), matrix.shape, strict=True)
    )
    return Sampled(matrix, x, y)


def oracle(inputs: Sampled) -> Array:
    """Return the values in float64."""
    rows, columns = rows_of(inputs.matrix), inputs.matrix.indices
    products = np.empty(rows.size)
    for start in range(0, rows.size, 1 << 16):
        chunk = slice(start, start + (1 << 16))
        x, y = inputs.x[rows[chunk]].astype(np.float64), inputs.y[columns[chunk]].astype(np.float64)
        products[chunk] = np.einsum("pk,pk->p", x, y)
    return inputs.matrix.data.astype(np.float64) * products


def magnitude(inputs: Sampled) -> Array:
    """Return the values for absolute values."""
    return oracle(Sampled(abs(inputs.matrix), np.abs(inputs.x), np.abs(inputs.y)))


def random_pattern(rows: int, columns: int, features: int, density: float) -> Sampled:
    """Return the matrix of a random product, with dense matrices."""
    return random_operands(random_product(rows, columns, 1, density).matrix, features)


EXAMPLE = Example(
    "sddmm",
    cases={
        "random": lambda: random_pattern(70, 50, 32, 0.1),
        "odd sizes": lambda: random_pattern(37, 29, 19, 0.3),
        "no nonzeros": lambda: random_pattern(9, 7, 8, 0.0),
        "no rows": lambda: random_pattern(0, 7, 8, 0.0),
    },
    datasets={
        name: partial(lambda name: random_operands(load_product(name, 1).matrix, 64), name)
        for name in ("pubmed", "dlmc_tr_mag80_dec3_ffn1", "blocks_4096")
    },
    oracle=oracle,
    magnitude=magnitude,
    terms=lambda inputs: int(inputs.x.shape[1]),
    programs={"hyb": hyb, "sr_bcrs": sr_bcrs, "dbsr": dbsr, "csr": csr},
    baselines={"numpy_gathered": numpy_gathered, "torch_sampled": torch_sampled},
)
