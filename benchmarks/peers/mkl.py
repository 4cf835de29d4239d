"""MKL's inspector-executor products, through the `mkl` wheel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.harness.rounds import timed_call
from benchmarks.operators.bsr_spmm import BsrSpmm
from benchmarks.operators.problem import Problem
from benchmarks.peers import numba
from benchmarks.peers.mkl_blocks import MklBlocks
from benchmarks.peers.peer import Prepared, UnavailableError
from gossamer.cli.bench import mkl
from gossamer_formats import from_scipy
from gossamer_ir.errors import ArgumentError


def prepare(problem: Problem, threads: int, *, optimize: bool) -> Prepared:
    """The product of a matrix in CSR, with hint and optimize or with the handle only."""
    if problem.op == "sddmm":
        raise UnavailableError("MKL has no sampled product")
    if problem.op == "attention":
        return prepare_attention(problem, threads, optimize=optimize)
    features = problem.features if problem.operands[0].ndim > 1 else None

    def matrix() -> mkl.MklMatrix:
        return mkl.MklMatrix(from_scipy(problem.csr), features=features, optimize=optimize)

    return prepared(problem, threads, matrix)


def prepare_attention(problem: Problem, threads: int, *, optimize: bool) -> Prepared:
    """Computes the softmax of the scores by the loops for Numba, into the values of MKL's matrix, and then
    MKL's product."""
    if optimize:
        raise UnavailableError("what is optimized must keep its values")
    result = problem.empty_result()
    q, k, v = problem.operands
    try:
        shares = numba.shares_call(problem, q, k)
        mkl.set_num_threads(threads)
        matrix = mkl.MklMatrix(from_scipy(problem.csr), features=problem.features, optimize=False)
        product = matrix.product(v, result)
    except (ArgumentError, ImportError) as error:
        raise UnavailableError(str(error)) from None

    def call() -> None:
        shares(matrix.values)
        product()

    def activate() -> None:
        mkl.set_num_threads(threads)
        numba.set_threads(threads)

    return Prepared(timed_call(call, activate), lambda: result)


def prepare_blocks(problem: Problem, threads: int) -> Prepared:
    """The product of a matrix in BSR, with hint and optimize."""
    if not isinstance(problem, BsrSpmm):
        raise UnavailableError("for matrices of blocks only")
    return prepared(problem, threads, lambda: MklBlocks(problem.bsr, features=problem.features))


def prepared(problem: Problem, threads: int, make: Callable[[], mkl.MklHandle]) -> Prepared:
    """Returns a call of MKL with a number of threads, for which it is also optimized."""
    result = problem.empty_result()
    try:
        mkl.set_num_threads(threads)
        call = make().product(problem.operands[0], result)
    except ArgumentError as error:
        raise UnavailableError(str(error)) from None
    return Prepared(timed_call(call, partial(mkl.set_num_threads, threads)), lambda: result)
