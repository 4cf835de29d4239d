"""Bounds that conditions give for the variables of loops, and loops shortened to these bounds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ONE, ZERO, add, index_var, integer_value, sub
from gossamer_ir.nodes import Binary, Block, Compare, Expr, For, Stmt, Var
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_ir.traversal.walk import contains

_SWAPPED_OPS = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""The comparison that is equivalent after the operands are swapped."""


class LoopBound(msgspec.Struct, frozen=True):
    """A bound of a loop variable: its first value if `is_lower`, else the value before which it ends.

    It is the other side of a comparison with the variable, as written. The shortened loop computes it, so
    no terms are moved from one side to the other, where they might overflow (`slack_of`).
    """

    loop: str
    value: Expr
    is_lower: bool


# Other expressions: nothing is concluded from them.
def loop_bound_of(part: Expr, block: Block, loops: Sequence[For]) -> LoopBound | None:
    """Return the bound that a condition gives for one of the loops; None if it is not such a condition.

    The shortened loop replaces the condition.
    """
    # `!=` does not leave a contiguous range.
    if not isinstance(part, Compare) or part.op not in _SWAPPED_OPS:
        return None
    op: str = part.op
    var, bound = part.lhs, part.rhs
    if isinstance(bound, Var) and any(iterator.var == bound.name for iterator in block.iters):
        op, var, bound = _SWAPPED_OPS[op], part.rhs, part.lhs
    loop = _loop_of(var, block, loops)
    end = _bound_value(op, bound)
    if loop is None or end is None or _is_varying(end, block, loops):
        return None
    return LoopBound(loop, end, is_lower=op in ("gt", "ge"))


def _loop_of(var: Expr, block: Block, loops: Sequence[For]) -> str | None:
    """Return the serial loop, starting at 0, whose variable is the value of an iterator of the block."""
    for iterator in block.iters:
        if isinstance(var, Var) and iterator.var == var.name and isinstance(iterator.value, Var):
            for loop in loops:
                is_plain = loop.kind == "serial" and integer_value(loop.start) == 0
                if loop.var == iterator.value.name and is_plain:
                    return loop.var
    return None


def _bound_value(op: str, bound: Expr) -> Expr | None:
    """Return the first value that `>= bound` or `> bound` allows, or that `< bound` or `<= bound` excludes.

    None if computing it may overflow.
    """
    if op in ("ge", "lt"):
        return bound
    value = integer_value(bound)
    # The next value after the largest int64 does not exist.
    return None if value is None or value == 2**63 - 1 else add(bound, ONE)


def _is_varying(bound: Expr, block: Block, loops: Sequence[For]) -> bool:
    """Return whether a bound depends on the loops or iterators, or is read from a buffer."""
    names = {iterator.var for iterator in block.iters} | {loop.var for loop in loops}
    # The loop evaluates its bounds once, before the body could change what they read.
    return bool(free_vars(bound) & names) or contains(READS, bound)


def shortened_loop(loop: For, bounds: Sequence[LoopBound], body: Stmt) -> For:
    """Return the loop over the iterations within bounds, starting at 0.

    Bounds are clamped to [0, extent], so their differences do not overflow.

    >>> from gossamer_ir.core.build import index
    >>> from gossamer_ir.nodes import Store
    >>> from gossamer_ir.script import print_expr
    >>> bounds = [LoopBound("i", index(2), is_lower=True), LoopBound("i", index(14), is_lower=False)]
    >>> store = Store("Y", (index_var("i"),), ZERO)
    >>> loop = shortened_loop(For("i", ZERO, index(16), ()), bounds, store)
    >>> print_expr(loop.extent), print_expr(loop.body[0].indices[0])
    ('12', 'i + 2')
    """
    low, end = ZERO, loop.extent
    for bound in bounds:
        value = _clamped_bound(bound.value, loop.extent)
        if bound.is_lower:
            low = simplify(Binary("max", low, value))
        else:
            end = simplify(Binary("min", end, value))
    shifted = substitute_body(
        (body,), {} if low == ZERO else {loop.var: add(index_var(loop.var), low)}
    )
    return replace(loop, extent=simplify(sub(end, low)), body=shifted)


def _clamped_bound(bound: Expr, extent: Expr) -> Expr:
    """Return a bound, clamped to [0, extent]."""
    clamped: Expr = simplify(Binary("max", Binary("min", bound, extent), ZERO))
    return clamped
