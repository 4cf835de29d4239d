"""Who takes part: each makes a problem ready once and gives back what is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import gossamer
from benchmarks import numba_loops
from benchmarks.problem import Array, Problem
from benchmarks.rounds import Timed
from gossamer.peers import mkl
from gossamer_formats import from_scipy
from gossamer_ir.errors import ArgumentError

OURS = "gossamer"


class UnavailableError(Exception):
    """A contender that cannot take part; the text says why."""


@dataclass(frozen=True)
class Prepared:
    """What is timed and where its result lies afterwards. Results of a contender that allocates
    its own output are what `result` returns."""

    timed: Timed
    result: Callable[[], Array]


Prepare: TypeAlias = Callable[[Problem, int], Prepared]


def prepare_scipy(problem: Problem, threads: int) -> Prepared:
    """SciPy's product; it uses one thread and allocates its result."""
    del threads
    matrix, operand = problem.matrix, problem.operand
    return Prepared(Timed(lambda: matrix @ operand), lambda: matrix @ operand)


def prepare_mkl(problem: Problem, threads: int, *, optimize: bool) -> Prepared:
    """MKL's inspector-executor product."""
    try:
        mkl.set_num_threads(threads)
        features = None if problem.op == "spmv" else problem.features
        tensor = from_scipy(problem.matrix)
        matrix = mkl.MklMatrix(tensor, features=features, optimize=optimize)
    except ArgumentError as error:
        raise UnavailableError(str(error)) from None
    result = problem.empty_result()
    call = matrix.product(problem.operand, result)
    return Prepared(Timed(call, partial(mkl.set_num_threads, threads)), lambda: result)


def prepare_numba(problem: Problem, threads: int) -> Prepared:
    """The hand-written parallel loop."""
    try:
        loop = numba_loops.spmv_loop() if problem.op == "spmv" else numba_loops.spmm_loop()
    except ImportError as error:
        raise UnavailableError(f"Numba is not installed ({error})") from None
    matrix, result = problem.matrix, problem.empty_result()
    call = partial(loop, matrix.indptr, matrix.indices, matrix.data, problem.operand, result)
    return Prepared(Timed(call, partial(numba_loops.set_threads, threads)), lambda: result)


def prepare_bound(problem: Problem, threads: int) -> Prepared:
    """The operator bound to its arrays, as MKL's call is."""
    tensor, result = from_scipy(problem.matrix), problem.empty_result()
    call = gossamer.bind(problem.op, tensor, problem.operand, out=result)
    return Prepared(Timed(call, partial(gossamer.set_num_threads, threads)), lambda: result)


def prepare_operator(problem: Problem, threads: int) -> Prepared:
    """The public operators with a tensor and an output, which check their arrays at each call."""
    operator = gossamer.spmv if problem.op == "spmv" else gossamer.spmm
    tensor, result = from_scipy(problem.matrix), problem.empty_result()
    call = partial(operator, tensor, problem.operand, out=result)
    return Prepared(Timed(call, partial(gossamer.set_num_threads, threads)), lambda: result)


CONTENDERS: dict[str, Prepare] = {
    OURS: prepare_bound,
    "gossamer_op": prepare_operator,
    "scipy": prepare_scipy,
    "mkl": partial(prepare_mkl, optimize=True),
    "mkl_plain": partial(prepare_mkl, optimize=False),
    "numba": prepare_numba,
}
"""`gossamer` and the two of MKL are prepared calls on given arrays, `gossamer_op` is what a user types;
`mkl` is with hint and optimize, `mkl_plain` only creates the handle."""
