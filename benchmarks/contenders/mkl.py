"""MKL's inspector-executor products, through its wheel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.contenders import numba
from benchmarks.contenders.contender import PRODUCTS, Prepare, Prepared
from benchmarks.contenders.mkl_blocks import MklBlocks
from benchmarks.contenders.mkl_library import MklHandle, MklMatrix, set_mkl_threads
from benchmarks.operator_case import OperatorCase


def prepare(case: OperatorCase, threads: int) -> Prepared:
    """Return the product of a matrix in CSR, with hint and optimize."""
    return prepared_product(case, threads, lambda: mkl_matrix(case, optimize=True))


def prepare_plain(case: OperatorCase, threads: int) -> Prepared:
    """Return the product of a matrix in CSR, with the handle only; also attention, of which it is a part."""
    return PLAIN[case.op](case, threads)


def mkl_matrix(case: OperatorCase, *, optimize: bool) -> MklMatrix:
    """Return the handle of the matrix."""
    return MklMatrix(case.csr, features=case.width, optimize=optimize)


def prepare_plain_product(case: OperatorCase, threads: int) -> Prepared:
    """Return the product of a matrix in CSR, with the handle only."""
    return prepared_product(case, threads, lambda: mkl_matrix(case, optimize=False))


def prepare_plain_attention(case: OperatorCase, threads: int) -> Prepared:
    """Compute the softmax of the scores by the loops for Numba, into the values of MKL's matrix, and then
    MKL's product."""
    q, k, v = case.operands
    shares = numba.shares_call(case, q, k)
    set_mkl_threads(threads)
    matrix = mkl_matrix(case, optimize=False)
    product = matrix.product(v, case.out)

    def call() -> None:
        shares(matrix.values)
        product()

    def activate() -> None:
        set_mkl_threads(threads)
        numba.set_threads(threads)

    return Prepared(call, activate)


def prepare_blocks(case: OperatorCase, threads: int) -> Prepared:
    """Return the product of a matrix in BSR, with hint and optimize."""
    return prepared_product(case, threads, lambda: MklBlocks(case.bsr, features=case.features))


def prepared_product(case: OperatorCase, threads: int, make: Callable[[], MklHandle]) -> Prepared:
    """Return a call of MKL with a number of threads, for which it is also optimized."""
    set_mkl_threads(threads)
    call = make().product(case.operands[0], case.out)
    return Prepared(call, partial(set_mkl_threads, threads))


PLAIN: dict[str, Prepare] = {
    **dict.fromkeys(PRODUCTS, prepare_plain_product),
    "attention": prepare_plain_attention,
}
"""The operators of `prepare_plain`."""
