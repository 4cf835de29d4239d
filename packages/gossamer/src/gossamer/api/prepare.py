"""`prepare`: a matrix in the format in which an operator computes fastest."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer.operator_calls.operator import Operator
from gossamer.operator_calls.prepared_formats.chosen_format import CHOICE, PreparedMatrix, in_format
from gossamer.operator_calls.prepared_formats.row_order import properties_for
from gossamer.operators import operator_named, product_names
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import machine_for
from gossamer_backend import get_num_threads
from gossamer_formats import SparseTensor
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_support.message_texts import either
from gossamer_support.typed_calls import typed
from gossamer_tune import Estimate, FormatChoice, Workload, choose_format, measure_formats

_REPEATED = 5
"""The number of calls whose median time is measured, after one that compiles."""


@typed
def prepare(
    A: Any,
    op: str = "spmm",
    *,
    features: int | None = None,
    calls: int = 1000,
    measure: bool = False,
    target: str | Target = DEFAULT_TARGET,
) -> PreparedMatrix:
    """Return a matrix in the format in which an operator is expected to compute fastest.

    A is a `SparseTensor` or a SciPy matrix, `op` the name of an operator that multiplies a matrix, and
    `features` the number of columns of its dense operand, unless that is a vector. A conversion is made if
    it is expected to pay within `calls` calls; otherwise the result is in CSR. The calls are expected to run
    on the number of threads that is set (`gossamer.set_num_threads`). With `measure`, the most promising
    formats are timed. `gossamer.explain` returns the choice for the result: the expected cost of each format,
    with the reasons. Operators take the result, also with other numbers of features.

    Raises `ArgumentError`: `prepare.op` (its message lists the operators), `prepare.features`,
    `prepare.calls`; and `FormatError` for a matrix that is not valid.

    >>> import numpy as np, scipy.sparse, gossamer as gs
    >>> A = scipy.sparse.random_array((512, 2048), density=0.2, format="csr", dtype=np.float32)
    >>> matrix = gs.prepare(A, features=64)
    >>> gs.explain(matrix).chosen.format
    'tiled_csr'
    >>> B = np.ones((2048, 64), np.float32)
    >>> bool(np.allclose(gs.spmm(matrix, B), A @ B, rtol=1e-4))
    True
    """
    # Options are checked before the matrix, whose conversion to CSR may take long.
    workload = _workload(op, features, calls, target)
    matrix = (A if isinstance(A, SparseTensor) else SparseTensor(A)).tocsr()
    workload = workload._replace(dtype=matrix.dtype.name)
    properties = properties_for(matrix, workload)
    choice = choose_format(properties, workload, calls=calls)
    # The format that is chosen was converted to for its timing, and is not converted to again.
    stored: dict[str, PreparedMatrix] = {}

    def prepare_as(estimate: Estimate) -> PreparedMatrix:
        if estimate.text not in stored:
            stored[estimate.text] = in_format(matrix, estimate)
        return stored[estimate.text]

    if measure:
        seconds = _seconds_of_calls(operator_named(op), matrix, workload, target, prepare_as)
        choice = measure_formats(choice, seconds)
    prepared = prepare_as(choice.chosen)
    CHOICE.keep(prepared.pattern, choice)
    return prepared


def choice_of(matrix: PreparedMatrix) -> FormatChoice:
    """Return the choice that `prepare` has made for a matrix.

    Raises `ArgumentError` (`prepare.unknown`) for any other matrix.
    """
    choice = CHOICE.find(matrix.pattern)
    if choice is None:
        raise ArgumentError(
            "prepare.unknown",
            "No format was chosen for this matrix.",
            hint="Call gossamer.prepare(matrix, ...), and explain its result.",
        )
    return choice


def _workload(op: str, features: int | None, calls: int, target: str | Target) -> Workload:
    if calls < 1:
        raise ArgumentError("prepare.calls", f"The number of calls is {calls}; expected 1 or more.")
    machine = machine_for(target)
    if op not in product_names():
        expected = either(f"'{name}'" for name in product_names())
        raise ArgumentError("prepare.op", f"The operator is '{op}'; expected {expected}.")
    if operator_named(op).program.dense_dimensions == 1:
        return Workload(machine=machine, threads=get_num_threads())
    if features is None or features < 1:
        raise ArgumentError(
            "prepare.features",
            f"The number of features is {features}; expected 1 or more.",
            hint="Pass the number of columns of the dense operand: features=...",
        )
    return Workload(features, machine=machine, threads=get_num_threads())


def _seconds_of_calls(
    operator: Operator[...],
    matrix: SparseTensor,
    workload: Workload,
    target: str | Target,
    prepare_as: Callable[[Estimate], PreparedMatrix],
) -> Callable[[Estimate], float]:
    """Return the function that measures the operator with the matrix in a format."""
    sizes = () if workload.features is None else (workload.features,)
    dense = np.ones((matrix.shape[1], *sizes), matrix.dtype)
    out = operator(matrix, dense, target=target)

    def seconds(estimate: Estimate) -> float:
        prepared = prepare_as(estimate)
        # Not timed, since it compiles the kernel.
        operator(prepared, dense, out=out, target=target)
        times = []
        for _ in range(_REPEATED):
            begin = time.perf_counter()
            operator(prepared, dense, out=out, target=target)
            times.append(time.perf_counter() - begin)
        return sorted(times)[_REPEATED // 2]

    return seconds
