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
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias

import numpy as np

from gossamer_backend.arguments.array_checks import address, numpy_dtype
from gossamer_backend.arguments.size_equations import Array, to_linear
from gossamer_backend.call.abi import (
    Parallelism,
    ParallelismSource,
    Workspace,
    parameter_types,
    workspace_of,
)
from gossamer_backend.call.allocation import LARGE_ARRAY, aligned_empty
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
    """Arguments that a plan does not check: the addresses of arrays (`pointers`), integers (`scalars`), and
    the addresses after the `ends` of the arrays. The caller keeps the arrays alive.

    `check` is None if the contents were checked before. Otherwise a plan calls it with these arguments, and
    with the address of the workspace, directly before each run of the kernel; it returns whether the
    contents are valid."""

    pointers: tuple[int, ...]
    scalars: tuple[int, ...]
    ends: tuple[int, ...]
    check: Callable[[FixedArguments, int], bool] | None


def fixed_arguments(
    arrays: Sequence[Array],
    scalars: Sequence[int],
    *,
    check: Callable[[FixedArguments, int], bool] | None = None,
) -> FixedArguments:
    """Return contiguous arrays and integers as arguments for plans.

    >>> fixed_arguments((np.zeros(3),), (5,)).scalars
    (5,)
    """
    starts = tuple(map(address, arrays))
    # For the test of overlap with the output at each call.
    ends = tuple(start + array.nbytes for start, array in zip(starts, arrays, strict=True))
    return FixedArguments(starts, tuple(scalars), ends, check)


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
        lines = _source_lines(
            [params[name] for name in passed],
            order=signature.order,
            pointers=tuple(pointers),
            scalars=tuple(scalars),
        )
        names: dict[str, Any] = {
            "ndarray": np.ndarray,
            "empty": np.empty,
            "aligned_empty": aligned_empty,
            "from_buffer": ctypes.c_char.from_buffer,
            "addressof": ctypes.addressof,
            "read_only_start": read_only_start,
            "thread": workspaces,
            "workspace_of": kept_workspace,
            "parallelism": kernel.parallelism,
            "function": function_of_integers(kernel),
            "fail": kernel.raise_status,
        }
        names |= {f"dtype_{name}": numpy_dtype(params[name]) for name in passed}
        # Generated code: loops over parameters and calls of helpers would take longer than a small kernel.
        exec(compiled_source("\n".join(lines)), names)
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
def compiled_source(source: str) -> CodeType:
    return compile(source, "<call plan>", "exec")


