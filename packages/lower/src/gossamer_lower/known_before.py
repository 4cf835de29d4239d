"""Whether what a loop asks for in its iterations may be asked for once, before it."""

from __future__ import annotations

from gossamer_ir import build
from gossamer_ir.lasting import written_in
from gossamer_ir.nodes import Binary, Expr, For, Function, IfThenElse, Load, Search
from gossamer_ir.walk import buffers_read, occurrences, occurs


def is_known_before(expr: Expr, loop: For, function: Function) -> bool:
    """Whether an expression without the loop's variable has a value before the loop, also where that has
    no iteration, and keeps it."""
    known = set(_in_any_case(loop.start, loop.extent))
    if not known.issuperset(_partial(expr)):
        return False
    return buffers_read(expr).isdisjoint(written_in(loop.body, function))


def _in_any_case(*exprs: Expr) -> list[Expr]:
    """What expressions read and divide, unless they may leave it out."""
    return [] if occurs(IfThenElse, *exprs) else _partial(*exprs)


def _partial(*exprs: Expr) -> list[Expr]:
    """What may have no value in expressions: reads, and quotients by what may be zero."""
    return [
        found for found in occurrences((Load, Search, Binary), *exprs)
        if not isinstance(found, Binary)
        or (found.op in ("floordiv", "floormod") and not build.integer_value(found.rhs))
    ]  # fmt: skip
