"""Where an init runs that each element sees once, though several points of its block may meet in one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import chain
from typing import Any, TypeAlias

import msgspec

from gossamer_ir.analysis.accesses import parts_of
from gossamer_ir.analysis.invariants import written_in
from gossamer_ir.core.build import ONE
from gossamer_ir.dependence.init_conflicts import is_told_by_element, may_meet
from gossamer_ir.nodes import (
    Block,
    Expr,
    For,
    Function,
    If,
    Search,
    Store,
    Unary,
    While,
)
from gossamer_ir.traversal.effects import (
    TOUCHING,
    buffers_allocated,
    buffers_touched,
    buffers_written,
)
from gossamer_ir.traversal.walk import (
    body_fields,
    buffers_read,
    collect,
    free_vars,
    map_children,
    statements,
)
from gossamer_lower.blocks.marked_inits import not_once

Around: TypeAlias = For | While | If


class InitPlace(msgspec.Struct, frozen=True):
    """The loop before which an init runs; None where it stays where the block stands. Elements of the
    buffers in `marked` are marked once they are initialised, from before a loop of that name on, as
    points that meet in one cannot be told to do the same."""

    before: str | None
    marked: dict[str, str] = {}


def feeds(loop: For, block: Block, kinds: str = "SR") -> bool:
    """Whether a loop feeds an iterator of one of some kinds."""
    return any(loop.var in free_vars(found.value) for found in block.iters if found.kind in kinds)


def place_of_init(outermost: For, block: Block, function: Function) -> InitPlace:
    """Where the init of a block runs, which stands below the outermost loop that feeds an iterator of it.

    Raises `UnsupportedError` (`lower.meeting_inits`) where points may meet in an element that is
    initialised again in each iteration of a loop between.
    """
    around = tuple(_around(outermost, block))
    loops = [stmt for stmt in around if isinstance(stmt, For)]
    meeting, before = _outside(loops, block, function)
    inner = [] if before is None else loops[loops.index(before) + 1 :]
    if inner and not _is_repeatable(block, inner):
        meeting |= _meeting(inner, block, function)
    name = None if before is None else before.var
    if not meeting:
        return InitPlace(name)
    _require_no_repetition(around, before, block)
    return InitPlace(name, _marked_from(loops, block))


def _outside(loops: Sequence[For], block: Block, function: Function) -> tuple[set[str], For | None]:
    """The loop before which an init runs, and the loops around it in which points may meet: the init has
    another effect before these."""
    meeting: set[str] = set()
    for count, loop in enumerate(loops):
        if feeds(loop, block, "R"):
            return meeting, loop
        if _may_meet(loop, block, loops[count + 1 :], function):
            if why_not_before(loop, block, function) is None:
                return meeting, loop
            meeting.add(loop.var)
    return meeting, None


def _meeting(loops: Sequence[For], block: Block, function: Function) -> set[str]:
    return {
        loop.var
        for count, loop in enumerate(loops)
        if _may_meet(loop, block, loops[count + 1 :], function)
    }


def _may_meet(loop: For, block: Block, inner: Sequence[For], function: Function) -> bool:
    values = {found.var: found.value for found in block.iters}
    choices = (stmt for stmt in _around(loop, block) if isinstance(stmt, If))
    between = chain(inner, (_condition(stmt, block) for stmt in choices))
    return may_meet(loop, block, between, values=values, function=function)


def _condition(stmt: If, block: Block) -> Expr:
    """What holds in the side of a choice that a block stands in."""
    is_first = any(found is block for found in statements(stmt.then_body))
    return stmt.condition if is_first else Unary("not", stmt.condition)


def _is_repeatable(block: Block, loops: Sequence[For]) -> bool:
    """Whether an init may run again for an element that points of some loops meet in: what it writes is
    told by the element, and not computed from what was there."""
    targets = buffers_written(block.init)
    return not buffers_read(*block.init) & targets and is_told_by_element(block, loops)


def why_not_before(loop: For, block: Block, function: Function) -> str | None:
    """Why an init does not have the same effect before a loop as where its block first visits each
    element; None where it has."""
    targets = buffers_written(block.init)
    around = list(_around(loop, block))
    headers = buffers_read(*(part for stmt in around for part in parts_of(stmt)))
    reads = buffers_read(*block.init, *parts_of(block))
    changed = written_in(loop.body, function)
    rest = _without(loop, block).body
    beside = buffers_touched(*rest)
    if not _is_repeatable(block, [stmt for stmt in around if isinstance(stmt, For)]):
        return "what it writes is not told by the element"
    if _uses_others(block, targets):
        return "the body uses other elements than it initialises"
    if beside & targets:
        return "other statements of the loop use what it writes"
    if headers & changed or reads & (changed - targets):
        return "the loop changes what it reads"
    if not all(isinstance(stmt, If) or _counts(stmt, block) for stmt in around):
        return "a loop between them repeats the block"
    return None


def _counts(stmt: Around, block: Block) -> bool:
    return isinstance(stmt, For) and feeds(stmt, block)


def _marked_from(loops: Sequence[For], block: Block) -> dict[str, str]:
    """For each buffer the loop from which on its elements are marked: the outermost one in which it
    is not allocated."""
    found: dict[str, str] = {}
    for loop in loops:
        for name in buffers_written(block.init) - buffers_allocated(loop.body):
            if feeds(loop, block):
                found.setdefault(name, loop.var)
    return found


def _require_no_repetition(around: Sequence[Around], before: For | None, block: Block) -> None:
    """Each element is initialised anew in each iteration of a loop that does not feed the block, and of
    a `while`."""
    for stmt in around:
        if stmt is before:
            return
        is_unit = isinstance(stmt, For) and stmt.extent == ONE
        if not (isinstance(stmt, If) or is_unit or _counts(stmt, block)):
            raise not_once(block, "a loop between them repeats the block")


def _uses_others(block: Block, targets: Set[str]) -> bool:
    """Whether the body of a block uses elements of what its init writes that another point initialises:
    it may do so before that point, and would find the new value where the init runs before the loop."""
    own = {(store.buffer, store.indices) for store in collect(Store, *block.init)}
    predicate = () if block.predicate is None else (block.predicate,)
    found = collect(TOUCHING, *block.body, *predicate)
    return any(
        isinstance(node, Search) or (node.buffer, node.indices) not in own
        for node in found
        if node.buffer in targets
    )


def _around(stmt: Any, block: Block) -> Iterator[Around]:
    """The loops and conditions from a statement down to a block that stands in it."""
    if isinstance(stmt, Around) and any(found is block for found in statements((stmt,))):
        yield stmt
        for inner in (found for field in body_fields(type(stmt)) for found in getattr(stmt, field)):
            yield from _around(inner, block)


def _without(stmt: Any, block: Block) -> Any:
    def visit(node: Any) -> Any:
        return () if node is block else map_children(node, visit)

    return visit(stmt)
