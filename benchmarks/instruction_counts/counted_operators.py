"""The operators whose instructions are counted: the program of each, and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.instruction_counts.emulated_instructions import ArgumentOfC
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import operator_named
from gossamer_formats import from_scipy
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_testkit import script
from gossamer_testkit.bsr_product import bsr_product

COUNTED_FEATURES = 128
ROWS, COLUMNS, DENSITY, COUNTED_BLOCK = 24, 400, 0.16, 8
VECTOR_ROWS = 960
"""Rows of the matrix that is multiplied with a vector: so many that the instructions of a call, about 100,
are few beside those of the rows."""


class CountedProblem(NamedTuple):
    """The arguments of the C loop of an operator, whose last one is the result, those of a kernel by name,
    the name of the kernel's result, and the expected result."""

    loop: Sequence[ArgumentOfC]
    kernel: Mapping[str, ArgumentOfC]
    result: str
    expected: np.ndarray[Any, Any]
    nnz: int
    features: int


SVE_KERNEL, SME_KERNEL, RVV_KERNEL = "gossamer", "gossamer, SME", "gossamer, RISC-V"
KERNEL_TARGETS = {
    SVE_KERNEL: "llvm-sve",
    SME_KERNEL: "llvm-sve:features=sme",
    RVV_KERNEL: "llvm-rvv",
}
C_COMPILERS = ("gcc", "clang")
RVV_COMPILER = "gcc, scalar RISC-V"
"""Before version 14, gcc has no vectors of RISC-V."""
ON_RISCV = (RVV_KERNEL, RVV_COMPILER)


class CountedOperator(NamedTuple):
    """The program of an operator with its number of features, its problem from a source of random numbers,
    and who compiles it: kernels of `KERNEL_TARGETS`, and compilers of its C loop, the file with its name in
    `contenders/c_loops`."""

    program: Callable[[], Module]
    problem_from: Callable[[np.random.Generator], CountedProblem]
    compiled_by: tuple[str, ...] = (SVE_KERNEL, *C_COMPILERS)

    def problem(self) -> CountedProblem:
        """Return arguments of small integers, the same in every run."""
        return self.problem_from(np.random.default_rng(0))


def _operator_program(op: str, features: int | None = None) -> Module:
    """Return the program of an operator as it is compiled for a call."""
    return module_of(operator_named(op).program, Variant(features=features))


def _spmv_problem(random: np.random.Generator) -> CountedProblem:
    matrix, arrays = _csr_arguments(random, rows=VECTOR_ROWS)
    x = _integers(random, COLUMNS)
    y = np.full(VECTOR_ROWS, np.nan, np.float32)
    arguments = {**arrays, "a": matrix.data, "x": x, "y": y}
    loop = (VECTOR_ROWS, matrix.indptr, matrix.indices, matrix.data, x, y)
    return CountedProblem(loop, arguments, "y", matrix @ x, matrix.nnz, 1)


def _spmm_problem(random: np.random.Generator) -> CountedProblem:
    matrix, arrays = _csr_arguments(random)
    b = _integers(random, COLUMNS, COUNTED_FEATURES)
    c = np.full((ROWS, COUNTED_FEATURES), np.nan, np.float32)
    arguments = {**arrays, "a": matrix.data, "b": b, "c": c}
    loop = (ROWS, COUNTED_FEATURES, matrix.indptr, matrix.indices, matrix.data, b, c)
    return CountedProblem(loop, arguments, "c", matrix @ b, matrix.nnz, COUNTED_FEATURES)


def _sddmm_problem(random: np.random.Generator) -> CountedProblem:
    matrix, arrays = _csr_arguments(random)
    y = _integers(random, COLUMNS, COUNTED_FEATURES)
    x = _integers(random, ROWS, COUNTED_FEATURES)
    out = np.full(matrix.nnz, np.nan, np.float32)
    rows, columns = matrix.nonzero()
    arguments = {**arrays, "x": x, "y": y, "out": out}
    products = np.einsum("ek,ek->e", x[rows], y[columns])
    loop = (ROWS, COUNTED_FEATURES, matrix.indptr, matrix.indices, x, y, out)
    return CountedProblem(loop, arguments, "out", products, matrix.nnz, COUNTED_FEATURES)


def _bsr_spmm_problem(
    random: np.random.Generator,
    *,
    size: int = COUNTED_BLOCK,
    block_rows: int = ROWS // COUNTED_BLOCK,
    dtype: str = "float32",
) -> CountedProblem:
    """Return a product with blocks of `size` rows and columns, whose operands are of a dtype."""
    block_columns = COLUMNS // size
    blocks = _random_csr(random, block_rows, block_columns)
    values = _integers(random, blocks.nnz, size, size)
    b = _integers(random, block_columns, size, COUNTED_FEATURES)
    c = np.full((block_rows, size, COUNTED_FEATURES), np.nan, np.float32)
    matrix = sparse.bsr_array((values, blocks.indices, blocks.indptr), (block_rows * size, COLUMNS))
    expected = (matrix @ b.reshape(COLUMNS, COUNTED_FEATURES)).reshape(c.shape)
    values, b = values.astype(dtype), b.astype(dtype)
    arguments = {
        "a": values, "b": b, "c": c, "indptr": blocks.indptr, "indices": blocks.indices,
        "mb": block_rows, "nb": block_columns, "nnzb": blocks.nnz, "bh": size, "bw": size,
        "feat": COUNTED_FEATURES,
    }  # fmt: skip
    loop = (block_rows, size, COUNTED_FEATURES, blocks.indptr, blocks.indices, values, b, c)
    return CountedProblem(loop, arguments, "c", expected, values.size, COUNTED_FEATURES)


TILE_COLUMNS, TILED_ROWS, TILED_COLUMNS = 16, 512, 32
"""The columns of a tile, as the script has them, and a matrix of one panel of rows in two tiles."""


def _tiled_program() -> Module:
    return specialize(parse_module(script("tiled_csr_spmm")), {"feat_size": COUNTED_FEATURES})


def _tiled_problem(random: np.random.Generator) -> CountedProblem:
    """Return a product with 8 nonzeros of each row in each tile."""
    dense = np.zeros((TILED_ROWS, TILED_COLUMNS), np.float32)
    for row in dense.reshape(-1, TILE_COLUMNS):
        row[random.choice(TILE_COLUMNS, TILE_COLUMNS // 2, replace=False)] = random.integers(1, 4)
    matrix = sparse.csr_array(dense)
    stored = from_scipy(matrix).asformat("tiled_csr", tile_columns=TILE_COLUMNS).arrays
    b = _integers(random, TILED_COLUMNS, COUNTED_FEATURES)
    c = np.zeros((TILED_ROWS, COUNTED_FEATURES), np.float32)
    arguments: dict[str, ArgumentOfC] = {
        "indptr": stored["indptr"], "indices": stored["indices"], "a": stored["data"], "b": b, "c": c,
        "m": TILED_ROWS, "n": TILED_COLUMNS, "nnz": matrix.nnz, "feat_size": COUNTED_FEATURES,
    }  # fmt: skip
    return CountedProblem((), arguments, "c", matrix @ b, matrix.nnz, COUNTED_FEATURES)


MATRIX_BLOCK, MATRIX_BLOCK_ROWS = 16, 3
"""The rows and columns of blocks, and the number of block rows, of the products that are counted with the
matrix registers of SME."""


def _matrix_product(dtype: str) -> CountedOperator:
    """Return the product with blocks of a dtype and results of float32, without and with SME."""
    program = partial(bsr_product, dtype, bh=MATRIX_BLOCK, bw=MATRIX_BLOCK, feat=COUNTED_FEATURES)
    problem = partial(
        _bsr_spmm_problem, size=MATRIX_BLOCK, block_rows=MATRIX_BLOCK_ROWS, dtype=dtype
    )
    return CountedOperator(program, problem, compiled_by=(SVE_KERNEL, SME_KERNEL))


def _csr_arguments(
    random: np.random.Generator, *, rows: int = ROWS
) -> tuple[Any, dict[str, ArgumentOfC]]:
    """Return a matrix of small integers, and the arguments of kernels for its pattern and the sizes."""
    matrix = _random_csr(random, rows, COLUMNS)
    matrix.data[:] = _integers(random, matrix.nnz)
    sizes = {"m": rows, "n": COLUMNS, "nnz": matrix.nnz, "feat_size": COUNTED_FEATURES}
    return matrix, {"indptr": matrix.indptr, "indices": matrix.indices, **sizes}


def _random_csr(random: np.random.Generator, rows: int, columns: int) -> Any:
    return sparse.random_array(
        (rows, columns), density=DENSITY, format="csr", dtype=np.float32, rng=random
    )


def _integers(random: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return random.integers(1, 4, shape).astype(np.float32)


_ON_ARM = {
    "spmv": CountedOperator(partial(_operator_program, "spmv"), _spmv_problem),
    "spmm": CountedOperator(partial(_operator_program, "spmm", COUNTED_FEATURES), _spmm_problem),
    "sddmm": CountedOperator(partial(_operator_program, "sddmm", COUNTED_FEATURES), _sddmm_problem),
    "bsr_spmm": CountedOperator(
        partial(bsr_product, bh=COUNTED_BLOCK, bw=COUNTED_BLOCK, feat=COUNTED_FEATURES),
        _bsr_spmm_problem,
    ),
}
COUNTED = {
    **_ON_ARM,
    "tiled_spmm": CountedOperator(_tiled_program, _tiled_problem, compiled_by=(SVE_KERNEL,)),
    "bsr_spmm, 16 x 16, float32": _matrix_product("float32"),
    "bsr_spmm, 16 x 16, float16": _matrix_product("float16"),
    **{f"{op}, RISC-V": each._replace(compiled_by=ON_RISCV) for op, each in _ON_ARM.items()},
}
"""The operators, by the names of their C loops, those without one, and the former on RISC-V."""


def name_of_loop(op: str) -> str:
    """Return the name of the C loop of an operator.

    >>> name_of_loop("spmv, RISC-V")
    'spmv'
    """
    return op.partition(",")[0]
