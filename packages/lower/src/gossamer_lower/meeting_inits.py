"""Where points of a block may meet in one element, its init runs before the loops in which they do."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from gossamer_ir.effects import TOUCHING, buffers_touched, buffers_written
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.lasting import written_in
from gossamer_ir.marks import INIT_OF_ELEMENT
from gossamer_ir.names import bound_variables
from gossamer_ir.nodes import (
    Block,
    For,
    Function,
    If,
    Search,
    Store,
    While,
)
from gossamer_ir.touches import parts_of
from gossamer_ir.verify.elements import Told
from gossamer_ir.walk import buffers_read, free_vars, map_children, occurrences, statements


def require_before(loop: For, block: Block, function: Function) -> None:
    """An init has the same effect before a loop as where its block first visits each element.

    Raises `UnsupportedError` (`lower.meeting_inits`) otherwise: it depends on more than the element, or
    something else in the loop touches what it writes or changes what it reads.
    """
    targets = buffers_written(block.init)
    around = list(_around(loop, block))
    asked = [part for stmt in (*around, block) for part in parts_of(stmt)]
    reads = buffers_read(*block.init, *asked)
    rest = _without(loop, block).body
    beside = buffers_touched(*rest)
    changed = written_in(loop.body, function) - targets
    require_repeatable(block)
    _require_of_element(loop, block)
    if _uses_others(block, targets):
        raise _meeting(block, targets, "its body uses other elements than it initialises")
    if beside & targets:
        raise _meeting(block, targets, f"other statements of the loop {loop.var} use it")
    if reads & changed:
        raise _meeting(block, targets, f"the loop {loop.var} changes what it is initialised from")
    if any(not _feeds(stmt, block) for stmt in around):
        raise _meeting(block, targets, "a loop between them repeats the block")


def require_repeatable(block: Block) -> None:
    """An init that may run several times for an element does not read what it writes.

    Raises `UnsupportedError` (`lower.meeting_inits`) otherwise.
    """
    targets = buffers_written(block.init)
    if buffers_read(*block.init) & targets:
        raise _meeting(block, targets, "it is computed from what was there")


def _require_of_element(loop: For, block: Block) -> None:
    """The value that an init writes is told by the element."""
    if dict(block.annotations).get(INIT_OF_ELEMENT, False):
        return
    targets = buffers_written(block.init)
    names = {stmt.var for stmt in _around(loop, block) if isinstance(stmt, For)}
    names |= {found.var for found in block.iters} | set(bound_variables(block.init))
    stores = (stmt for stmt in statements(block.init) if isinstance(stmt, Store))
    if not all(_is_of_element(store, names) for store in stores):
        raise _meeting(block, targets, "the value depends on which of them comes first")


def _uses_others(block: Block, targets: Set[str]) -> bool:
    """Whether the body of a block uses elements of what its init writes that another point initialises:
    it may do so before that point, and would find the new value where the init runs before the loop."""
    own = {(store.buffer, store.indices) for store in occurrences(Store, *block.init)}
    predicate = () if block.predicate is None else (block.predicate,)
    found = occurrences(TOUCHING, *block.body, *predicate)
    return any(
        isinstance(node, Search) or (node.buffer, node.indices) not in own
        for node in found
        if node.buffer in targets
    )


def _around(stmt: Any, block: Block) -> Iterator[For | While | If]:
    """The loops and conditions from a statement down to a block that stands in it."""
    if isinstance(stmt, (For, While, If)) and any(found is block for found in statements((stmt,))):
        yield stmt
        bodies = (stmt.then_body, stmt.else_body) if isinstance(stmt, If) else (stmt.body,)
        for inner in (found for body in bodies for found in body):
            yield from _around(inner, block)


def _feeds(stmt: For | While | If, block: Block) -> bool:
    """Whether a loop is one of those that the iterators of a block count."""
    if isinstance(stmt, For):
        return stmt.var in free_vars(*(found.value for found in block.iters))
    return isinstance(stmt, If)


def _is_of_element(store: Store, names: set[str]) -> bool:
    """Whether the value that an init writes is told by where it writes it; whether it does makes no
    difference then."""
    return not any(True for _ in Told(store.indices, names, {}).missing(store.value))


def _without(stmt: Any, block: Block) -> Any:
    def visit(node: Any) -> Any:
        return () if node is block else map_children(node, visit)

    return visit(stmt)


def _meeting(block: Block, targets: Set[str], why: str) -> UnsupportedError:
    return UnsupportedError(
        "lower.meeting_inits",
        f"Several points of the block '{block.name}' may initialise one element of "
        f"'{min(targets)}', and cannot do so once: {why}.",
        hint="Initialise it in a block of its own before.",
    )
