"""Loop-stage programs that are written as text, and run on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

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
    def run_trusted(self) -> Callable[..., Any]:
        """Runs the program with arguments in the order of the parameters, which are not checked."""


Compile: TypeAlias = Callable[[Module], Program]
"""Compiles a program."""


def run_program(compile: Compile, lines: Sequence[str], arguments: Arguments) -> None:
    """Run a program with arguments that its lines name; those that are not named are left out.

    >>> import numpy as np
    >>> lines = ["for i in T.serial(n):", "    X[i] = Y[i]"]
    >>> known = ("in_range(Y, 0, 1)",)
    >>> of_arrays = [("X", np.dtype("int64"), None, ()), ("Y", np.dtype("int32"), "n", known)]
    >>> parameters = [*of_arrays, ("n", None, "", ())]
    >>> print(print_program(lines, parameters).strip())
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
    params: list[Param] = []
    for name, value in arguments.items():
        if isinstance(value, int):
            passed.append(value)
            params.append((name, None, "", ()))
        elif isinstance(value, Operand):
            passed.append(value.array)
            params.append((name, value.array.dtype, value.size, value.facts))
        else:
            passed += [value, value.size]
            params.append((name, value.dtype, None, ()))
    # The arrays are those of a checked storage, or were made here for these programs.
    _compiled(compile, tuple(lines), tuple(params)).run_trusted(*passed)


Param: TypeAlias = tuple[str, "np.dtype[Any] | None", "str | None", tuple[str, ...]]
"""A parameter: its name; the dtype of an array, None of an integer; the text of the number of elements, None
for a parameter of its own; and the facts about its contents."""


def print_program(lines: Sequence[str], parameters: Sequence[Param]) -> str:
    """Return the script of a program."""
    names, buffers, facts = [], [], []
    for name, dtype, size, known in parameters:
        if dtype is None:
            names.append(f"{name}: T.int64")
            continue
        names.append(f"{name}_: T.handle")
        if size is None:
            size = f"{name}_size"
            names.append(f"{size}: T.int64")
        facts += [f"T.assume({fact})" for fact in known]
        buffers.append(f'{name} = T.match_buffer({name}_, ({size},), "{native_name(dtype)}")')
    body = "\n".join(f"    {line}" for line in [*buffers, *facts, *lines])
    return (
        f"@T.prim_func\ndef convert({', '.join(names)}) -> None:\n"
        f'    T.func_attr({{"sparse_tir_level": 0}})\n{body}\n'
    )


@lru_cache(maxsize=512)
def _compiled(compile: Compile, lines: tuple[str, ...], parameters: tuple[Param, ...]) -> Program:
    return compile(parse_module(print_program(lines, parameters)))


def widened(text: str, dtype: str) -> str:
    """Return the text of an element of an array of a dtype as an int64."""
    return text if dtype == "int64" else f"T.int64({text})"


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Return lines within a statement.

    >>> indented(["x = 1"])
    ['    x = 1']
    """
    return ["    " * depth + line for line in lines]
