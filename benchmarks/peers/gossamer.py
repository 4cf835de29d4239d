"""gossamer itself: an operator bound to its arrays, and the public operator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import gossamer
from benchmarks.harness.rounds import timed_call
from benchmarks.operators.bsr_spmm import BsrSpmm
from benchmarks.operators.problem import Array, Problem
from benchmarks.peers.peer import Prepared, UnavailableError
from gossamer.operators import NAMES, operator_named
from gossamer.operators.operator import Operator
from gossamer_formats import from_scipy
from gossamer_ir.errors import UnsupportedError
from gossamer_testkit import script

Call: TypeAlias = Callable[[], object]


def prepare_bound(problem: Problem, threads: int) -> Prepared:
    """Binds the operator to its arrays, as for MKL: a call only runs the kernel."""
    return prepared(problem, threads, bound)


def prepare_operator(problem: Problem, threads: int) -> Prepared:
    """Calls the public operator with a tensor and an output; each call checks its arrays."""
    return prepared(problem, threads, operator)


def prepared(problem: Problem, threads: int, make: Callable[[Problem, Array], Call]) -> Prepared:
    """Returns a call with a number of threads."""
    result = problem.empty_result()
    try:
        call = make(problem, result)
    except UnsupportedError as error:
        raise UnavailableError(f"gossamer does not do this yet: {error}") from None
    return Prepared(timed_call(call, partial(gossamer.set_num_threads, threads)), lambda: result)


def bound(problem: Problem, result: Array) -> Call:
    """The operator bound to its arrays."""
    if isinstance(problem, BsrSpmm):
        return bound_script(problem, result)
    run = require_operator(problem.op)
    return run.bind(from_scipy(problem.csr), *problem.operands, out=result)


def operator(problem: Problem, result: Array) -> Call:
    """Returns the operator on a tensor that was checked once."""
    run = require_operator(problem.op)
    return partial(run, from_scipy(problem.csr), *problem.operands, out=result)


def require_operator(op: str) -> Operator[...]:
    """Returns the operator with a name."""
    if op not in NAMES:
        raise UnavailableError(f"gossamer has no operator {op}")
    return operator_named(op)


def bound_script(problem: BsrSpmm, result: Array) -> Call:
    """Returns a kernel of a script without an operator, for this block size and these features."""
    blocks, (operand,), features = problem.bsr, problem.operands, problem.features
    block = blocks.blocksize[0]
    kernel = gossamer.compile(
        script("bsr_spmm"),
        specialize={"blk": block, "feat_size": features},
        dtypes=dict.fromkeys(("A", "B", "C"), problem.dtype.name),
    )
    return kernel.bind(
        a=blocks.data,
        b=operand.reshape(-1, block, features),
        c=result.reshape(-1, block, features),
        indptr=blocks.indptr,
        indices=blocks.indices,
    )
