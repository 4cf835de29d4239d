"""Blocks whose terms may be combined in any order, and the mark of those where they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.reductions import Reduction, match_reduction, reads
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import (
    Binary,
    Block,
    Combine,
    Expr,
    For,
    Iteration,
    Stmt,
    Store,
)
from gossamer_ir.traversal.effects import READS
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify.write_conflicts import is_accumulation
from gossamer_schedule.cursor.cursor import BODIES

REASSOCIATES = "reassociates"
"""The annotation of a block whose terms a schedule combines in another order than the program."""


def reduction_of(block: Block) -> Reduction | None:
    """The reduction that a block is, if it is nothing but one: what is added does not depend on the
    buffer that it is added to."""
    if len(block.body) != 1 or not isinstance(block.body[0], Store):
        return None
    is_asked = block.predicate is not None and reads(block.predicate, block.body[0].buffer)
    return None if is_asked else match_reduction(block.body[0])


def is_reduction(block: Block) -> bool:
    """Return whether a block is only a reduction, by a built-in or a user-defined reducer."""
    if len(block.body) != 1 or not isinstance(block.body[0], Combine):
        return reduction_of(block) is not None
    if not _is_in_step(block.body[0]):
        return False
    buffers = [store.buffer for store in block.body[0].stores]
    return block.predicate is None or not any(reads(block.predicate, name) for name in buffers)


def combiner_of(body: Iterable[Stmt], buffer: str) -> str | None:
    """The reducer by which statements combine elements of a buffer, if that is all that they do with it:
    they run in any order then. Inits, which come before, only store to it.

    >>> from gossamer_testkit.examples import MATMUL, SCALE
    >>> combiner_of(MATMUL.functions[0].body, "C"), combiner_of(SCALE.functions[0].body, "Y")
    ('add', None)
    """
    inits: list[Stmt] = []
    updates = tuple(_without_inits(body, inits))
    combines = collect(Combine, *updates)
    told = {id(store) for found in combines for store in found.stores}
    stores = [found for found in collect(Store, *updates) if found.buffer == buffer]
    plain = [found for found in stores if id(found) not in told]
    reducers = {_reducer_of(found) for found in plain}
    for found in combines:
        if any(store.buffer == buffer for store in found.stores):
            reducers.add(_of_several(found))
    reads_ = [at for at in collect(READS, *updates) if at.buffer == buffer]
    is_read = any(at.buffer == buffer for at in collect(READS, *inits))
    if len(reducers) != 1 or len(reads_) != len(plain) or is_read:
        return None
    return reducers.pop()


def _without_inits(body: Iterable[Stmt], inits: list[Stmt]) -> Iterator[Stmt]:
    """Statements without the inits of their blocks, which are collected, but for blocks in others."""
    for found in body:
        if isinstance(found, (Block, Iteration)):
            inits += found.init
            yield replace(found, init=())
        else:
            fields = BODIES.get(type(found), ())
            inner = {field: tuple(_without_inits(getattr(found, field), inits)) for field in fields}
            yield replace(found, **inner) if inner else found


def _reducer_of(store: Store) -> str | None:
    """Return the reducer by which a store combines its element with values independent of the buffer."""
    if not isinstance(store.value, Binary) or not is_accumulation(store):
        return None
    return "add" if store.value.op == "sub" else store.value.op


def _of_several(combine: Combine) -> str | None:
    """Return the user-defined reducer that combines elements, with the buffers."""
    if not _is_in_step(combine):
        return None
    return f"{combine.reducer}({', '.join(store.buffer for store in combine.stores)})"


def _is_in_step(combine: Combine) -> bool:
    """Return whether the elements of several buffers are always combined together: the same variables
    select them."""
    selected = {_selecting(store.indices) for store in combine.stores}
    return len(selected) == 1


def _selecting(indices: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(at for at in indices if integer_value(at) is None)


def single_block(body: tuple[Stmt, ...]) -> Block | None:
    """Return the block of a body that consists of loops around one block, else None."""
    while len(body) == 1 and isinstance(body[0], For):
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], Block) else None


def reassociating(body: tuple[Stmt, ...], buffers: Set[str] | None = None) -> tuple[Stmt, ...]:
    """The body with every block of it marked (that stores to one of these `buffers`)."""
    return tuple(_marked(found, buffers) for found in body)


def _marked(node: Any, buffers: Set[str] | None) -> Any:
    if isinstance(node, For):
        return replace(node, body=reassociating(node.body, buffers))
    if not isinstance(node, Block) or (REASSOCIATES, True) in node.annotations:
        return node
    if buffers is not None and not buffers & _stored(node):
        return node
    return replace(node, annotations=(*node.annotations, (REASSOCIATES, True)))


def _stored(block: Block) -> set[str]:
    return {found.buffer for found in collect(Store, *block.body)}
