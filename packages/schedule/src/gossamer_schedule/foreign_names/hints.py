"""Hints for the names of all other compilers.

A test checks that no name in the tables is an attribute of a builder.
"""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_schedule.foreign_names import exo, halide, tvm

METHODS: Mapping[str, str] = {**halide.METHODS, **exo.METHODS, **tvm.METHODS}
"""Names of methods and attributes that a builder does not have."""


def argument_hint(op: str, name: str | None = None) -> str:
    """Return the hint for an argument, after a space; without a name, the hint for positional arguments. ""
    if none.

    >>> argument_hint("bind", "thread_axis")
    ' It is called thread.'
    """
    hint = tvm.POSITIONS.get(op) if name is None else tvm.ARGUMENTS.get((op, name))
    return "" if hint is None else f" {hint}"
