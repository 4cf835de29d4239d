"""Loop-stage programs that are written as text, and run on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from gossamer_formats.storage import Array
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module

Arguments: TypeAlias = Mapping[str, "Array | int"]
"""The arguments of a program by name: arrays, which are seen as flat, and integers."""

Compile: TypeAlias = Callable[[Module], Callable[..., Any]]
"""Returns a function that runs a program; its arguments are the parameters of the program, in order."""


def run_program(compile: Compile, lines: Sequence[str], arguments: Arguments) -> None:
    """Run a program with arguments that its lines name; those that are not named are left out.

    >>> import numpy as np
    >>> lines = ["for i in T.serial(n):", "    X[i] = n"]
    >>> print(print_program(lines, {"X": np.zeros(2, np.int64), "n": 2}).strip())
    @T.prim_func
    def convert(X_: T.handle, X_size: T.int64, n: T.int64) -> None:
        T.func_attr({"sparse_tir_level": 0})
        X = T.match_buffer(X_, (X_size,), "int64")
        for i in T.serial(n):
            X[i] = n
    """
    passed: list[Array | int] = []
    for value in arguments.values():
        passed += [value] if isinstance(value, int) else [value.reshape(-1), value.size]
    _compiled(compile, print_program(lines, arguments))(*passed)


def print_program(lines: Sequence[str], arguments: Arguments) -> str:
    """Return the script of a program."""
    params, buffers = [], []
    for name, value in arguments.items():
        if isinstance(value, int):
            params.append(f"{name}: T.int64")
        else:
            params += [f"{name}_: T.handle", f"{name}_size: T.int64"]
            buffers.append(
                f'{name} = T.match_buffer({name}_, ({name}_size,), "{value.dtype.name}")'
            )
    body = "\n".join(f"    {line}" for line in [*buffers, *lines])
    return (
        f"@T.prim_func\ndef convert({', '.join(params)}) -> None:\n"
        f'    T.func_attr({{"sparse_tir_level": 0}})\n{body}\n'
    )


@lru_cache(maxsize=256)
def _compiled(compile: Compile, script: str) -> Callable[..., Any]:
    return compile(parse_module(script))


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Return lines within a statement.

    >>> indented(["x = 1"])
    ['    x = 1']
    """
    return ["    " * depth + line for line in lines]
