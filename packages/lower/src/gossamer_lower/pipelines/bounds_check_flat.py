"""Inserts bounds checks into a flat module that a user wrote."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from gossamer_ir.core.statement_kinds import CALLING_STMTS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Atomic, Module
from gossamer_ir.traversal.walk import walk
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.pipelines.lower_to_flat import lower_to_flat

_FLAT = (*CALLING_STMTS, Atomic)
"""The statements of the flat stage that do not exist at the loop stage."""


@lowering_pass(takes=("flat",), pipeline=None)
def bounds_check_flat(
    module: Module,
    *,
    vscale: int | None = None,
    instructions: Collection[str] | None = None,
) -> Module:
    """Insert guards for the accesses of a flat module that are not proved in bounds.

    `vscale` and `instructions` are those of `lower_to_flat`.

    The module must also be valid at the loop stage, from which it is lowered again. Raises `UnsupportedError`
    (`lower.bounds_check_flat.not_proved`) if it has calls or atomic accumulations: proofs for a function that
    is called would need the conditions of its caller.

    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_ir.script import parse_module
    >>> before = parse_module('''
    ... @T.prim_func
    ... def f(x: T.handle, n: T.int64) -> None:
    ...     T.stage("flat")
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     X[n] = 1.0
    ... ''')
    >>> print(body_text(bounds_check_flat(before)))
    T.guard(n < n, X)
    X[n] = 1.0
    """
    flat_only = next((node for node in walk(module) if isinstance(node, _FLAT)), None)
    if flat_only is not None:
        raise UnsupportedError(
            "lower.bounds_check_flat.not_proved",
            f"Cannot insert bounds checks into a flat module that has the statement "
            f"'{type(flat_only).__name__}', and cannot prove that its accesses are in bounds.",
            hint="Compile the program of the loop stage from which it was lowered.",
        )
    as_loops = replace(module, stage="loop")
    return lower_to_flat(as_loops, vscale=vscale, instructions=instructions)
