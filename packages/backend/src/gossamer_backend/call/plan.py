"""Call plans: kernels called with arrays that are checked by straight-line code.

A plan is compiled for one kernel. Its code checks exactly what `Kernel.bind` checks, but only accepts arrays
in their usual form: plain, contiguous, of the expected dtype and shape. Anything else is left to the caller,
who converts it or raises the error. Arguments whose contents were checked before, such as the index arrays of
a tensor, are passed as `FixedArguments`, which are prepared once.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from gossamer_backend.arguments.arrays import address, numpy_dtype
from gossamer_backend.arguments.sizes import Array, to_linear
from gossamer_backend.call.abi import NOT_GUARDED, Parallelism, ParallelismSource, Workspace
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, Signature
from gossamer_ir.nodes import Expr


class PlannedKernel(Protocol):
    """The parts of a `Kernel` that its plans use."""

    @property
    def signature(self) -> Signature:
        """The parameters of the kernel."""

    @property
    def function(self) -> Callable[..., int]:
        """The machine code."""

    @property
    def parallelism(self) -> ParallelismSource:
        """The source of the number of threads and of the function that runs them."""

    def raise_status(self, status: int, failed: int) -> NoReturn:
        """Raise the error for a status; `failed` is the index of the buffer whose bounds check failed."""


class FixedArguments(NamedTuple):
    """Arguments that a plan does not check: `pointers` and `scalars` for the machine code, the values of the
    scalars (`sizes`), and the `ranges` of addresses of the arrays. The caller keeps the arrays alive.

    `check` is None if the contents were checked before. Otherwise a plan calls it with these arguments
    directly before each run of the kernel; it returns whether the contents are valid."""

    pointers: tuple[ctypes.c_void_p, ...]
    scalars: tuple[ctypes.c_int64, ...]
    sizes: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...]
    check: Callable[[FixedArguments], bool] | None


def fixed_arguments(
    arrays: Sequence[Array],
    sizes: Sequence[int],
    *,
    check: Callable[[FixedArguments], bool] | None = None,
) -> FixedArguments:
    """Return contiguous arrays and integers as arguments for plans.

    >>> fixed_arguments((np.zeros(3),), (5,)).sizes
    (5,)
    """
    starts = [address(array) for array in arrays]
    ends = [start + array.nbytes for start, array in zip(starts, arrays, strict=True)]
    return FixedArguments(
        tuple([ctypes.c_void_p(start) for start in starts]),
        tuple([ctypes.c_int64(size) for size in sizes]),
        tuple(sizes),
        tuple(zip(starts, ends, strict=True)),
        check,
    )


class CallPlan:
    """`plan.run(fixed, *arrays)` runs a kernel and returns the last array, which is its output.

    `fixed` are `FixedArguments` for the parameters `pointers` and `scalars`, `arrays` are those for the
    parameters `passed`, in this order. The output may be None; it is then allocated. Parameters of the plan
    that the kernel lacks are ignored, so that several kernels share one `FixedArguments`. `inputs` is the
    number of arrays before the output.

    `run` returns None, without having run the kernel, unless each array is a NumPy array of the expected
    dtype and shape that is C-contiguous, aligned and not empty, the output is writable and overlaps no other
    array, and the `check` of the fixed arguments succeeds. `ArgumentError` and `MemoryError` as in
    `BoundCall`. The plan has no state, so any number of threads may use it at once with different outputs.

    Raises `ArgumentError` (`kernel.plan`) if a parameter of the kernel is missing, a passed one holds
    indices, another one than the last is written, or the shape of a passed one is not linear in a scalar.
    """

    __slots__ = ("inputs", "kernel", "run")

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
        params = {param.name: param for param in signature.buffers}
        lines = _source(
            [params[name] for name in passed],
            order=signature.order,
            pointers=tuple(pointers),
            scalars=tuple(scalars),
        )
        names: dict[str, Any] = {
            "ndarray": np.ndarray,
            "empty": np.empty,
            "from_buffer": ctypes.c_char.from_buffer,
            "addressof": ctypes.addressof,
            "address": address,
            "pointer": ctypes.c_void_p,
            "byref": ctypes.byref,
            "workspace_of": workspace_of,
            "parallelism": kernel.parallelism,
            "function": kernel.function,
            "fail": kernel.raise_status,
        }
        names |= {f"dtype_{name}": numpy_dtype(params[name]) for name in passed}
        exec(_compiled("\n".join(lines)), names)
        self.kernel, self.inputs = kernel, len(passed) - 1
        self.run: Callable[..., Array | None] = names["run"]


def _require_parameters(signature: Signature, given: set[str], passed: Sequence[str]) -> None:
    missing = [name for name in signature.order if name not in given]
    buffers = {param.name: param for param in signature.buffers}
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


@lru_cache(maxsize=64)
def _compiled(source: str) -> CodeType:
    return compile(source, "<call plan>", "exec")


def _source(
    passed: Sequence[BufferParam],
    *,
    order: Sequence[str],
    pointers: tuple[str, ...],
    scalars: tuple[str, ...],
) -> Iterator[str]:
    """Yield the lines of the function `run`. All names in it are those of parameters with a prefix."""
    arrays = [f"array_{param.name}" for param in passed]
    output = passed[-1]
    yield f"def run(fixed, {', '.join(arrays)}):"
    yield "    pointers, scalars, sizes, ranges, check = fixed"
    yield f"    {_unpacked('pointer_', pointers)} = pointers"
    yield f"    {_unpacked('scalar_', scalars)} = scalars"
    yield f"    {_unpacked('size_', scalars)} = sizes"
    for param in passed[:-1]:
        yield from _checks(param, "    ")
    name = output.name
    yield f"    is_new = array_{name} is None"
    yield "    if not is_new:"
    yield from _checks(output, "        ")
    yield "    else:"
    yield f"        array_{name} = empty({_shape(output)}, dtype_{name})"
    yield f"        if not array_{name}.size:"
    yield "            return None"
    yield f"        start_{name} = addressof(from_buffer(array_{name}))"
    yield from _overlaps(output, passed[:-1])
    where = [param.name for param in passed]
    arguments = [
        f"pointer(start_{found})"
        if found in where
        else f"pointer_{found}"
        if found in pointers
        else f"scalar_{found}"
        for found in order
    ]
    # Last, as it may take long: arrays that the plan refuses are checked by the caller.
    yield "    if check is not None and not check(fixed):"
    yield "        return None"
    yield "    workspace = workspace_of(parallelism())"
    yield f"    status = function({', '.join(arguments)}, byref(workspace))"
    yield "    if status:"
    yield "        fail(status, workspace.failed_buffer)"
    yield f"    return array_{name}"


def _unpacked(prefix: str, names: Sequence[str]) -> str:
    return "".join(f"{prefix}{name}, " for name in names).rstrip() or "()"


def _checks(param: BufferParam, indent: str) -> Iterator[str]:
    """Yield the checks of one array. An empty array has no address, and a subclass may have another
    meaning."""
    array = f"array_{param.name}"
    yield f"{indent}if type({array}) is not ndarray or {array}.dtype != dtype_{param.name}:"
    yield f"{indent}    return None"
    yield f"{indent}if {array}.shape != {_shape(param)} or not {array}.size:"
    yield f"{indent}    return None"
    yield f"{indent}flags = {array}.flags"
    yield f"{indent}if flags.carray:"
    yield f"{indent}    start_{param.name} = addressof(from_buffer({array}))"
    yield f"{indent}elif {not param.is_written} and flags.c_contiguous and flags.aligned:"
    yield f"{indent}    start_{param.name} = address({array})"
    yield f"{indent}else:"
    yield f"{indent}    return None"


def _overlaps(written: BufferParam, others: Sequence[BufferParam]) -> Iterator[str]:
    name = written.name
    yield "    if not is_new:"
    yield f"        end_{name} = start_{name} + array_{name}.nbytes"
    yield "        for start, end in ranges:"
    yield f"            if start < end_{name} and start_{name} < end:"
    yield "                return None"
    for other in others:
        start = f"start_{other.name}"
        yield f"        if {start} < end_{name} and start_{name} < {start} + array_{other.name}.nbytes:"
        yield "            return None"


def _shape(param: BufferParam) -> str:
    return f"({''.join(f'{_size(size, param)}, ' for size in param.shape)})"


def _size(size: Expr, param: BufferParam) -> str:
    linear = to_linear(size)
    if linear is None:
        raise ArgumentError(
            "kernel.plan", f"The shape of '{param.name}' is not linear in one scalar parameter."
        )
    if not linear.factor:
        return str(linear.offset)
    found = f"size_{linear.name}"
    found = found if linear.factor == 1 else f"{linear.factor} * {found}"
    return found if not linear.offset else f"{found} + {linear.offset}"


class _Workspaces(threading.local):
    """The workspaces of a thread: kernels write the buffer whose check failed to it."""

    def __init__(self) -> None:
        self.found: dict[Parallelism, Workspace] = {}


_workspaces = _Workspaces()


def workspace_of(parallelism: Parallelism) -> Workspace:
    """Return a workspace for kernels that this thread calls."""
    found = _workspaces.found.get(parallelism)
    if found is None:
        found = _workspaces.found[parallelism] = Workspace(*parallelism, NOT_GUARDED)
    return found
