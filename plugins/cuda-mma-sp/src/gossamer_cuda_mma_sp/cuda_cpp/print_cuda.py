"""Prints the kernels of a module as CUDA C++."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from gossamer_cuda_mma_sp.cuda_cpp.cpp_types import cpp_type
from gossamer_cuda_mma_sp.cuda_cpp.printed_function import PrintedFunction
from gossamer_cuda_mma_sp.cuda_cpp.statements import DYNAMIC_SHARED, INDENT, cpp_lines
from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Buffer, Function, Module, Param
from gossamer_llvm import (
    SHARED_ALIGNMENT,
    block_shape,
    bounds_checked_buffers,
    is_dynamic_shared,
    shared_memory_of,
    shared_symbol,
)


def print_cuda(kernels: Module, symbols: Mapping[str, str]) -> str:
    """Return a module of kernels as a file of CUDA C++, for nvcc of CUDA 12 and later. `symbols` has the
    symbols of kernels by the names of their functions.

    The kernels have the parameters of those in PTX: pointers, integers as `int64_t`, floats, and the
    workspace.
    `-fmad=false` keeps nvcc from fusing products and sums, which the language rounds one by one.

    Raises `UnsupportedError` (`cuda.cpp`) for what only LLVM lowers.

    >>> from gossamer_ir.script import parse_module
    >>> kernels = parse_module('''
    ... @T.prim_func
    ... def double(x: T.handle) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (64,), "float32")
    ...     for t in T.thread_binding(64, thread="threadIdx.x"):
    ...         X[t] = X[t] * 2.0
    ... ''')
    >>> print(print_cuda(kernels, {"double": "gossamer_kernel"}).partition("}  // namespace gs")[2].strip())
    extern "C" __global__ void __launch_bounds__(64) gossamer_kernel(
        void* x,
        int64_t* workspace) {
      float* X = static_cast<float*>(x);
      {
        const int64_t t = threadIdx.x;
        X[t] = X[t] * 0x1.0000000000000p+1f;
      }
    }
    """
    checked = bounds_checked_buffers(kernels)
    printed = (
        "\n".join(_kernel(kernel, symbols[kernel.name], checked)) for kernel in kernels.functions
    )
    return "\n".join((_prelude(), "\n\n".join(printed), ""))


@cache
def _prelude() -> str:
    return (files(__package__) / "prelude.cuh").read_text(encoding="utf-8")


def _kernel(kernel: Function, symbol: str, checked: tuple[str, ...]) -> Iterator[str]:
    shared = shared_memory_of(kernel)
    is_dynamic = is_dynamic_shared(shared.size)
    offsets = shared.offsets if is_dynamic else {}
    function = PrintedFunction(checked, overflow_of(kernel), offsets)
    x, y, z = block_shape(kernel)
    yield f'extern "C" __global__ void __launch_bounds__({x * y * z}) {symbol}('
    yield from (f"{2 * INDENT}{_parameter(function, param)}," for param in kernel.params)
    yield f"{2 * INDENT}int64_t* workspace) {{"
    lines = (
        *(line for param in kernel.params for line in _convert_parameter(function, param)),
        *_pointers(function, kernel),
        *(_dynamic_shared(function, shared_symbol(symbol, shared.size)) if is_dynamic else ()),
        *cpp_lines(function, kernel.body),
    )
    yield from (f"{INDENT}{line}" for line in lines)
    yield "}"


def _dynamic_shared(function: PrintedFunction, array: str) -> Iterator[str]:
    """Yield the declaration of the array of dynamic shared memory, and of a pointer to it."""
    yield f"extern __shared__ __align__({SHARED_ALIGNMENT}) unsigned char {array}[];"
    yield f"unsigned char* {function.name(DYNAMIC_SHARED)} = {array};"


def _parameter(function: PrintedFunction, param: Param) -> str:
    return f"{_passed_type(param)} {function.name(_passed_name(param))}"


def _passed_type(param: Param) -> str:
    """Return the type in which a parameter is passed: integers have 64 bits, 16-bit floats are their bits."""
    dtype = DType.parse(param.dtype)
    if dtype.kind == "handle":
        return "void*"
    if not dtype.is_float:
        return "int64_t"
    return "uint16_t" if dtype.bits == 16 else cpp_type(param.dtype)


def _passed_name(param: Param) -> str:
    is_own = param.dtype == "handle" or _passed_type(param) == cpp_type(param.dtype)
    return param.name if is_own else f"{param.name} passed"


def _convert_parameter(function: PrintedFunction, param: Param) -> Iterator[str]:
    """Yield the declaration of a parameter that is passed in another type."""
    passed = _passed_name(param)
    if passed != param.name:
        type_ = cpp_type(param.dtype)
        how = "bits" if DType.parse(param.dtype).is_float else "cast"
        yield f"const {type_} {function.name(param.name)} = gs::{how}<{type_}>({function.name(passed)});"


def _pointers(function: PrintedFunction, kernel: Function) -> Iterator[str]:
    """Yield the declarations of pointers to the buffers that are parameters."""
    for buffer in kernel.buffers:
        if isinstance(buffer, Buffer) and buffer.handle is not None:
            function.buffers[buffer.name] = buffer
            type_, handle = cpp_type(buffer.dtype), function.name(buffer.handle)
            yield f"{type_}* {function.name(buffer.name)} = static_cast<{type_}*>({handle});"
