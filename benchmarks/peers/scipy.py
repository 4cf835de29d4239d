"""SciPy's products, on one thread, with allocated results. For attention, NumPy computes the scores and
their softmax first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.harness.rounds import timed_call
from benchmarks.operators.bsr_spmm import BsrSpmm
from benchmarks.operators.problem import Array, Problem
from benchmarks.peers.peer import Prepared, UnavailableError


def prepare(problem: Problem, threads: int) -> Prepared:
    """`matrix @ operand`, with the matrix in the format of the problem."""
    del threads
    call = product(problem)
    return Prepared(timed_call(call), call)


def product(problem: Problem) -> Callable[[], Array]:
    """The product of the problem."""
    if problem.op == "sddmm":
        raise UnavailableError("SciPy has no sampled product")
    if problem.op == "attention":
        return lambda: problem.evaluate(problem.csr, *problem.operands)
    (operand,) = problem.operands
    if isinstance(problem, BsrSpmm):
        blocks = problem.bsr
        return lambda: np.asarray(blocks @ operand)
    matrix = problem.csr
    return lambda: np.asarray(matrix @ operand)
