"""Places the init of a block so that each element is initialized once.

The init of a reduction is hoisted before its outermost reduction loop. Different points of the block may
also write the same element through spatial iterators: then the init is hoisted further, if it has the same
effect there, or the elements are marked once they are initialized (`marked_inits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import chain
from typing import Any

import msgspec

from gossamer_ir.analysis.invariants import buffers_written_in
from gossamer_ir.core.build import ONE
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.dependence.init_conflicts import inits_may_conflict, is_determined_by_element
from gossamer_ir.nodes import Block, Expr, For, Function, If, Node, Stmt, Store
from gossamer_ir.traversal.access_types import ELEMENT_NODES, INDEXED_NODES
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.buffer_uses import buffers_accessed, buffers_read, buffers_written
from gossamer_ir.traversal.fields import body_fields, has_bodies
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import map_children
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_lower.blocks.marked_inits import repeated_init_error


class MarkLifetime(msgspec.Struct, frozen=True):
    """The variable of the loop before which the marks of a buffer are cleared, and the loops inside of it
    that repeat the init: each of their iterations has marks of its own."""

    loop: str
    repeating: tuple[For, ...] = ()


class InitPosition(msgspec.Struct, frozen=True):
    """The loop before which an init runs; None if it stays in the block. `marked` has the buffers whose
    initialized elements must be marked."""

    before: str | None
    marked: dict[str, MarkLifetime] = {}


def is_fed_by_loop(loop: For, block: Block, kinds: str = "SR") -> bool:
    """Return whether an iterator of one of these kinds depends on the loop."""
    return any(
        loop.var in free_vars(iterator.value) for iterator in block.iters if iterator.kind in kinds
    )


def position_of_init(outermost: For, block: Block, function: Function) -> InitPosition:
    """Return where the init of a block runs; `outermost` is the outermost loop that feeds the block.

    Raises `UnsupportedError` (`lower.lower_blocks.conflicting_inits`) if several points may write an element
    that a `while` in between initializes again in each iteration.
    """
    around = tuple(_enclosing_stmts(outermost, block))
    loops = [stmt for stmt in around if isinstance(stmt, For)]
    conflicting, before = _conflicts_and_position(loops, block, function)
    inner = [] if before is None else loops[loops.index(before) + 1 :]
    # Even after hoisting, spatial loops inside may visit an element twice; that is harmless only if both
    # visits store the same value.
    if inner and not _is_repeatable(block, inner):
        conflicting |= _conflicting_loops(inner, block, function)
    name = None if before is None else before.var
    if not conflicting:
        return InitPosition(name)
    # Loops outside of the position run the init again, which is intended.
    outside = around if before is None else around[: around.index(before)]
    return InitPosition(name, _mark_lifetimes(outside, loops, block))


def _conflicts_and_position(
    loops: Sequence[For], block: Block, function: Function
) -> tuple[set[str], For | None]:
    """Return the enclosing loops whose iterations may write the same element, before which the init
    would have another effect, and the loop before which the init runs."""
    conflicting: set[str] = set()
    for depth, loop in enumerate(loops):
        # The outermost reduction loop: further outside, the init would run once for several reductions.
        if is_fed_by_loop(loop, block, "R"):
            return conflicting, loop
        if _inits_may_conflict(loop, block, loops[depth + 1 :], function):
            # Hoisting is cheaper than marks, which cost a load and a branch per element.
            if obstacle_to_hoisting(loop, block, function) is None:
                return conflicting, loop
            conflicting.add(loop.var)
    return conflicting, None


def _conflicting_loops(loops: Sequence[For], block: Block, function: Function) -> set[str]:
    return {
        loop.var
        for depth, loop in enumerate(loops)
        if _inits_may_conflict(loop, block, loops[depth + 1 :], function)
    }


def _inits_may_conflict(loop: For, block: Block, inner: Sequence[For], function: Function) -> bool:
    values = {iterator.var: iterator.value for iterator in block.iters}
    branches = (stmt for stmt in _enclosing_stmts(loop, block) if isinstance(stmt, If))
    conditions = (condition for stmt in branches for condition in _conditions(stmt, block))
    between = chain(inner, conditions)
    return inits_may_conflict(loop, block, between, values=values, function=function)


def _conditions(stmt: If, block: Block) -> tuple[Expr, ...]:
    """Return the conditions under which the branch with the block is taken."""
    return next(
        body.conditions
        for body in effects_of(stmt).bodies
        if any(inner is block for inner in stmts(body.stmts))
    )


def _is_repeatable(block: Block, loops: Sequence[For]) -> bool:
    """Return whether the init is idempotent for elements that several iterations of the loops write: its
    value depends on the element only, and not on the old value."""
    targets = buffers_written(block.init)
    return not buffers_read(*block.init) & targets and is_determined_by_element(block, loops)


def obstacle_to_hoisting(loop: For, block: Block, function: Function) -> str | None:
    """Return why an init cannot be hoisted before a loop: it would not have the effect that it has where
    the block first visits each element. None if it can."""
    targets = buffers_written(block.init)
    around = list(_enclosing_stmts(loop, block))
    headers = buffers_read(*(part for stmt in around for part in effects_of(stmt).evaluates))
    reads = buffers_read(*block.init, *effects_of(block).evaluates)
    changed = buffers_written_in(loop.body, function)
    rest = _without_block(loop, block).body
    beside = buffers_accessed(*rest)
    if not _is_repeatable(block, [stmt for stmt in around if isinstance(stmt, For)]):
        return "the values it writes do not depend on the element alone"
    if _uses_others(block, targets):
        return "the body uses other elements than it initializes"
    if beside & targets:
        return "other statements of the loop use what it writes"
    if headers & changed or reads & (changed - targets):
        return "the loop changes what it reads"
    if any(_is_repeating(stmt, block) for stmt in around):
        return "a loop that does not feed the block repeats it"
    return None


def _is_repeating(stmt: Stmt, block: Block) -> bool:
    """Return whether a statement repeats a block as a whole, so that each repetition initializes anew."""
    if isinstance(stmt, For):
        return stmt.extent != ONE and not is_fed_by_loop(stmt, block)
    return any(body.repeats for body in effects_of(stmt).bodies)


def _mark_lifetimes(
    outside: Sequence[Stmt], loops: Sequence[For], block: Block
) -> dict[str, MarkLifetime]:
    """Return, for each buffer, where its marks are cleared: before the outermost loop that feeds the block
    and in which the buffer is not allocated. `outside` are the statements before which no init runs."""
    marked_from: dict[str, MarkLifetime] = {}
    for loop in loops:
        for name in buffers_written(block.init) - buffers_allocated(loop.body):
            if is_fed_by_loop(loop, block) and name not in marked_from:
                marked_from[name] = MarkLifetime(loop.var, _repeating_inside(loop, outside, block))
    return marked_from


def _repeating_inside(loop: For, outside: Sequence[Stmt], block: Block) -> tuple[For, ...]:
    """Return the loops inside of a loop that repeat the block with its init.

    Raises an error for a `while`, whose number of iterations is unknown.
    """
    inside = outside[outside.index(loop) + 1 :] if loop in outside else ()
    repeating = [stmt for stmt in inside if _is_repeating(stmt, block)]
    loops = tuple(stmt for stmt in repeating if isinstance(stmt, For))
    if len(loops) < len(repeating):
        raise repeated_init_error(block, "a while loop repeats it")
    return loops


def _uses_others(block: Block, targets: Set[str]) -> bool:
    """Return whether the body of a block accesses elements that the init of another point writes. It may
    do so before that point runs, and would read the new value if the init were hoisted."""
    stored = {(store.buffer, store.indices) for store in collect(Store, *block.init)}
    predicate = () if block.predicate is None else (block.predicate,)
    indexing = collect(INDEXED_NODES, *block.body, *predicate)
    return any(
        not isinstance(node, ELEMENT_NODES) or (node.buffer, node.indices) not in stored
        for node in indexing
        if node.buffer in targets
    )


def _enclosing_stmts(stmt: Stmt, block: Block) -> Iterator[Stmt]:
    """Yield the statements on the path from a statement down to a block inside it, up to another block."""
    is_around = not isinstance(stmt, Block) and has_bodies(type(stmt))
    if is_around and any(nested is block for nested in stmts((stmt,))):
        yield stmt
        for inner in (
            nested for field in body_fields(type(stmt)) for nested in getattr(stmt, field)
        ):
            yield from _enclosing_stmts(inner, block)


def _without_block(stmt: Stmt, block: Block) -> Any:
    def visit(node: Node) -> Any:
        return () if node is block else map_children(node, visit)

    return visit(stmt)
