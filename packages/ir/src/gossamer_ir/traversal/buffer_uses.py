"""The buffers that nodes read, and that statements access and write by the table of statement kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from gossamer_ir.core.statement_kinds import CALLING_STMTS, WRITES, effects_of
from gossamer_ir.nodes import EXPRS, STMTS, Node, Stmt, Store
from gossamer_ir.traversal.access_types import BUFFER_NODES, INDEXED_NODES, READS
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.fields import has_bodies
from gossamer_ir.traversal.walk import children, collect, stmts

_WRITING = frozenset({*WRITES, *CALLING_STMTS}) - {Store}

_EXPRS = frozenset(EXPRS)

_WITH_BODIES = frozenset(filter(has_bodies, STMTS)).difference(BUFFER_NODES)


def buffers_named(*nodes: Node) -> frozenset[str]:
    """Return the buffers that nodes access, guard or prefetch, at any depth.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Guard, Load
    >>> sorted(buffers_named(Store("Y", (ZERO,), Load("X", (ONE,), "int64")), Guard(ONE, "Z")))
    ['X', 'Y', 'Z']
    """
    return frozenset().union(*map(_buffers_named_by, nodes))


def buffers_accessed(*nodes: Node) -> frozenset[str]:
    """Return the buffers that nodes access or prefetch, at any depth.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Guard, Load
    >>> sorted(buffers_accessed(Store("Y", (ZERO,), Load("X", (ONE,), "int64")), Guard(ONE, "Z")))
    ['X', 'Y']
    """
    return frozenset([node.buffer for node in collect(INDEXED_NODES, *nodes)])


def access_counts(*nodes: Node, kinds: Any = INDEXED_NODES) -> Counter[str]:
    """Return how often nodes of these kinds (as for `collect`) access each buffer, at any depth.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Load
    >>> copy = Store("X", (ZERO,), Load("X", (ONE,), "int64"))
    >>> access_counts(copy)["X"], access_counts(copy, kinds=Store)["X"]
    (2, 1)
    """
    return Counter([access.buffer for access in collect(kinds, *nodes)])


def buffers_read(*nodes: Node) -> frozenset[str]:
    """Return the buffers that nodes load from or search in.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.nodes import Load
    >>> buffers_read(Load("X", (index_var("j"),), "int64"))
    frozenset({'X'})
    """
    if len(nodes) == 1 and type(nodes[0]) in _EXPRS:
        return _buffers_read_by(nodes[0])
    return frozenset([read.buffer for read in collect(READS, *nodes)])


@lru_cache(maxsize=4096)
def _buffers_read_by(expr: Node) -> frozenset[str]:
    return frozenset([read.buffer for read in collect(READS, expr)])


def buffers_read_in(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers that statements read, including those whose elements they update without a load:
    by a reducer of the function, or atomically.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Atomic, Load
    >>> sorted(buffers_read_in((Atomic("add", "Y", (ZERO,), Load("X", (ONE,), "int64")),)))
    ['X', 'Y']
    """
    body = tuple(body)
    updated = [read.buffer for stmt in stmts(body) for read in effects_of(stmt).reads]
    return buffers_read(*body).union(updated)


def buffers_written(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers and handles that statements write, by the names that occur in them. A called
    function is assumed to write every buffer that it is passed.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> sorted(buffers_written((Store("Y", (ZERO,), ONE), Store("Z", (ZERO,), ONE))))
    ['Y', 'Z']
    """
    return directly_written(stmts(body))


def outer_writes(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers that statements write, without those that they allocate.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Allocate, Buffer
    >>> own = Allocate(Buffer("W", (ONE,), "int64"))
    >>> sorted(outer_writes((own, Store("W", (ZERO,), ONE), Store("Y", (ZERO,), ONE))))
    ['Y']
    """
    every = tuple(stmts(body))
    return directly_written(every).difference([buffer.name for buffer in allocations(every)])


def buffers_written_outside(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers that statements write, without those that a single one of them allocates inside:
    unlike `outer_writes`, with those that one statement allocates and another one writes.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Allocate, Buffer
    >>> allocation = Allocate(Buffer("W", (ONE,), "int64"))
    >>> sorted(buffers_written_outside((allocation, Store("W", (ZERO,), ONE))))
    ['W']
    """
    return frozenset().union(*[outer_writes((stmt,)) for stmt in body])


def directly_written(every: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers that statements write themselves, without those written in their bodies."""
    names: set[str] = set()
    for stmt in every:
        if isinstance(stmt, Store):  # the common case; `effects_of` would build more than is needed
            names.add(stmt.buffer)
        elif type(stmt) in _WRITING:
            effects = effects_of(stmt)
            # The called function may write every buffer whose address it gets.
            names.update([write.buffer for write in effects.writes], effects.passed_buffers)
    return frozenset(names)


@lru_cache(maxsize=4096)
def _buffers_named_by(node: Node) -> frozenset[str]:
    # Statement by statement, since callers often query the statements of a body next.
    if type(node) in _WITH_BODIES:
        return frozenset().union(*map(_buffers_named_by, children(node)))
    return frozenset([named.buffer for named in collect(BUFFER_NODES, node)])
