"""Programs on the command line: the name of an operator, or the file of a script."""

from __future__ import annotations

from pathlib import Path

from gossamer.cli.options import require_range
from gossamer.cli.read_input import read_input
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import ALL_NAMES, operator_named
from gossamer_formats.internal_api import WIDE_DTYPES
from gossamer_ir.core.axis_kinds import index_handles
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Buffer, Module, SparseBuffer
from gossamer_ir.traversal.walk import walk


def is_script(program: str) -> bool:
    """Return whether a program is given as a file.

    >>> is_script("spmm"), is_script("programs/mine.py")
    (False, True)
    """
    return program not in ALL_NAMES and (Path(program).suffix != "" or len(Path(program).parts) > 1)


def read_script(path: str) -> Module:
    """Return the module of a script's file, or of standard input."""
    from gossamer_ir.script import parse_module

    hint = f"Give a script's file, or one of {', '.join(ALL_NAMES)}."
    text = read_input(path, what="script", code="option.script", hint=hint)
    return parse_module(text)


def operator_module(
    name: str,
    features: int | None,
    *,
    dtype: str | None = None,
    index_dtype: str | None = None,
) -> Module:
    """Return the module of an operator; raise `ArgumentError` if it has no features but they are given."""
    program = operator_named(name).program
    if features is not None:
        if program.features is None:
            raise ArgumentError("option.features", f"{name} has no --features.")
        require_range("--features", features, low=1, high=2**40)
    return module_of(program, Variant(dtype or "float32", index_dtype, index_dtype, features))


def dtype_overrides(
    module: Module, *, dtype: str | None = None, index_dtype: str | None = None
) -> dict[str, str]:
    """Return `dtype` for each buffer of floats, and `index_dtype` for each axis that stores indices."""
    entry = next(function for function in module.functions if function.name == module.entry)
    floats = {
        node.name
        for node in walk(entry)
        if isinstance(node, (Buffer, SparseBuffer)) and node.dtype in WIDE_DTYPES
    }
    stored = [axis.name for axis in entry.axes if index_handles(axis)]
    return {
        **_all("--dtype", dtype, sorted(floats), "buffer of floats"),
        **_all("--index-dtype", index_dtype, stored, "axis that stores indices"),
    }


def _all(option: str, dtype: str | None, names: list[str], what: str) -> dict[str, str]:
    if dtype is not None and not names:
        raise ArgumentError("option.retype", f"{option} changes nothing: the script has no {what}.")
    return dict.fromkeys(names, dtype) if dtype else {}
