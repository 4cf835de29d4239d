"""Plans of several kernels that run one after the other on the same new arrays.

Where a `NativePlan` calls one kernel, a joint plan checks its arrays once and then calls the kernels of all
parts of an operand, whose other arguments never change. A call takes about a microsecond for each kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gossamer_backend.arguments.array_view import address
from gossamer_backend.call.native_kernel import NativeCall
from gossamer_backend.call.plan_source import (
    WORKSPACE_LINES,
    compile_functions,
    function_of_integers,
    input_lines,
    lines_of_check,
    output_lines,
    overlap_lines,
    shape_lines,
)
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, Signature
from gossamer_support.arrays import Array
from gossamer_support.items_by_name import items_by_name


class JointPlan:
    """`plan.run(inputs, output)` runs the kernels of bound calls and returns their output.

    `inputs`, a tuple, and `output` are the arrays for the parameters `passed`, with which the signature of
    each kernel must begin. All other arguments are those of the calls; the plan keeps these arrays alive, but
    not the passed ones. The output may be None; it is then allocated. `prepare` is called with the output
    before the kernels run.

    `run` returns None, without having run anything, unless the arrays have the form that `NativePlan`
    expects, and an output that was passed overlaps no other array. `ArgumentError` and `MemoryError` as in
    `BoundCall`. The plan has no state, so any number of threads may use it at once with different outputs.

    Raises `ArgumentError` (`kernel.plan`) if there is no call, a kernel begins with other parameters, one of
    these holds indices, another one than the last is written, or the calls passed arrays of different shapes.
    """

    __slots__ = ("_keep_alive", "run")

    def __init__(
        self,
        calls: Sequence[NativeCall],
        *,
        passed: Sequence[str],
        prepare: Callable[[Array], None] | None = None,
    ) -> None:
        params = _required_params(calls, passed)
        fixed = [
            [value for name, value in call.arguments.items() if name not in passed]
            for call in calls
        ]
        arrays = [value for values in fixed for value in values if isinstance(value, np.ndarray)]
        starts = [address(array) for array in arrays]
        names: dict[str, object] = {
            "prepare": prepare,
            "ranges": [
                (start, start + array.nbytes) for start, array in zip(starts, arrays, strict=True)
            ],
            "kernels": tuple(
                (function_of_integers(call.kernel), _integers(values), call.kernel.raise_status)
                for call, values in zip(calls, fixed, strict=True)
            ),
            **{f"size_{name}": value for name, value in _sizes(calls[0]).items()},
        }
        lines = _source_lines(params, prepares=prepare is not None)
        self._keep_alive = arrays
        self.run = compile_functions(lines, calls[0].kernel, params, names)["run"]


def _required_params(calls: Sequence[NativeCall], passed: Sequence[str]) -> list[BufferParam]:
    """Return the parameters that are passed, which must be the first of each kernel, in this order."""
    signatures: list[Signature] = [call.kernel.signature for call in calls]
    if not signatures or any(
        tuple(signature.order[: len(passed)]) != tuple(passed) for signature in signatures
    ):
        raise ArgumentError(
            "kernel.plan",
            f"The kernels of a joint plan do not all begin with the parameters {', '.join(passed)}.",
            hint="Pass at least one call, and name the first parameters of all kernels.",
        )
    shapes = {tuple(np.shape(call.arguments[name]) for name in passed) for call in calls}
    if len(shapes) != 1:
        raise ArgumentError(
            "kernel.plan",
            f"The calls of a joint plan have different shapes of {', '.join(passed)}.",
            hint="Bind all kernels to the same arrays.",
        )
    by_name = [items_by_name(signature.buffers) for signature in signatures]
    for params in by_name:
        for name in passed:
            is_array = name in params and not params[name].facts
            if not is_array or (params[name].is_written and name != passed[-1]):
                raise ArgumentError(
                    "kernel.plan",
                    f"A joint plan cannot pass '{name}'.",
                    hint="It passes arrays that hold no indices, and only the last one is written.",
                )
    return [by_name[0][name] for name in passed]


def _sizes(call: NativeCall) -> dict[str, int]:
    return {
        param.name: int(call.arguments[param.name])
        for param in call.kernel.signature.scalars
        if not isinstance(call.arguments[param.name], float)
    }


def _integers(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(address(value) if isinstance(value, np.ndarray) else value for value in values)


def _source_lines(passed: Sequence[BufferParam], *, prepares: bool) -> Iterator[str]:
    """Yield the lines of the function `run`."""
    *inputs, output = passed
    yield from shape_lines(passed)
    yield f"def run(inputs, array_{output.name}):"
    yield from input_lines(inputs)
    for param in inputs:
        yield from lines_of_check(param, "    ")
    yield from output_lines(output, inputs)
    yield "        for begin, end in ranges:"
    yield from overlap_lines(output, "begin", "end", "            ")
    yield from WORKSPACE_LINES
    if prepares:
        yield f"    prepare(array_{output.name})"
    starts = ", ".join(f"start_{param.name}" for param in passed)
    yield "    for function, fixed, fail in kernels:"
    yield f"        status = function({starts}, *fixed, address)"
    yield "        if status:"
    yield "            fail(status, workspace.failed_buffer)"
    yield f"    return array_{output.name}"
