"""Call plans of native kernels: they are called with arrays that are checked by straight-line code.

A plan is compiled for one kernel. Its code checks exactly what `bind` checks, but only accepts arrays in
their usual form: plain, contiguous, of the expected dtype and shape. Anything else is left to the caller, who
converts it or raises the error. Arguments whose contents were checked before, such as the index arrays of a
tensor, are passed as `FixedArguments`, which are prepared once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gossamer_backend.arguments.view_of import view_of
from gossamer_backend.call.plan_source import (
    WORKSPACE_LINES,
    PlannedKernel,
    as_passed,
    compile_run,
    function_of_integers,
    input_lines,
    lines_of_check,
    output_lines,
    overlap_lines,
    pass_integer,
    tuple_target,
)
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, Signature
from gossamer_ir.support.items_by_name import items_by_name


class FixedArguments(NamedTuple):
    """Arguments that a plan does not check: the addresses of arrays (`pointers`), integers (`scalars`), and
    the addresses after the `ends` of the arrays. The caller keeps the arrays alive.

    `check` is None if the contents were checked before. Otherwise a plan calls it with these arguments, and
    with the address of the workspace, directly before each run of the kernel; it returns whether the
    contents are valid. `prepared` are the pointers and scalars as ctypes passes them, if they are for many
    calls: each integer that is converted at a call takes 40 nanoseconds."""

    pointers: tuple[int, ...]
    scalars: tuple[int, ...]
    ends: tuple[int, ...]
    check: Callable[[FixedArguments, int], bool] | None
    prepared: tuple[object, ...] | None = None


def fixed_arguments(
    arrays: Sequence[object],
    scalars: Sequence[int],
    *,
    check: Callable[[FixedArguments, int], bool] | None = None,
) -> FixedArguments:
    """Return contiguous arrays of any package, on any device, and integers as arguments for plans.

    >>> import numpy as np
    >>> fixed_arguments((np.zeros(3),), (5,)).scalars
    (5,)
    """
    views = [view_of(array, name=f"array {number}") for number, array in enumerate(arrays)]
    starts = tuple(view.address for view in views)
    # For the test of overlap with the output at each call.
    ends = tuple(view.address + view.nbytes for view in views)
    return FixedArguments(starts, tuple(scalars), ends, check, as_passed((*starts, *scalars)))


class NativePlan:
    """The `CallPlan` of a kernel in the memory of this process.

    `run` returns None, without having run the kernel, unless each array is a NumPy array of the expected
    dtype and shape that is C-contiguous, aligned and not empty, the output is writable and overlaps no other
    array, and the `check` of the fixed arguments succeeds. `ArgumentError` and `MemoryError` as in
    `BoundCall`.

    Raises `ArgumentError` (`kernel.plan`) if a parameter of the kernel is missing, a passed one holds
    indices, another one than the last is written, or the shape of a passed one is not linear in a scalar.
    """

    __slots__ = ("kernel", "run")

    def __init__(
        self,
        kernel: PlannedKernel,
        *,
        pointers: Sequence[str],
        scalars: Sequence[str],
        passed: Sequence[str],
    ) -> None:
        signature = kernel.signature
        _require_parameters(signature, {*pointers, *scalars, *passed}, passed)
        buffers = items_by_name(signature.buffers)
        params = [buffers[name] for name in passed]
        lines = _source_lines(
            params, order=signature.order, pointers=tuple(pointers), scalars=tuple(scalars)
        )
        names = {
            "function": function_of_integers(kernel),
            "machine_code": kernel.function,
            "pass_": pass_integer,
            "fail": kernel.raise_status,
        }
        self.kernel = kernel
        self.run = compile_run(lines, kernel, params, names)


def _require_parameters(signature: Signature, bound: set[str], passed: Sequence[str]) -> None:
    missing = [name for name in signature.order if name not in bound]
    buffers = items_by_name(signature.buffers)
    wrong = [name for name in passed if name not in buffers or buffers[name].facts]
    wrong += [name for name in passed[:-1] if name in buffers and buffers[name].is_written]
    if wrong:
        raise ArgumentError(
            "kernel.plan",
            f"A plan cannot pass {', '.join(map(repr, wrong))}.",
            hint="It passes arrays that hold no indices, and only the last one is written.",
        )
    if missing:
        raise ArgumentError(
            "kernel.plan",
            f"The plan lacks {', '.join(map(repr, missing))}.",
            hint=f"The parameters of the kernel are {', '.join(signature.order)}.",
        )


def _source_lines(
    passed: Sequence[BufferParam],
    *,
    order: Sequence[str],
    pointers: tuple[str, ...],
    scalars: tuple[str, ...],
) -> Iterator[str]:
    """Yield the lines of the function `run`."""
    *inputs, output = passed
    yield f"def run(fixed, inputs, array_{output.name}):"
    yield from input_lines(inputs)
    yield "    pointers, scalars, ends, check, prepared = fixed"
    yield f"    {tuple_target('start_', pointers)} = pointers"
    yield f"    {tuple_target('size_', scalars)} = scalars"
    for param in inputs:
        yield from lines_of_check(param, "    ")
    yield from output_lines(output, inputs)
    yield f"        {tuple_target('end_', pointers)} = ends"
    for name in pointers:
        yield from overlap_lines(output, f"start_{name}", f"end_{name}", "        ")
    yield from WORKSPACE_LINES
    # Last, as it may take long: arrays that the plan refuses are checked by the caller.
    yield "    if check is not None and not check(fixed, address):"
    yield "        return None"
    integers = [f"size_{name}" if name in scalars else f"start_{name}" for name in order]
    prepared = {*pointers, *scalars}
    arguments = [f"known_{name}" if name in prepared else f"pass_(start_{name})" for name in order]
    yield "    if prepared is None:"
    yield f"        status = function({', '.join(integers)}, address)"
    yield "    else:"
    yield f"        {tuple_target('known_', (*pointers, *scalars))} = prepared"
    yield f"        status = machine_code({', '.join(arguments)}, reference)"
    yield "    if status:"
    yield "        fail(status, workspace.failed_buffer)"
    yield f"    return array_{output.name}"
