"""The types of nodes that name a buffer, and those of them that access its elements."""

from __future__ import annotations

from gossamer_ir.core.expression_kinds import EXPR_KINDS
from gossamer_ir.nodes import EXPRS, Atomic, Guard, Load, Prefetch, Search, Store
from gossamer_ir.traversal.access_types import (
    ACCESSES,
    BUFFER_NODES,
    ELEMENT_ACCESSES,
    ELEMENT_NODES,
    HINTS,
    INDEXED_NODES,
    READS,
)


def test_kinds_that_name_a_buffer():
    assert {Load, Search, Store, Atomic, Prefetch, Guard} == set(BUFFER_NODES)


def test_what_reads_memory_is_what_names_a_buffer():
    reading = {kind for kind, entry in EXPR_KINDS.items() if entry.reads}
    assert reading == set(BUFFER_NODES) & set(EXPRS)


def test_kinds_that_address_elements():
    """Passes treat all of `ELEMENT_NODES` alike, and none of `HINTS` as an access. Another node like `Search`
    needs a rule where `Search` has one."""
    assert set(READS) == set(BUFFER_NODES) & set(EXPRS)
    assert set(ACCESSES) == {Load, Search, Store, Atomic}
    assert set(INDEXED_NODES) == {*ACCESSES, Prefetch}
    assert set(ELEMENT_NODES) == {*INDEXED_NODES} - {Search}
    assert set(ELEMENT_ACCESSES) == {Load, Store, Atomic}
    assert set(HINTS) == {Prefetch}
