"""Sparse matrix times dense matrix over the composable format hyb, over SR-BCRS and over DBSR.

    C[i, k] = sum over j of A[i, j] * B[j, k]

The programs for SR-BCRS and DBSR are those that SparseTIR's authors publish for pruned weights (Ye and
others, ASPLOS 2023, section 4.3). Operands have the shape of the blocks, so the last block is padded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import gossamer as gs
from benchmarks.matrices import MissingMatrixError, load_matrix
from examples.bound_kernel import bound_kernel
from examples.example import Call, Example, UnavailableError, random_array
from examples.torch_baseline import torch_call
from gossamer_schedule import ScheduleBuilder
from gossamer_support.arrays import Array

STRIP, GROUP = 8, 8
"""Rows of a strip of SR-BCRS, and columns of a group."""
BLOCK = 16
LANES, TILE = 16, 2
MAX_DENSE = 1 << 26
"""Most elements of a matrix that is made dense."""
ROWS = 8
"""Rows of a tile: with `TILE` vectors they fill half of the registers of AVX-512."""

SR_BCRS = """
@T.prim_func
def sr_bcrs_times_dense(
    data: T.handle, indptr: T.handle, indices: T.handle, b: T.handle, c: T.handle,
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
    B = T.sp.match_buffer(b, (J_detach, F), "float32")
    C = T.sp.match_buffer(c, (IO, II, F), "float32")
    with T.sp.iteration([IO, JO, II, JI, F], "SRSRS", "product") as [io, jo, ii, ji, f]:
        with T.init():
            C[io, ii, f] = 0.0
        C[io, ii, f] = C[io, ii, f] + A[io, jo, ii, ji] * B[ji, f]
"""

DBSR = """
@T.prim_func
def dbsr_times_dense(
    data: T.handle, rows: T.handle, indptr: T.handle, indices: T.handle, b: T.handle, c: T.handle,
    m: T.int64, n: T.int64, stored: T.int64, blocks: T.int64,
    block_rows: T.int64, block_columns: T.int64, features: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 2})
    O = T.sp.dense_fixed(1)
    IO = T.sp.compressed_fixed(O, ((m + block_rows - 1) // block_rows, stored), rows, "int32", padded=False)
    JO = T.sp.compressed_varied(
        IO, ((n + block_columns - 1) // block_columns, blocks), (indptr, indices), "int32"
    )
    II = T.sp.dense_fixed(block_rows)
    JI = T.sp.dense_fixed(block_columns)
    I_detach = T.sp.dense_fixed((m + block_rows - 1) // block_rows)
    J_detach = T.sp.dense_fixed((n + block_columns - 1) // block_columns)
    F = T.sp.dense_fixed(features)
    A = T.sp.match_buffer(data, (O, IO, JO, II, JI), "float32")
    B = T.sp.match_buffer(b, (J_detach, JI, F), "float32")
    C = T.sp.match_buffer(c, (I_detach, II, F), "float32")
    with T.sp.iteration([O, IO, JO, II, JI, F], "SSRSRS", "product") as [o, io, jo, ii, ji, f]:
        with T.init():
            C[io, ii, f] = 0.0
        C[io, ii, f] = C[io, ii, f] + A[o, io, jo, ii, ji] * B[jo, ji, f]
"""


class Product(NamedTuple):
    """A sparse matrix and a dense one."""

    matrix: sparse.csr_matrix
    dense: Array


def schedule_tiles(
    script: str, sizes: Mapping[str, int], *, rows: int, offsets: str
) -> ScheduleBuilder:
    """Return the schedule of both programs: a tile of `rows` rows and a few vectors in registers.

    Strips or rows of blocks run in parallel, in chunks of equal work: `offsets` is the array that counts it.
    """
    sch = gs.schedule(script, specialize=sizes).lower().lower()
    *outer, jo, ii, ji, f = sch.get_loops("product")
    panel, row = sch.split(ii, factors=(None, rows)).names
    tile, vector, lane = sch.split(f, factors=(None, TILE, LANES)).names
    sch.reorder(tile, panel, jo, ji, row, vector, lane)
    _, copy, *_ = sch.cache_write("product", buffer="C_data", scope="local").names
    sch.reverse_compute_at(copy, loop=panel)
    init, *_ = sch.decompose_reduction("product", loop=jo).names
    sch.split(sch.get_loops(copy)[-1], factors=(TILE, LANES))
    for block in (init, "product", copy):
        row, vector, lane = sch.get_loops(block)[-3:]
        sch.unroll(row).unroll(vector).vectorize(lane)
    return sch.parallel(outer[-1], weight=f"T.int64({offsets}[{outer[-1]}]) + {outer[-1]}")


def padded_rows(array: Array, multiple: int) -> Array:
    """Return an array with rows of zeros up to a multiple."""
    missing = -len(array) % multiple
    return np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)])


def hyb(inputs: Product, *, c: int = 1, k: int | None = None) -> Call:
    """Prepare the program over hyb: one iteration for each part, by the operator."""
    parts = gs.decompose(inputs.matrix, "hyb", c=c, k=k)
    result = np.empty((parts.shape[0], inputs.dense.shape[1]), np.float32)
    return partial(gs.spmm, parts, inputs.dense, out=result)


def sr_bcrs(inputs: Product) -> Call:
    """Prepare the program over SR-BCRS."""
    stored = gs.from_scipy(inputs.matrix).asformat("sr_bcrs", strip=STRIP, width=GROUP)
    rows, features = stored.shape[0], inputs.dense.shape[1]
    fixed = {"strip": STRIP, "width": GROUP, "features": features}
    schedule = schedule_tiles(SR_BCRS, fixed, rows=STRIP, offsets="JO_indptr")
    kernel = gs.compile(SR_BCRS, specialize=fixed, schedule=schedule)
    result = np.empty((-(-rows // STRIP), STRIP, features), np.float32)
    run = bound_kernel(kernel, stored, fixed, b=inputs.dense, c=result)

    def call() -> Array:
        run()
        return result.reshape(-1, features)[:rows]

    return call


def dbsr(inputs: Product) -> Call:
    """Prepare the program over DBSR; rows of blocks without nonzeros are not visited."""
    stored = gs.from_scipy(inputs.matrix).asformat("dbsr", block_rows=BLOCK, block_columns=BLOCK)
    rows, features = stored.shape[0], inputs.dense.shape[1]
    fixed = {"block_rows": BLOCK, "block_columns": BLOCK, "features": features}
    schedule = schedule_tiles(DBSR, fixed, rows=ROWS, offsets="JO_indptr")
    kernel = gs.compile(DBSR, specialize=fixed, schedule=schedule)
    result = np.zeros((-(-rows // BLOCK), BLOCK, features), np.float32)
    operand = padded_rows(inputs.dense, BLOCK).reshape(-1, BLOCK, features)
    run = bound_kernel(kernel, stored, fixed, b=operand, c=result)

    def call() -> Array:
        run()
        return result.reshape(-1, features)[:rows]

    return call


def csr(inputs: Product) -> Call:
    """Prepare the operator for CSR."""
    result = np.empty((inputs.matrix.shape[0], inputs.dense.shape[1]), np.float32)
    bound = gs.spmm.bind(gs.from_scipy(inputs.matrix), inputs.dense, out=result)

    def call() -> Array:
        bound()
        return result

    return call


# --- without gossamer


def scipy_csr(inputs: Product) -> Call:
    """Return SciPy's product."""
    return lambda: np.asarray(inputs.matrix @ inputs.dense)


def numpy_dense(inputs: Product) -> Call:
    """Return NumPy's product with the dense matrix; raise `UnavailableError` if that is large."""
    if inputs.matrix.shape[0] * inputs.matrix.shape[1] > MAX_DENSE:
        raise UnavailableError("the dense matrix is too large")
    whole = inputs.matrix.toarray()
    return lambda: whole @ inputs.dense


@torch_call
def torch_csr(torch: Any, inputs: Product) -> Callable[[], Any]:
    """Return PyTorch's product with a matrix in CSR."""
    matrix, dense = inputs.matrix, torch.from_numpy(inputs.dense)
    arrays = (torch.from_numpy(each) for each in (matrix.indptr, matrix.indices, matrix.data))
    stored = torch.sparse_csr_tensor(*arrays, size=matrix.shape)
    return lambda: stored @ dense


# --- inputs


def random_product(rows: int, columns: int, features: int, density: float) -> Product:
    """Return a random matrix with a full row and empty rows, and a dense matrix."""
    rng = np.random.default_rng(rows + columns)
    random = sparse.random_array(
        (rows, columns), density=density, rng=rng, dtype=np.float32
    ).tolil()
    if rows > 20:
        random[2] = rng.random(columns, dtype=np.float32)
        random[8:20] = 0
    return Product(sparse.csr_matrix(random), random_array(columns, features, seed=2))


def load_product(name: str, features: int) -> Product:
    """Return a matrix of the benchmark."""
    try:
        matrix = load_matrix(name).csr
    except MissingMatrixError as error:
        raise UnavailableError(str(error)) from None
    return Product(matrix, random_array(matrix.shape[1], features, seed=2))


def oracle(inputs: Product) -> Array:
    """Return the product in float64."""
    return np.asarray(inputs.matrix.astype(np.float64) @ inputs.dense.astype(np.float64))


def magnitude(inputs: Product) -> Array:
    """Return the product of absolute values."""
    return oracle(Product(abs(inputs.matrix), np.abs(inputs.dense)))


def terms(inputs: Product) -> int:
    """Return the nonzeros of the longest row."""
    return int(np.diff(inputs.matrix.indptr).max(initial=0))


EXAMPLE = Example(
    "spmm",
    cases={
        "random": lambda: random_product(70, 50, 32, 0.1),
        "odd sizes": lambda: random_product(37, 29, 19, 0.3),
        "no nonzeros": lambda: random_product(9, 7, 8, 0.0),
        "no rows": lambda: random_product(0, 7, 8, 0.0),
        "no columns": lambda: random_product(7, 0, 8, 0.0),
    },
    datasets={
        name: partial(load_product, name, 128)
        for name in ("pubmed", "ppi_graphsaint", "dlmc_tr_mag80_dec3_ffn1", "blocks_4096")
    },
    oracle=oracle,
    magnitude=magnitude,
    terms=terms,
    programs={"hyb": hyb, "sr_bcrs": sr_bcrs, "dbsr": dbsr, "csr": csr},
    baselines={"scipy_csr": scipy_csr, "numpy_dense": numpy_dense, "torch_csr": torch_csr},
)
