"""gossamer itself: an operator bound to its arrays, in CSR or SELL, and the public operator."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import gossamer
from benchmarks.contenders.contender import ContenderCall, Prepared, UnavailableError
from benchmarks.operator_case import OperatorCase
from gossamer.operators import operator_named
from gossamer_formats import from_scipy
from gossamer_ir.errors import UnsupportedError

MANY_CALLS = 10**6
"""Calls for which any conversion pays: the time of a conversion is reported beside that of a call."""


def prepare_bound(case: OperatorCase, threads: int) -> Prepared:
    """Bind the operator to its arrays, as for MKL: a call only runs the kernel."""
    return prepared_call(case, threads, bind_operator)


def prepare_operator(case: OperatorCase, threads: int) -> Prepared:
    """Call the public operator with a tensor and an output; each call checks its arrays."""
    return prepared_call(case, threads, checked_operator)


def prepare_sliced(case: OperatorCase, threads: int) -> Prepared:
    """Bind the operator to its arrays with the matrix in SELL. The time of the conversion is that of the
    second one, as the first compiles it."""
    tensor = from_scipy(case.csr)
    gossamer.set_num_threads(threads)
    tensor.asformat("sell")
    begin = time.perf_counter()
    converted = tensor.asformat("sell")
    seconds = time.perf_counter() - begin
    call = operator_named(case.operator).bind(converted, *case.operands, out=case.out)
    return Prepared(call, partial(gossamer.set_num_threads, threads), conversion=seconds)


def prepare_chosen(case: OperatorCase, threads: int) -> Prepared:
    """Bind the operator to its arrays, with the matrix in the format that `gossamer.prepare` chooses for many
    calls. The time of the conversion is that of the second one, as the first compiles it."""
    # A matrix of blocks is given in CSR, so that its blocks must be found.
    convert = partial(
        gossamer.prepare, case.csr, case.operator, features=case.width, calls=MANY_CALLS
    )
    gossamer.set_num_threads(threads)
    convert()
    begin = time.perf_counter()
    matrix = convert()
    seconds = time.perf_counter() - begin
    call = operator_named(case.operator).bind(matrix, *case.operands, out=case.out)
    return Prepared(call, partial(gossamer.set_num_threads, threads), conversion=seconds)


def prepared_call(
    case: OperatorCase, threads: int, make: Callable[[OperatorCase], ContenderCall]
) -> Prepared:
    """Return a call with a number of threads."""
    try:
        call = make(case)
    except UnsupportedError as error:
        raise UnavailableError(f"gossamer does not do this yet: {error}") from None
    return Prepared(call, partial(gossamer.set_num_threads, threads))


def bind_operator(case: OperatorCase) -> ContenderCall:
    """Return the operator bound to its arrays."""
    # A matrix in blocks is passed as it is, since `spmm` computes with SciPy's blocks.
    matrix = from_scipy(case.csr) if case.bsr is None else case.bsr
    return operator_named(case.operator).bind(matrix, *case.operands, out=case.out)


def checked_operator(case: OperatorCase) -> ContenderCall:
    """Return the operator on a tensor that was checked once."""
    return partial(
        operator_named(case.operator), from_scipy(case.csr), *case.operands, out=case.out
    )