def _source_lines(
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
    yield "    pointers, scalars, ends, check = fixed"
    yield f"    {_unpacked('start_', pointers)} = pointers"
    yield f"    {_unpacked('size_', scalars)} = scalars"
    for param in passed[:-1]:
        yield from check_lines(param, "    ")
    name = output.name
    # A new array overlaps no other one and has the right form, so it needs no checks.
    yield f"    if array_{name} is None:"
    yield f"        array_{name} = empty({shape_text(output)}, dtype_{name})"
    # `empty` first: its size is known without computing the product of the shape here.
    yield f"        if array_{name}.nbytes >= {LARGE_ARRAY}:"
    yield f"            array_{name} = aligned_empty({shape_text(output)}, dtype_{name})"
    yield "        try:"
    yield f"            start_{name} = addressof(from_buffer(array_{name}))"
    yield "        except ValueError:  # it is empty"
    yield "            return None"
    yield "    else:"
    yield from check_lines(output, "        ")
    yield from _overlap_lines(output, passed[:-1], pointers=pointers)
    yield "    threads = parallelism()"
    yield "    workspace, address = thread.by_parallelism.get(threads) or workspace_of(threads)"
    # Last, as it may take long: arrays that the plan refuses are checked by the caller.
    yield "    if check is not None and not check(fixed, address):"
    yield "        return None"
    arguments = [f"size_{name}" if name in scalars else f"start_{name}" for name in order]
    yield f"    status = function({', '.join(arguments)}, address)"
    yield "    if status:"
    yield "        fail(status, workspace.failed_buffer)"
    yield f"    return array_{name}"


def _unpacked(prefix: str, names: Sequence[str]) -> str:
    return "".join(f"{prefix}{name}, " for name in names).rstrip() or "()"


def check_lines(param: BufferParam, indent: str) -> Iterator[str]:
    """Yield the checks of one array. An empty array has no address, and a subclass may have another
    meaning. ctypes refuses arrays that are read-only, not contiguous or empty."""
    array, start = f"array_{param.name}", f"start_{param.name}"
    # `type`, not isinstance: a subclass such as a masked array may give its elements another meaning.
    yield f"{indent}if type({array}) is not ndarray or {array}.dtype != dtype_{param.name}:"
    yield f"{indent}    return None"
    yield f"{indent}if {array}.shape != {shape_text(param)}:"
    yield f"{indent}    return None"
    yield f"{indent}try:"
    yield f"{indent}    {start} = addressof(from_buffer({array}))"
    yield f"{indent}except (TypeError, ValueError, BufferError):"
    if param.is_written:
        yield f"{indent}    return None"
    else:
        yield f"{indent}    {start} = read_only_start({array})"
        yield f"{indent}    if {start} is None:"
        yield f"{indent}        return None"
    # The address decides nearly always. Where elements need less alignment than their size, the
    # flag does.
    yield f"{indent}if {start} & {numpy_dtype(param).itemsize - 1} and not {array}.flags.aligned:"
    yield f"{indent}    return None"


def read_only_start(array: Array) -> int | None:
    """Return the address of an array that is only read; None if it is empty or not contiguous."""
    return address(array) if array.size and array.flags.c_contiguous else None


def _overlap_lines(
    written: BufferParam, others: Sequence[BufferParam], *, pointers: Sequence[str]
) -> Iterator[str]:
    """Yield the comparisons of an output that was passed with all other arrays."""
    start, end = f"start_{written.name}", f"end_{written.name}"
    yield f"        {end} = {start} + array_{written.name}.nbytes"
    yield f"        {_unpacked('end_', pointers)} = ends"
    # Half-open intervals: arrays that only touch do not overlap.
    for name in pointers:
        yield f"        if start_{name} < {end} and {start} < end_{name}:"
        yield "            return None"
    for other in others:
        other_end = f"start_{other.name} + array_{other.name}.nbytes"
        yield f"        if start_{other.name} < {end} and {start} < {other_end}:"
        yield "            return None"


def shape_text(param: BufferParam) -> str:
    return f"({''.join(f'{_size_text(size, param)}, ' for size in param.shape)})"


def _size_text(size: Expr, param: BufferParam) -> str:
    linear = to_linear(size)
    if linear is None:
        raise ArgumentError(
            "kernel.plan", f"The shape of '{param.name}' is not linear in one scalar parameter."
        )
    if not linear.factor:
        return str(linear.offset)
    text = f"size_{linear.name}"
    text = text if linear.factor == 1 else f"{linear.factor} * {text}"
    return text if not linear.offset else f"{text} + {linear.offset}"


_AddressedWorkspace: TypeAlias = tuple[Workspace, int]
"""A workspace and its address."""


class _Workspaces(threading.local):
    """The workspaces of a thread: kernels write the buffer whose check failed to it."""

    def __init__(self) -> None:
        self.by_parallelism: dict[Parallelism, _AddressedWorkspace] = {}


workspaces = _Workspaces()


def kept_workspace(parallelism: Parallelism) -> _AddressedWorkspace:
    """Return a new workspace for kernels that this thread calls, and keep it."""
    workspace = workspace_of(parallelism)
    pair = workspaces.by_parallelism[parallelism] = (workspace, ctypes.addressof(workspace))
    return pair


def function_of_integers(kernel: PlannedKernel) -> Callable[..., int]:
    """Return the machine code of a kernel as a function of integers: addresses, also that of the workspace,
    and scalars. A call takes half a microsecond less than with objects of ctypes that are made for it.

    Integers are passed like addresses of the same size, which ctypes converts in less time.
    """
    # On a 32-bit system a pointer would cut off the upper half of an integer.
    is_same = ctypes.sizeof(ctypes.c_void_p) == ctypes.sizeof(ctypes.c_int64)
    types = [
        ctypes.c_void_p if kind is ctypes.c_int64 and is_same else kind
        for kind in parameter_types(kernel.signature)
    ]
    address: Any = ctypes.cast(kernel.function, ctypes.c_void_p).value  # type: ignore[arg-type]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *types, ctypes.c_void_p)(address)
