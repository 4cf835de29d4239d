"""Call plans of native kernels: they are called with arrays that are checked by straight-line code.

A plan is compiled for one kernel. Its code checks exactly what `bind` checks, but only accepts arrays in
their usual form: plain, contiguous, of the expected dtype and shape. Anything else is left to the caller, who
converts it or raises the error. Arguments whose contents were checked before, such as the index arrays of a
tensor, are passed as `FixedArguments`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from gossamer_backend.arguments.view_of import view_of
from gossamer_backend.call.kernel import FixedArguments
from gossamer_backend.call.plan_source import (
    IS_WIDE,
    WORKSPACE_LINES,
    PlannedKernel,
    compile_functions,
    function_of_integers,
    input_lines,
    lines_of_check,
    output_lines,
    overlap_lines,
    pass_integer,
    shape_lines,
    tuple_target,
)
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, Signature
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name


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
    return FixedArguments(starts, tuple(scalars), ends, check)


class NativePlan:
    """The `CallPlan` of a kernel in the memory of this process.

    `run` and the functions that `bind` returns give None, without having run the kernel, unless each array is
    a NumPy array of the expected dtype and shape that is C-contiguous, aligned and not empty, the output is
    writable and overlaps no other array, and the `check` of the fixed arguments succeeds. `ArgumentError` and
    `MemoryError` as in `BoundCall`.

    Raises `ArgumentError` (`kernel.plan`) if a parameter of the kernel is missing, a passed one holds
    indices, another one than the last is written, or the shape of a passed one is not linear in a scalar.
    """

    __slots__ = ("_bind", "_bind_lines", "_compile", "_run_lines", "kernel", "run")

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
        fixed = _FixedNames(tuple(pointers), tuple(scalars))
        self._run_lines = list(_run_lines(params, fixed, order=signature.order))
        self._bind_lines = list(_bind_lines(params, fixed, order=signature.order))
        names = {
            "function": function_of_integers(kernel),
            "machine_code": kernel.function,
            "pass_": pass_integer,
            "fail": kernel.raise_status,
        }
        self.kernel = kernel
        self._compile = partial(compile_functions, kernel=kernel, passed=params, names=names)
        self.run: Callable[..., Array | None] = self._compile_and_run
        self._bind: Callable[[FixedArguments], Callable[..., Array | None]] | None = None

    def bind(self, fixed: FixedArguments) -> Callable[..., Array | None]:
        """Return a function of the inputs and the output alone, as `CallPlan.bind` says."""
        if not IS_WIDE:
            return partial(self.run, fixed)
        if self._bind is None:
            self._bind = self._compile(self._bind_lines)["bind"]
        return self._bind(fixed)

    def _compile_and_run(
        self, fixed: FixedArguments, inputs: tuple[object, ...], output: Array | None
    ) -> Array | None:
        """Compile `run`, which takes the place of this method. A first call of an operator makes a plan and
        does not run it."""
        run: Callable[..., Array | None] = self._compile(self._run_lines)["run"]
        self.run = run
        return run(fixed, inputs, output)


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


class _FixedNames(msgspec.Struct, frozen=True):
    """The names of the parameters of `FixedArguments`."""

    pointers: tuple[str, ...]
    scalars: tuple[str, ...]


def _run_lines(
    passed: Sequence[BufferParam], fixed: _FixedNames, *, order: Sequence[str]
) -> Iterator[str]:
    """Yield the lines of the function `run`, whose fixed arguments are those of one call."""
    yield f"def run(fixed, inputs, array_{passed[-1].name}):"
    yield from _unpacking_lines(passed, fixed)
    yield from _checking_lines(passed, fixed)
    integers = (f"size_{name}" if name in fixed.scalars else f"start_{name}" for name in order)
    yield f"    status = function({', '.join(integers)}, address)"
    yield from _status_lines(passed[-1])


def _bind_lines(
    passed: Sequence[BufferParam], fixed: _FixedNames, *, order: Sequence[str]
) -> Iterator[str]:
    """Yield the lines of the function `bind`, whose fixed arguments are those of many calls: they are
    unpacked and converted once. Each integer that is converted at a call takes 40 nanoseconds."""
    yield "def bind(fixed):"
    yield from _unpacking_lines(passed, fixed)
    names = [name for name in order if name in {*fixed.pointers, *fixed.scalars}]
    for name in names:
        prefix = "size_" if name in fixed.scalars else "start_"
        yield f"    known_{name} = pass_({prefix}{name})"
    passed_values = (f"known_{name}" if name in names else f"pass_(start_{name})" for name in order)
    lines = [
        f"def run(inputs, array_{passed[-1].name}):",
        *_checking_lines(passed, fixed),
        f"    status = machine_code({', '.join(passed_values)}, reference)",
        *_status_lines(passed[-1]),
    ]
    yield from (f"    {line}" for line in lines)
    yield "    return run"


def _unpacking_lines(passed: Sequence[BufferParam], fixed: _FixedNames) -> Iterator[str]:
    """Yield the lines that assign the fixed arguments, and the shapes that follow from them, to variables."""
    yield "    pointers, scalars, ends, check = fixed"
    yield f"    {tuple_target('start_', fixed.pointers)} = pointers"
    yield f"    {tuple_target('size_', fixed.scalars)} = scalars"
    yield f"    {tuple_target('end_', fixed.pointers)} = ends"
    yield from (f"    {line}" for line in shape_lines(passed))


def _checking_lines(passed: Sequence[BufferParam], fixed: _FixedNames) -> Iterator[str]:
    """Yield the checks of the arrays that are passed, and that of the fixed arguments."""
    *inputs, output = passed
    yield from input_lines(inputs)
    for param in inputs:
        yield from lines_of_check(param, "    ")
    yield from output_lines(output, inputs)
    for name in fixed.pointers:
        yield from overlap_lines(output, f"start_{name}", f"end_{name}", "        ")
    yield from WORKSPACE_LINES
    # Last, as it may take long: arrays that the plan refuses are checked by the caller.
    yield "    if check is not None and not check(fixed, address):"
    yield "        return None"


def _status_lines(output: BufferParam) -> Iterator[str]:
    yield "    if status:"
    yield "        fail(status, workspace.failed_buffer)"
    yield f"    return array_{output.name}"
