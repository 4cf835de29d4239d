"""Kernels that are compiled once for arguments of equal kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.registry.compiler import Compile, ConversionKernel
from gossamer_ir.nodes import Buffer, Expr, Fact, Function, Module, Param, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_named
from gossamer_ir.traversal.free_vars import free_vars


class ArrayArgument(NamedTuple):
    """An array, which the kernel sees in a shape, and facts about its contents.

    Facts are not checked again, so the array must have been checked and be read-only. `array` is a NumPy
    array, or the `RecordedValue` of one.
    """

    array: Any
    dtype: str
    shape: tuple[Expr, ...]
    facts: tuple[Fact, ...] = ()


KernelArguments: TypeAlias = Mapping[str, Any]
"""The arguments of a kernel by name: `ArrayArgument`s, and integers or their `RecordedValue`s, which may
occur in the shapes of arrays."""


class KernelCall(NamedTuple):
    """A kernel with its arguments."""

    kernel: ConversionKernel
    arguments: tuple[Any, ...]


def run_kernel(recorder: Recorder, body: Sequence[Stmt], arguments: KernelArguments) -> None:
    """Run a kernel, whose arguments may be values of a recording.

    The arrays are those of a checked storage, or were made for the kernels of the conversion.
    """
    kernel, passed = kernel_call(recorder.compile, body, arguments)
    recorder.compute(kernel.run_trusted, *passed)


def kernel_call(compile: Compile, body: Sequence[Stmt], arguments: KernelArguments) -> KernelCall:
    """Return the call of a kernel; arguments that it does not name are left out.

    >>> from gossamer_formats.conversion.by_kernels.kernels.statements import loop, store
    >>> from gossamer_ir.core.build import ONE, index_var
    >>> from gossamer_ir.script import print_module
    >>> X = ArrayArgument("an array of 7 elements", "int32", (index_var("n"),))
    >>> i = index_var("i")
    >>> body = [loop("i", ONE, index_var("n"), [store("X", i, i, "int32")])]
    >>> call = kernel_call(lambda module: module, body, {"X": X, "n": 7, "m": 8})
    >>> call.arguments
    ('an array of 7 elements', 7)
    >>> print(print_module(call.kernel).partition("@T.prim_func")[2].strip())
    def convert(
        X_: T.handle,
        n: T.int64,
    ) -> None:
        T.func_attr({"sparse_tir_level": 0})
        X = T.match_buffer(X_, (n,), "int32")
        for i in T.serial(1, n):
            X[i] = T.int32(i)
    """
    named = buffers_named(*body)
    arrays = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, ArrayArgument) and name in named
    }
    parts = [node for array in arrays.values() for node in (*array.shape, *array.facts)]
    vars = free_vars(*body, *parts)
    parameters: list[KernelParameter] = []
    passed = []
    for name, value in arguments.items():
        if name in arrays:
            parameters.append(KernelParameter(name, value.dtype, value.shape, value.facts))
            passed.append(value.array)
        elif name in vars:
            parameters.append(KernelParameter(name))
            passed.append(value)
    return KernelCall(_compile(compile, tuple(body), tuple(parameters)), tuple(passed))


class KernelParameter(NamedTuple):
    """A parameter: an array, or an integer if it has no dtype."""

    name: str
    dtype: str | None = None
    shape: tuple[Expr, ...] = ()
    facts: tuple[Fact, ...] = ()


# Enough for some hundred pairs of formats; to load a kernel again takes as long as to convert 100,000 values.
@lru_cache(maxsize=512)
def _compile(
    compile: Compile, body: tuple[Stmt, ...], parameters: tuple[KernelParameter, ...]
) -> ConversionKernel:
    return compile(_module_of(body, parameters))


def _module_of(body: tuple[Stmt, ...], parameters: tuple[KernelParameter, ...]) -> Module:
    """Return the module of a kernel with these parameters."""
    params = [
        Param(name, "int64") if dtype is None else Param(f"{name}_", "handle")
        for name, dtype, _, _ in parameters
    ]
    buffers = [
        Buffer(name, shape, dtype, f"{name}_")
        for name, dtype, shape, _ in parameters
        if dtype is not None
    ]
    facts = [fact for parameter in parameters for fact in parameter.facts]
    function = Function("convert", tuple(params), body, buffers=tuple(buffers), facts=tuple(facts))
    return Module("loop", (function,), "convert")
