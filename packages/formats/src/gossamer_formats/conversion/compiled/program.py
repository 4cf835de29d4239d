"""Loop-stage programs that are written as text, and run on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

from gossamer_formats.storage import Array, native_name
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module


class Operand(NamedTuple):
    """An array argument: the text of its number of elements, and facts that hold for its contents.

    The facts (`T.assume`) are not checked again, so the array must have been checked and be read-only.
    """

    array: Array
    size: str
    facts: tuple[str, ...] = ()


Arguments: TypeAlias = Mapping[str, "Array | Operand | int"]
"""The arguments of a program by name: arrays, which are seen as flat, and integers, which may occur in the
sizes of arrays."""


class Program(Protocol):
    """A compiled program."""

    @property
    def bind_trusted(self) -> Callable[..., Callable[[], Any]]:
        """Return a call with arguments in the order of the parameters, which are not checked."""


Compile: TypeAlias = Callable[[Module], Program]
"""Compiles a program."""


def run_program(compile: Compile, lines: Sequence[str], arguments: Arguments) -> None:
    """Run a program with arguments that its lines name; those that are not named are left out.

    >>> import numpy as np
    >>> lines = ["for i in T.serial(n):", "    X[i] = Y[i]"]
    >>> operand = Operand(np.zeros(2, np.int32), "n", ("in_range(Y, 0, 1)",))
    >>> print(print_program(lines, {"X": np.zeros(2, np.int64), "Y": operand, "n": 2}).strip())
    @T.prim_func
    def convert(X_: T.handle, X_size: T.int64, Y_: T.handle, n: T.int64) -> None:
        T.func_attr({"sparse_tir_level": 0})
        X = T.match_buffer(X_, (X_size,), "int64")
        Y = T.match_buffer(Y_, (n,), "int32")
        T.assume(in_range(Y, 0, 1))
        for i in T.serial(n):
            X[i] = Y[i]
    """
    passed: list[Array | int] = []
    for value in arguments.values():
        if isinstance(value, Operand):
            passed.append(value.array)
        elif isinstance(value, int):
            passed.append(value)
        else:
            passed += [value, value.size]
    # The arrays are those of a checked storage, or were made here for these programs.
    _compiled(compile, print_program(lines, arguments)).bind_trusted(*passed)()


def print_program(lines: Sequence[str], arguments: Arguments) -> str:
    """Return the script of a program."""
    params, buffers, facts = [], [], []
    for name, value in arguments.items():
        if isinstance(value, int):
            params.append(f"{name}: T.int64")
            continue
        params.append(f"{name}_: T.handle")
        if isinstance(value, Operand):
            array, size = value.array, value.size
            facts += [f"T.assume({fact})" for fact in value.facts]
        else:
            array, size = value, f"{name}_size"
            params.append(f"{size}: T.int64")
        buffers.append(f'{name} = T.match_buffer({name}_, ({size},), "{native_name(array.dtype)}")')
    body = "\n".join(f"    {line}" for line in [*buffers, *facts, *lines])
    return (
        f"@T.prim_func\ndef convert({', '.join(params)}) -> None:\n"
        f'    T.func_attr({{"sparse_tir_level": 0}})\n{body}\n'
    )


@lru_cache(maxsize=256)
def _compiled(compile: Compile, script: str) -> Program:
    return compile(parse_module(script))


def widened(text: str, dtype: str) -> str:
    """Return the text of an element of an array of a dtype as an int64."""
    return text if dtype == "int64" else f"T.int64({text})"


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Return lines within a statement.

    >>> indented(["x = 1"])
    ['    x = 1']
    """
    return ["    " * depth + line for line in lines]
