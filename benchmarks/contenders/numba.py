"""Hand-written loops in Numba: rows in parallel, everything inlined.

Numba is loaded when a loop is first requested; an ImportError is raised if it is not installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benchmarks.contenders.contender import Prepared
from benchmarks.operator_case import OperatorCase

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array

ParallelLoop: TypeAlias = Callable[..., None]

# ruff: noqa: ANN001, ANN202 (compiled functions: Numba infers their types)


@cache
def load_numba() -> Any:
    """Load Numba."""
    import numba

    return numba


def set_threads(threads: int) -> None:
    """Set the number of threads of Numba."""
    numba = load_numba()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


@cache
def spmm_loop() -> ParallelLoop:
    """C = A B over (indptr, indices, data, B, C)."""
    numba = load_numba()

    def spmm(indptr, indices, data, b, c):  # type: ignore[no-untyped-def]  # Numba infers them
        for i in numba.prange(len(indptr) - 1):
            for k in range(b.shape[1]):
                c[i, k] = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                value = data[p]
                j = indices[p]
                for k in range(b.shape[1]):
                    c[i, k] += value * b[j, k]

    return compile_loop(spmm)


@cache
def spmv_loop() -> ParallelLoop:
    """y = A x over (indptr, indices, data, x, y)."""
    numba = load_numba()

    def spmv(indptr, indices, data, x, y):  # type: ignore[no-untyped-def]  # Numba infers them
        for i in numba.prange(len(indptr) - 1):
            total = x.dtype.type(0.0)
            for p in range(indptr[i], indptr[i + 1]):
                total += data[p] * x[indices[p]]
            y[i] = total

    return compile_loop(spmv)


@cache
def sddmm_loop() -> ParallelLoop:
    """out[p] = X[i] . Y[j] over (indptr, indices, X, Y, out)."""
    numba = load_numba()

    def sddmm(indptr, indices, x, y, out):  # type: ignore[no-untyped-def]  # Numba infers them
        for i in numba.prange(len(indptr) - 1):
            for p in range(indptr[i], indptr[i + 1]):
                total = x.dtype.type(0.0)
                j = indices[p]
                for k in range(x.shape[1]):
                    total += x[i, k] * y[j, k]
                out[p] = total

    return compile_loop(sddmm)


@cache
def bsr_spmm_loop() -> ParallelLoop:
    """C = A B over (indptr, indices, blocks, B, C), rows of blocks in parallel."""
    numba = load_numba()

    def bsr_spmm(indptr, indices, data, b, c):  # type: ignore[no-untyped-def]  # Numba infers them
        height, width = data.shape[1], data.shape[2]
        for block_row in numba.prange(len(indptr) - 1):
            for i in range(block_row * height, (block_row + 1) * height):
                for k in range(b.shape[1]):
                    c[i, k] = 0.0
            for p in range(indptr[block_row], indptr[block_row + 1]):
                for i in range(height):
                    for j in range(width):
                        value = data[p, i, j]
                        row, source = block_row * height + i, indices[p] * width + j
                        for k in range(b.shape[1]):
                            c[row, k] += value * b[source, k]

    return compile_loop(bsr_spmm)


@cache
def softmax_loop() -> ParallelLoop:
    """Return the softmax of the values of each row, times a factor, in place, over (indptr, factor,
    values)."""
    numba = load_numba()

    def softmax(indptr, factor, values):  # type: ignore[no-untyped-def]  # Numba infers them
        for i in numba.prange(len(indptr) - 1):
            begin, end = indptr[i], indptr[i + 1]
            if begin == end:
                continue
            most = values[begin] * factor
            for p in range(begin, end):
                values[p] *= factor
                most = max(most, values[p])
            total = values.dtype.type(0.0)
            for p in range(begin, end):
                values[p] = math.exp(values[p] - most)
                total += values[p]
            share = values.dtype.type(1.0) / total
            for p in range(begin, end):
                values[p] *= share

    return compile_loop(softmax)


@cache
def attention_loop() -> ParallelLoop:
    """Compute attention over (indptr, indices, factor, Q, K, V, scores, out), all of it row by row."""
    numba = load_numba()

    def attention(indptr, indices, factor, q, k, v, scores, out):  # type: ignore[no-untyped-def]  # Numba infers them
        for i in numba.prange(len(indptr) - 1):
            begin, end = indptr[i], indptr[i + 1]
            for d in range(v.shape[1]):
                out[i, d] = 0.0
            if begin == end:
                continue
            most = q.dtype.type(-math.inf)
            for p in range(begin, end):
                score = q.dtype.type(0.0)
                for d in range(q.shape[1]):
                    score += q[i, d] * k[indices[p], d]
                scores[p] = score * factor
                most = max(most, scores[p])
            total = q.dtype.type(0.0)
            for p in range(begin, end):
                scores[p] = math.exp(scores[p] - most)
                total += scores[p]
            for p in range(begin, end):
                share = scores[p] / total
                for d in range(v.shape[1]):
                    out[i, d] += share * v[indices[p], d]

    return compile_loop(attention)


def shares_call(case: OperatorCase, q: Array, k: Array) -> Callable[[Array], None]:
    """Write the softmax of the scores to an array, by two loops; ImportError as for all loops."""
    sddmm, softmax = sddmm_loop(), softmax_loop()
    indptr, indices = case.csr.indptr, case.csr.indices
    factor = q.dtype.type(1.0 / math.sqrt(case.features))

    def shares(values: Array) -> None:
        sddmm(indptr, indices, q, k, values)
        softmax(indptr, factor, values)

    return shares


def attention_call(case: OperatorCase) -> Callable[[], None]:
    """Return attention by three loops, one after the other."""
    q, k, v = case.operands
    shares, spmm = shares_call(case, q, k), spmm_loop()
    values = np.empty(case.csr.nnz, dtype=q.dtype)

    def call() -> None:
        shares(values)
        spmm(case.csr.indptr, case.csr.indices, values, v, case.out)

    return call


def prepare_fused(case: OperatorCase, threads: int) -> Prepared:
    """Return attention by one loop over rows."""
    loop, scores = attention_loop(), np.empty(case.csr.nnz, dtype=case.dtype)
    factor = case.dtype.type(1.0 / math.sqrt(case.features))
    structure = (case.csr.indptr, case.csr.indices)
    call = partial(loop, *structure, factor, *case.operands, scores, case.out)
    return Prepared(call, partial(set_threads, threads))


def compile_loop(function: ParallelLoop) -> ParallelLoop:
    """Compile a parallel loop that allows reassociation, like `-ffast-math` in C."""
    loop: ParallelLoop = load_numba().njit(parallel=True, fastmath=True, boundscheck=False)(
        function
    )
    return loop


def spmm_call(case: OperatorCase) -> Callable[[], None]:
    """Return the product with a matrix in CSR."""
    return csr_call(spmm_loop(), case, case.csr.data)


def spmv_call(case: OperatorCase) -> Callable[[], None]:
    """Return the product with a vector."""
    return csr_call(spmv_loop(), case, case.csr.data)


def sddmm_call(case: OperatorCase) -> Callable[[], None]:
    """Return the sampled product, which does not read the values."""
    return csr_call(sddmm_loop(), case)


def csr_call(loop: ParallelLoop, case: OperatorCase, *values: Array) -> Callable[[], None]:
    """Return a loop over the rows of a matrix in CSR with its arguments."""
    return partial(loop, case.csr.indptr, case.csr.indices, *values, *case.operands, case.out)


def bsr_spmm_call(case: OperatorCase) -> Callable[[], None]:
    """Return the product with a matrix in BSR."""
    blocks: Any = case.bsr
    arrays = blocks.indptr, blocks.indices, blocks.data
    return partial(bsr_spmm_loop(), *arrays, *case.operands, case.out)


CALLS: dict[str, Callable[[OperatorCase], Callable[[], None]]] = {
    "spmm": spmm_call,
    "spmv": spmv_call,
    "sddmm": sddmm_call,
    "bsr_spmm": bsr_spmm_call,
    "attention": attention_call,
}


def prepare(case: OperatorCase, threads: int) -> Prepared:
    """Return the hand-written parallel loop; for attention a composition of three."""
    return Prepared(CALLS[case.op](case), partial(set_threads, threads))
