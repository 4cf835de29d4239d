"""What a function leaves as it is: buffers that it does not write, and the facts about them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gossamer_ir.effects import buffers_written, handles_of, stored_by
from gossamer_ir.nodes import Fact, Function, Stmt
from gossamer_ir.remembered import remembered
from gossamer_ir.walk import buffers_read, every_statement

NAMING_FIELDS = ("buffer", "indptr", "left", "right")
"""The fields of facts that hold the name of a buffer, or None."""


@remembered
def written_by(function: Function) -> frozenset[str]:
    """The buffers that a function writes, under whatever name."""
    return _known_as(stored_by(every_statement(function)), function)


def written_in(body: Iterable[Stmt], function: Function) -> frozenset[str]:
    """The buffers and handles that a part of a function writes, under whatever name."""
    found = _written_by_body(body) if isinstance(body, tuple) else buffers_written(body)
    return _known_as(found, function)


_written_by_body = remembered(buffers_written)
"""Of the body of a loop or choice, several ask in a row."""


def _known_as(written: frozenset[str], function: Function) -> frozenset[str]:
    """These buffers, and all that share a handle with one of them."""
    if not written:
        return written
    handles = handles_of(function)
    stored = {handles.get(name, name) for name in written}
    return written | stored | {name for name, handle in handles.items() if handle in stored}


@remembered
def lasting_facts(function: Function) -> tuple[Fact, ...]:
    """The facts about buffers that the function does not write, which hold everywhere in it."""
    written = written_by(function)
    return tuple(fact for fact in function.facts if written.isdisjoint(_read_by(fact)))


@lru_cache(maxsize=1024)
def _read_by(fact: Fact) -> frozenset[str]:
    """The buffers that a fact is about, and those that its bounds are read from."""
    names = (getattr(fact, field, None) for field in NAMING_FIELDS)
    return buffers_read(fact).union(name for name in names if name is not None)
