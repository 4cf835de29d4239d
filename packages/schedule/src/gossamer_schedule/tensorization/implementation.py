"""The implementation of an intrinsic, with the names and buffers of the nest that it replaces."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import coefficient_and_rest
from gossamer_ir.arith.affine import ONE_FORM, affine_of
from gossamer_ir.nodes import Expr, For, Function, Node, Stmt, Var
from gossamer_ir.traversal.access_types import BUFFER_NODES, ELEMENT_ACCESSES, INDEXED_NODES
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.rename import with_labels, with_names
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.statement_queries import declared_names
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import stmts, walk
from gossamer_schedule.tensorization.unify import BufferBinding, Match


def implementation_body(
    implementation: Function, match: Match, *, namer: Namer
) -> tuple[Stmt, ...]:
    """Return the body of an implementation with fresh names and the scalars and buffers of the match."""
    # The implementation may be inserted several times, and names are unique in a function.
    names = {name: namer.fresh(name) for name in _declared_names_in(implementation)}
    bindings = {buffer.name: match.bindings[buffer.name] for buffer in implementation.buffers}

    def rule(node: Node) -> Any | None:
        if isinstance(node, BUFFER_NODES) and node.buffer in bindings:
            return _rebound_access(node, bindings[node.buffer])
        if isinstance(node, Var) and node.name in match.scalars:
            return match.scalars[node.name]
        return with_labels(with_names(node, names), names)

    return rewrite_body(implementation.body, rule)


def _declared_names_in(function: Function) -> Iterator[str]:
    """Yield the names that the body of a function binds."""
    for stmt in stmts(function.body):
        yield from declared_names(stmt)


def _rebound_access(node: Node, binding: BufferBinding) -> Any:
    """Return an access to the bound buffer. A guard names a buffer without an element."""
    if not isinstance(node, INDEXED_NODES):
        return replace(node, buffer=binding.buffer)
    return replace(node, buffer=binding.buffer, indices=_bound_indices(binding, node.indices))


def _bound_indices(binding: BufferBinding, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the indices in the bound buffer for indices in the buffer of the description."""
    pairs = zip(binding.loops, at, strict=True)
    values = {loop: expr for loop, expr in pairs if loop is not None}
    return tuple(substitute(part, values) for part in binding.indices)


def vector_loops(implementation: Function, match: Match) -> dict[str, Set[str]]:
    """Return the loops along which the implementation accesses vectors of each buffer."""
    vectors = {
        stmt.var
        for stmt in stmts(implementation.body)
        if isinstance(stmt, For) and stmt.kind == "vectorized"
    }
    by_buffer: dict[str, set[str]] = {buffer.name: set() for buffer in implementation.buffers}
    for node in walk(*implementation.body):
        if isinstance(node, ELEMENT_ACCESSES) and node.buffer in by_buffer:
            loops = match.bindings[node.buffer].loops
            by_buffer[node.buffer] |= {
                loop
                for loop, at in zip(loops, node.indices, strict=True)
                if loop is not None and free_vars(at) & vectors
            }
    return {name: frozenset(loops) for name, loops in by_buffer.items()}


def is_contiguous(binding: BufferBinding, loop_name: str) -> bool:
    """Return whether the elements of a binding along a loop are contiguous."""
    parts = coefficient_and_rest(affine_of(binding.indices[-1]), loop_name)
    is_by_one = parts is not None and parts[0] == ONE_FORM
    return is_by_one and loop_name not in free_vars(*binding.indices[:-1])
