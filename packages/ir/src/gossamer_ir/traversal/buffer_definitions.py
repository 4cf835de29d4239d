"""The buffers that a function declares or allocates, and statements with other allocations."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from gossamer_ir.core.statement_kinds import ALLOCATING_STMTS, STMT_KINDS
from gossamer_ir.nodes import AnyBuffer, Buffer, Function, Node, SparseBuffer, Stmt
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.statement_queries import allocation_of
from gossamer_ir.traversal.walk import every_stmt, stmts
from gossamer_support.identity_cache import memoize_by_identity

S = TypeVar("S", bound=Stmt)


@memoize_by_identity
def all_buffers(function: Function) -> tuple[AnyBuffer, ...]:
    """Return the buffers that a function declares, then those that it allocates."""
    return (*function.buffers, *allocations(every_stmt(function)))


def sparse_buffers(buffers: Iterable[AnyBuffer]) -> tuple[SparseBuffer, ...]:
    """Return the buffers that have axes."""
    return tuple(buffer for buffer in buffers if isinstance(buffer, SparseBuffer))


def allocations(every: Iterable[Stmt]) -> Iterator[Buffer]:
    """Yield the buffers that statements allocate themselves, without those allocated in their bodies."""
    for stmt in every:
        buffer = allocation_of(stmt)
        if buffer is not None:
            yield buffer


def buffers_allocated(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers that statements allocate, at any depth."""
    return frozenset([buffer.name for buffer in allocations(stmts(body))])


def is_allocation_of(node: Node, names: Container[str]) -> bool:
    """Return whether a node is a statement that allocates one of some buffers.

    >>> from gossamer_ir.core.build import ONE
    >>> from gossamer_ir.nodes import Allocate
    >>> allocate = Allocate(Buffer("W", (ONE,), "int64"))
    >>> is_allocation_of(allocate, {"W"}), is_allocation_of(allocate, {"X"}), is_allocation_of(ONE, {"W"})
    (True, False, False)
    """
    buffer = allocation_of(node) if isinstance(node, ALLOCATING_STMTS) else None
    return buffer is not None and buffer.name in names


def with_allocation(stmt: S, buffer: Buffer) -> S:
    """Return a statement that allocates another buffer instead of its own.

    >>> from gossamer_ir.core.build import ONE, index
    >>> from gossamer_ir.nodes import Allocate
    >>> short, long = (Buffer("W", (size,), "int64") for size in (ONE, index(8)))
    >>> with_allocation(Allocate(short), long) == Allocate(long)
    True
    """
    field = STMT_KINDS[type(stmt)].allocates
    return stmt if field is None else replace(stmt, **{field: buffer})


def without_allocations(body: tuple[Stmt, ...], names: Container[str]) -> tuple[Stmt, ...]:
    """Return statements without the allocations of some buffers, at any depth.

    >>> from gossamer_ir.core.build import ONE
    >>> from gossamer_ir.nodes import Allocate
    >>> without_allocations((Allocate(Buffer("W", (ONE,), "int64")),), {"W"})
    ()
    """

    def rule(node: Node) -> tuple[Stmt, ...] | None:
        return () if is_allocation_of(node, names) else None

    return rewrite_body(body, rule, leaves=False)


def handles_of(function: Function) -> dict[str, str]:
    """Return the handle of each buffer that is bound to a parameter."""
    return {buffer.name: buffer.handle for buffer in function.buffers if buffer.handle}
