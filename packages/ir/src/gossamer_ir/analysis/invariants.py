"""Invariants of a function or of a part of it: unwritten buffers, values of expressions, facts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gossamer_ir.facts.fact_kinds import buffers_of_fact
from gossamer_ir.nodes import Fact, Function, Node, Stmt
from gossamer_ir.traversal.buffer_definitions import handles_of
from gossamer_ir.traversal.buffer_uses import buffers_read, buffers_written, directly_written
from gossamer_ir.traversal.walk import every_stmt
from gossamer_support.identity_cache import memoize_by_identity


@memoize_by_identity
def mutable_buffers(function: Function) -> frozenset[str]:
    """Return the buffers that a function writes, including aliases that share a handle."""
    # Two buffers may be bound to one array: a store to one changes the other.
    return _with_aliases(directly_written(every_stmt(function)), function)


def buffers_written_in(body: Iterable[Stmt], function: Function) -> frozenset[str]:
    """Return the buffers and handles that a part of a function writes, including aliases that share a
    handle."""
    # Only tuples can be memoized by identity; they do not change.
    written = _written_by_body(body) if isinstance(body, tuple) else buffers_written(body)
    return _with_aliases(written, function)


_written_by_body = memoize_by_identity(buffers_written)
"""Memoized because several queries in a row are about the body of one loop or branch."""


def changing_buffers(body: Iterable[Stmt], *nodes: Node, function: Function) -> frozenset[str]:
    """Return the buffers that expressions read and that statements of a function write. If there are none,
    the statements do not change the values of the expressions, provided that they bind none of their
    variables (see `is_invariant`).

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> from gossamer_ir.nodes import Buffer, Load, Store
    >>> buffers = tuple(Buffer(name, (ONE,), "int64", "x") for name in "XY")
    >>> function = Function("f", (), (Store("X", (ZERO,), ONE),), buffers=buffers)
    >>> sorted(changing_buffers(function.body, Load("Y", (ZERO,), "int64"), function=function))
    ['Y']
    """
    reads = buffers_read(*nodes)
    return reads & buffers_written_in(body, function) if reads else reads


def is_constant(*nodes: Node, function: Function) -> bool:
    """Return whether expressions read no buffer that a function writes anywhere."""
    reads = buffers_read(*nodes)
    return not reads or reads.isdisjoint(mutable_buffers(function))


def _with_aliases(written: frozenset[str], function: Function) -> frozenset[str]:
    """Return the buffers, and all that share a handle with one of them."""
    if not written:
        return written
    aliases = _aliases(function)
    return written.union(*[aliases[name] for name in written if name in aliases])


@memoize_by_identity
def _aliases(function: Function) -> dict[str, frozenset[str]]:
    """Return all names of an array argument (its handle, and the buffers bound to it), by each of these
    names."""
    names: dict[str, frozenset[str]] = {}
    for buffer, handle in handles_of(function).items():
        names[handle] = names.get(handle, frozenset({handle})) | {buffer}
    return {name: aliases for aliases in names.values() for name in aliases}


@memoize_by_identity
def invariant_facts(function: Function) -> tuple[Fact, ...]:
    """Return the facts about buffers that the function does not write. They hold everywhere in it."""
    written = mutable_buffers(function)
    return tuple(fact for fact in function.facts if written.isdisjoint(_buffers_read_by(fact)))


@lru_cache(maxsize=1024)
def _buffers_read_by(fact: Fact) -> frozenset[str]:
    """Return the buffers that a fact is about, and those that its bounds read."""
    return buffers_read(fact).union(buffers_of_fact(fact))
