"""The source of call plans, and the names in it: checks of arrays, a new output, the call of machine code.

The code is generated, since loops over parameters and calls of helpers would take longer than a small kernel.
All names in it are those of parameters with a prefix: `array_` and `start_` of an array, `end_` of a written
one, `dtype_` and `shape_`, `size_` of a scalar, and `known_` of an argument as ctypes passes it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np

from gossamer_backend.arguments.array_checks import numpy_dtype
from gossamer_backend.arguments.array_view import address
from gossamer_backend.arguments.size_equations import to_linear
from gossamer_backend.call.abi import (
    Parallelism,
    ParallelismSource,
    Workspace,
    parameter_types,
    workspace_of,
)
from gossamer_backend.call.allocation import LARGE_ARRAY, aligned_empty
from gossamer_backend.call.kernel import Kernel
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam
from gossamer_ir.nodes import Expr
from gossamer_support.arrays import Array


class PlannedKernel(Kernel, Protocol):
    """The parts of a `NativeKernel` that its plans use."""

    @property
    def function(self) -> Callable[..., int]:
        """The machine code."""

    @property
    def parallelism(self) -> ParallelismSource:
        """The source of the number of threads and of the function that runs them."""

    def raise_status(self, status: int, failed: int) -> NoReturn:
        """Raise the error for a status; `failed` is the index of the buffer whose bounds check failed."""


def compile_functions(
    lines: Iterable[str],
    kernel: PlannedKernel,
    passed: Sequence[BufferParam],
    names: Mapping[str, object],
) -> Mapping[str, Callable[..., Any]]:
    """Compile the lines of functions and return them by name. Their globals are `names`, those that the lines
    of this module use, and the dtypes of the parameters that are passed."""
    globals_: dict[str, Any] = {
        "ndarray": np.ndarray,
        "empty": np.empty,
        "aligned_empty": aligned_empty,
        "from_buffer": ctypes.c_char.from_buffer,
        "addressof": ctypes.addressof,
        "read_only_start": _read_only_start,
        "thread": workspaces,
        "keep_workspace": keep_workspace,
        "parallelism": kernel.parallelism,
        **{f"dtype_{param.name}": numpy_dtype(param) for param in passed},
        **names,
    }
    exec(_compile("\n".join(lines)), globals_)
    return globals_


@lru_cache(maxsize=64)
def _compile(source: str) -> CodeType:
    return compile(source, "<call plan>", "exec")


def input_lines(inputs: Sequence[BufferParam]) -> Iterator[str]:
    """Yield the lines that take the arrays from the tuple `inputs`, unless it has another length."""
    yield f"    if len(inputs) != {len(inputs)}:"
    yield "        return None"
    yield f"    {tuple_target('array_', [param.name for param in inputs])} = inputs"


def tuple_target(prefix: str, names: Sequence[str]) -> str:
    """Return the target of an assignment from a tuple: variables with these names after the prefix."""
    return "".join(f"{prefix}{name}, " for name in names).rstrip() or "()"


def shape_lines(passed: Sequence[BufferParam]) -> Iterator[str]:
    """Yield the assignments of the shapes of arrays, which follow from the sizes."""
    for param in passed:
        sizes = "".join(f"{_size_text(size, param)}, " for size in param.shape)
        yield f"shape_{param.name} = ({sizes})"


def output_lines(output: BufferParam, inputs: Sequence[BufferParam]) -> Iterator[str]:
    """Yield the allocation of an output that is None, and otherwise its checks, up to the comparisons with
    the inputs. More lines of the `else` branch may follow."""
    name = output.name
    # A new array overlaps no other one and has the right form, so it needs no checks.
    yield f"    if array_{name} is None:"
    yield f"        array_{name} = empty(shape_{name}, dtype_{name})"
    # `empty` first: its size is known without computing the product of the shape here.
    yield f"        if array_{name}.nbytes >= {LARGE_ARRAY}:"
    yield f"            array_{name} = aligned_empty(shape_{name}, dtype_{name})"
    yield "        try:"
    yield f"            start_{name} = addressof(from_buffer(array_{name}))"
    yield "        except ValueError:  # it is empty"
    yield "            return None"
    yield "    else:"
    yield from lines_of_check(output, "        ")
    yield f"        end_{name} = start_{name} + array_{name}.nbytes"
    for other in inputs:
        end = f"start_{other.name} + array_{other.name}.nbytes"
        yield from overlap_lines(output, f"start_{other.name}", end, "        ")


def overlap_lines(written: BufferParam, start: str, end: str, indent: str) -> Iterator[str]:
    """Yield the comparison of an output with the memory between two addresses. The intervals are half-open:
    arrays that only touch do not overlap."""
    name = written.name
    yield f"{indent}if {start} < end_{name} and start_{name} < {end}:"
    yield f"{indent}    return None"


WORKSPACE_LINES = (
    "    threads = parallelism()",
    "    of, workspace, address, reference = thread.kept",
    "    if of is not threads:",
    "        of, workspace, address, reference = keep_workspace(threads)",
)
"""The lines that set `workspace` to that of this thread, and `address` and `reference` to its address, as an
integer and as ctypes passes it. A source of parallelism returns the same object until it changes."""


def lines_of_check(param: BufferParam, indent: str) -> Iterator[str]:
    """Yield the checks of one array. An empty array has no address, and a subclass may have another
    meaning. ctypes refuses arrays that are read-only, not contiguous or empty."""
    array, start = f"array_{param.name}", f"start_{param.name}"
    # `type`, not isinstance: a subclass such as a masked array may give its elements another meaning.
    yield f"{indent}if type({array}) is not ndarray:"
    yield f"{indent}    return None"
    yield f"{indent}dtype = {array}.dtype"
    # Nearly always the same object, and a comparison of dtypes takes longer.
    yield f"{indent}if dtype is not dtype_{param.name} and dtype != dtype_{param.name}:"
    yield f"{indent}    return None"
    yield f"{indent}if {array}.shape != shape_{param.name}:"
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


def _read_only_start(array: Array) -> int | None:
    """Return the address of an array that is only read; None if it is empty or not contiguous."""
    return address(array) if array.size and array.flags.c_contiguous else None


IS_WIDE = ctypes.sizeof(ctypes.c_void_p) == ctypes.sizeof(ctypes.c_int64)
"""False on a 32-bit system, where a pointer would cut off the upper half of an integer."""

_KeptWorkspace: TypeAlias = tuple[Parallelism | None, Workspace | None, int, object]
"""A workspace with its parallelism, its address, and its address as ctypes passes it."""


class _Workspaces(threading.local):
    """The workspace of a thread: kernels write the buffer whose check failed to it."""

    def __init__(self) -> None:
        self.kept: _KeptWorkspace = (None, None, 0, None)


workspaces = _Workspaces()


def keep_workspace(parallelism: Parallelism) -> tuple[Parallelism, Workspace, int, object]:
    """Return a new workspace for kernels that this thread calls, and keep it in place of an earlier one."""
    workspace = workspace_of(parallelism)
    kept = (parallelism, workspace, ctypes.addressof(workspace), ctypes.byref(workspace))
    workspaces.kept = kept
    return kept


pass_integer: Callable[[int], object] = ctypes.c_void_p.from_param
"""Returns an address, or an integer of the same size, as ctypes passes it to a function without declared
types of parameters."""


def function_of_integers(kernel: PlannedKernel) -> Callable[..., int]:
    """Return the machine code of a kernel as a function of integers: addresses, also that of the workspace,
    and scalars. A call takes half a microsecond less than with objects of ctypes that are made for it.

    Integers are passed like addresses of the same size, which ctypes converts in less time.
    """
    types = [
        ctypes.c_void_p if kind is ctypes.c_int64 and IS_WIDE else kind
        for kind in parameter_types(kernel.signature)
    ]
    address: Any = ctypes.cast(kernel.function, ctypes.c_void_p).value  # type: ignore[arg-type]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *types, ctypes.c_void_p)(address)
