"""Bodies of loops that gain iterations past their end, as by a `split` that does not divide the extent.

The blocks and bounds inside are restricted to iterations below the old extent.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import iters_of_init, reduction_loops
from gossamer_ir.core.build import ZERO, index_var
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import Block, Expr, For, If, IfThenElse, Node, Stmt
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import ADDRESSABLE_BODIES, addressable_stmts
from gossamer_schedule.predicates.block_predicates import (
    less_than,
    with_conditional_bound,
    with_domain_bound,
    with_upper_bound,
    zero_beyond_end,
)


def with_bounded_digits(body: tuple[Stmt, ...], names: Set[str]) -> tuple[Stmt, ...]:
    """Return the body with bounds on the iterators that only some of the new loops feed.

    An iterator may be a digit of a fused loop. The init of a block runs without the loops that feed the
    other iterators, and so without the predicates that depend on them.
    """

    def rule(node: Node) -> Block | None:
        if not isinstance(node, Block) or not node.init:
            return None
        block = node
        for iterator in iters_of_init(node):
            if set() < free_vars(iterator.value) & names < names:
                block = with_domain_bound(block, iterator)
        return block

    return rewrite_body(body, rule, leaves=False)


# Other statements: get a condition around them.
def with_bounded_iterations(
    body: tuple[Stmt, ...], loop_name: str, *, extent: Expr, is_always_reached: bool = False
) -> tuple[Stmt, ...]:
    """Return the body, restricted to iterations below the extent of the old loop.

    An extent may have a condition, without which the old loop had no iteration (`n if condition else 0`).
    `is_always_reached`: the new loop runs also where it does not hold.

    >>> from gossamer_ir.script import print_expr
    >>> from gossamer_testkit.examples import SCALE
    >>> (loop,) = SCALE.functions[0].body
    >>> (block,) = with_bounded_iterations(loop.body, "i", extent=loop.extent)
    >>> print_expr(block.predicate)
    'vi < n'
    """
    inner = tuple(
        _with_bounds(stmt, loop_name, extent=extent, is_always_reached=is_always_reached)
        for stmt in body
    )
    # Predicates of blocks suffice if all other statements are loops; anything else needs an If.
    if all(isinstance(outside, (For, Block)) for outside in _stmts_outside_blocks(body)):
        return inner
    return (If(less_than(index_var(loop_name), extent), inner),)


def _stmts_outside_blocks(body: tuple[Stmt, ...]) -> list[Any]:
    """Return the statements of a body and of the loops in it, without those inside blocks."""
    stmts: list[Any] = []
    for child in body:
        stmts.append(child)
        if isinstance(child, For):
            stmts += _stmts_outside_blocks(child.body)
    return stmts


# Other statements: get a condition around them.
def _loads_depend_on(loop: For) -> bool:
    """Return whether further iterations of a loop may load further elements that no predicate protects: in
    loop bounds, iterator values and predicates themselves."""
    names = {loop.var}
    for stmt in _stmts_outside_blocks(loop.body):
        if isinstance(stmt, For):
            names.add(stmt.var)
        elif isinstance(stmt, Block):
            names |= {iterator.var for iterator in stmt.iters if free_vars(iterator.value) & names}
        reads = collect(READS, *effects_of(stmt).evaluates)
        if any(free_vars(read) & names for read in reads):
            return True
    return False


def _is_reduction_loop_of(node: Node, loop_name: str) -> bool:
    """Return whether a loop is a reduction loop of a block, whose init runs without conditions on it."""
    return isinstance(node, Block) and bool(node.init) and loop_name in reduction_loops(node, {})


# Other statements: get a condition around them.
def _with_bounds(node: Node, loop_name: str, *, extent: Expr, is_always_reached: bool) -> Any:
    """Return a statement whose blocks and loop bounds are restricted to iterations below the extent."""
    if isinstance(node, Block):
        if is_always_reached:
            return with_conditional_bound(node, loop_name, extent=extent)
        return with_upper_bound(node, loop_name, extent=extent)
    changed: dict[str, Any] = {
        name: tuple(
            _with_bounds(stmt, loop_name, extent=extent, is_always_reached=is_always_reached)
            for stmt in getattr(node, name)
        )
        for name in ADDRESSABLE_BODIES.get(type(node), ())
    }
    if isinstance(node, For):
        changed["start"] = zero_beyond_end(node.start, loop_name, extent=extent)
        changed["extent"] = _extent_within_bounds(node, loop_name, extent=extent)
    return replace(node, **changed) if changed else node


def _extent_within_bounds(inner: For, loop_name: str, *, extent: Expr) -> Expr:
    """Return the extent of an inner loop, 0 past the end of the split loop if it would otherwise load
    elements that may not exist, or run an init."""
    is_read = _loads_depend_on(inner)
    if is_read and loop_name in free_vars(inner.start):
        return IfThenElse(less_than(index_var(loop_name), extent), inner.extent, ZERO)
    is_rerun = any(_is_reduction_loop_of(stmt, loop_name) for stmt in addressable_stmts(inner.body))
    return zero_beyond_end(inner.extent, loop_name, extent=extent, always=is_rerun or is_read)
