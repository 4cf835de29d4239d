"""Runs scripts at every stage with the interpreter and natively, and compares the results with NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pytest

from gossamer.compilation.build_kernels import KERNELS
from gossamer.compilation.pipeline import lower_by_stage
from gossamer_backend import Kernel
from gossamer_ir.errors import UserError
from gossamer_ir.interchange.records import Schedule
from gossamer_ir.interpret import run
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.interpret.program import InterpretedKernel
from gossamer_ir.nodes import Guard, Module
from gossamer_ir.script import parse_module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.walk import walk
from gossamer_support.arrays import Array
from gossamer_testkit import script

Arguments: TypeAlias = Mapping[str, Any]


def program(
    name: str,
    *,
    dtype: str = "float32",
    index: str = "int32",
    fill: str = "0.0",
    changes: Mapping[str, str] | None = None,
    dtypes: Mapping[str, str] | None = None,
) -> Module:
    """A script of the corpus with other dtypes of its buffers and index arrays, another fill value of its
    looked-up buffers, and replaced parts of its text."""
    text = script(name)
    for old, new in {"default=0.0": f"default={fill}", **(changes or {})}.items():
        text = text.replace(old, new)
    return _program(text, dtype, index, tuple((dtypes or {}).items()))


# Tests differ in their arguments more often than in their programs: the last ones are kept.


@lru_cache(maxsize=8)
def _program(text: str, dtype: str, index: str, dtypes: tuple[tuple[str, str], ...]) -> Module:
    module = retype_module(parse_module(text), dtype=dtype, index_dtype=index)
    return specialize(module, {}, dtypes=dict(dtypes)) if dtypes else module


@lru_cache(maxsize=8)
def kernels(module: Module) -> tuple[Kernel, ...]:
    """The kernel without a schedule, and the one with the schedule of the rules."""
    return tuple(
        KERNELS.build_module(module, schedule=schedule).kernel for schedule in (Schedule(), None)
    )


@lru_cache(maxsize=8)
def stages(module: Module) -> tuple[Module, ...]:
    """The module at each stage."""
    return tuple(lower_by_stage(module, Schedule()))


@lru_cache(maxsize=8)
def interpreted(module: Module) -> tuple[InterpretedKernel, ...]:
    """The stages to interpret, which takes most of the time: all, or the last one of programs in float64.
    Their earlier stages are those of the same programs in float32, and the last one inherits what is wrong
    in them."""
    dtypes = {buffer.dtype for function in module.functions for buffer in function.buffers}
    chosen = (
        stages(module)[-1:] if "float64" in dtypes and "float32" not in dtypes else stages(module)
    )
    return tuple(InterpretedKernel(stage, vscale=1, chunks=1) for stage in chosen)


def guards(module: Module) -> list[str]:
    """The buffers with bounds checks at the flat stage."""
    return [node.buffer for node in walk(stages(module)[-1]) if isinstance(node, Guard)]


def results(module: Module, arguments: Arguments, *names: str) -> Iterator[tuple[str, list[Array]]]:
    """The arrays of these names after each way to run a module."""
    (function,) = module.functions
    params = [param.name for param in function.params]
    for program in interpreted(module):
        copies = copied({name: arguments[name] for name in params})
        program.run(copies)
        yield program.module.stage, [copies[name] for name in names]
    for way, kernel in zip(("native", "native by rules"), kernels(module), strict=True):
        copies = copied({name: arguments[name] for name in params})
        call(kernel, copies)
        yield way, [copies[name] for name in names]


def call(kernel: Kernel, arguments: Arguments) -> None:
    """Calls a kernel with the arguments that it has parameters for."""
    signature = kernel.signature
    names = [param.name for param in (*signature.buffers, *signature.scalars)]
    kernel(**{name: arguments[name] for name in names})


def assert_everywhere(module: Module, arguments: Arguments, **expected: Array) -> None:
    """Every way to run a module leaves exactly these values (given in float64)."""
    for way, arrays in results(module, arguments, *expected):
        for array, (name, wanted) in zip(arrays, expected.items(), strict=True):
            np.testing.assert_array_equal(array.reshape(wanted.shape), wanted, f"{name}, {way}")


def assert_refused(module: Module, arguments: Arguments, *, match: str) -> None:
    """The interpreter stops the module at each stage, and kernels raise an error with this message."""
    for stage in stages(module):
        with pytest.raises(InterpreterError):
            run(stage, arguments)
    for kernel in kernels(module):
        with pytest.raises(UserError, match=match):
            call(kernel, arguments)


def copied(arguments: Arguments) -> dict[str, Any]:
    """The arguments, with arrays that may be written."""
    return {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }
