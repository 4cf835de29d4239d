"""Reductions whose terms may be combined in any order, and the annotation of blocks where they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.statements.reductions import Reduction, match_reduction, reads_buffer
from gossamer_ir.core.annotations import REASSOCIATES
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Binary, Block, Combine, Expr, For, Node, Stmt, Store
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.fields import body_fields
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify.statements.write_conflicts import is_order_independent_update
from gossamer_schedule.cursor.cursor_at import ADDRESSABLE_BODIES


def reduction_of(block: Block) -> Reduction | None:
    """Return the reduction that a block consists of, else None.

    Neither the terms nor the predicate may depend on the buffer that the block accumulates into.
    """
    if len(block.body) != 1 or not isinstance(block.body[0], Store):
        return None
    is_dependent = block.predicate is not None and reads_buffer(
        block.predicate, block.body[0].buffer
    )
    return None if is_dependent else match_reduction(block.body[0])


def is_reduction(block: Block) -> bool:
    """Return whether a block is only a reduction, by a built-in or a user-defined reducer."""
    if len(block.body) != 1 or not isinstance(block.body[0], Combine):
        return reduction_of(block) is not None
    if not _combines_same_elements(block.body[0]):
        return False
    buffers = [store.buffer for store in block.body[0].stores]
    return block.predicate is None or not any(
        reads_buffer(block.predicate, name) for name in buffers
    )


def combiner_of(body: Iterable[Stmt], buffer_name: str) -> str | None:
    """Return the reducer by which statements combine elements of a buffer, else None.

    The statements must not use the buffer otherwise, so they may run in any order. Inits, which run before
    them, may only store to it.

    >>> from gossamer_testkit.examples import MATMUL, SCALE
    >>> combiner_of(MATMUL.functions[0].body, "C"), combiner_of(SCALE.functions[0].body, "Y")
    ('add', None)
    """
    inits: list[Stmt] = []
    updates = tuple(_without_inits(body, inits))
    combines = collect(Combine, *updates)
    combining = {id(store) for combine in combines for store in combine.stores}
    stores = [store for store in collect(Store, *updates) if store.buffer == buffer_name]
    plain = [store for store in stores if id(store) not in combining]
    reducers = {_reducer_of(stmt) for stmt in plain}
    for combine in combines:
        if any(store.buffer == buffer_name for store in combine.stores):
            reducers.add(_user_reducer_of(combine))
    loads = [at for at in collect(READS, *updates) if at.buffer == buffer_name]
    is_read = any(at.buffer == buffer_name for at in collect(READS, *inits))
    # Each plain update loads its element once: one load more is another use of the buffer.
    if len(reducers) != 1 or len(loads) != len(plain) or is_read:
        return None
    return reducers.pop()


def _without_inits(body: Iterable[Any], inits: list[Stmt]) -> Iterator[Stmt]:
    """Yield statements without the inits of their outermost blocks, which are added to `inits`."""
    for stmt in body:
        if "init" in body_fields(type(stmt)):
            inits += stmt.init
            yield replace(stmt, init=())
        else:
            fields = ADDRESSABLE_BODIES.get(type(stmt), ())
            inner = {field: tuple(_without_inits(getattr(stmt, field), inits)) for field in fields}
            yield replace(stmt, **inner) if inner else stmt


def _reducer_of(store: Store) -> str | None:
    """Return the reducer by which a store combines its element with values independent of the buffer."""
    if not isinstance(store.value, Binary) or not is_order_independent_update(store):
        return None
    # x - a - b and x - b - a are both sums of negated terms.
    return "add" if store.value.op == "sub" else store.value.op


def _user_reducer_of(combine: Combine) -> str | None:
    """Return the user-defined reducer of a statement, with its buffers; None if it may mix elements."""
    if not _combines_same_elements(combine):
        return None
    return f"{combine.reducer}({', '.join(store.buffer for store in combine.stores)})"


def _combines_same_elements(combine: Combine) -> bool:
    """Return whether the elements of several buffers are always combined together.

    The same expressions must select them in all of the buffers; constant indices do not count.
    """
    # If elements were paired differently at different points, combining them would mix pairs.
    selected = {_var_indices(store.indices) for store in combine.stores}
    return len(selected) == 1


def _var_indices(indices: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(at for at in indices if integer_value(at) is None)


def with_reassociation_marks(
    body: tuple[Stmt, ...], buffers: Set[str] | None = None
) -> tuple[Stmt, ...]:
    """Return a body with each block annotated (with `buffers`: each block that stores to one of them)."""
    return tuple(_with_mark(stmt, buffers) for stmt in body)


def _with_mark(node: Node, buffers: Set[str] | None) -> Any:
    if isinstance(node, For):
        return replace(node, body=with_reassociation_marks(node.body, buffers))
    if not isinstance(node, Block) or (REASSOCIATES, True) in node.annotations:
        return node
    if buffers is not None and not buffers & _stored_buffers(node):
        return node
    return replace(node, annotations=(*node.annotations, (REASSOCIATES, True)))


def _stored_buffers(block: Block) -> set[str]:
    return {store.buffer for store in collect(Store, *block.body)}
