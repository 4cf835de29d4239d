"""Which elements the statements below a loop touch, as index forms over loop variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gossamer_ir.build import dtype_of
from gossamer_ir.dtypes import DType
from gossamer_ir.nodes import (
    Allocate,
    AnyBuffer,
    Block,
    Expr,
    Function,
    Guard,
    Iteration,
    Let,
    Load,
    Prefetch,
    Range,
    Search,
    SparseBuffer,
    Stmt,
    Store,
)
from gossamer_ir.remembered import remembered
from gossamer_ir.touches import Values, parts_of, touches
from gossamer_ir.walk import occurrences
from gossamer_schedule.linear import Form, form_of
from gossamer_schedule.numbers import numbers_of
from gossamer_schedule.resolve import all_buffers
from gossamer_schedule.sites import Site, loops_of, statements


class Access(msgspec.Struct, frozen=True):
    """One load or store; an index is None where it is a whole range (a search). `numbers` are those of
    its elements (see `numbers_of`)."""

    buffer: str
    indices: tuple[Form | None, ...]
    is_store: bool
    numbers: tuple[Form | None, ...] = ()

    @property
    def selectors(self) -> tuple[Form | None, ...]:
        """What is different only where the element is."""
        return (*self.indices, *self.numbers)


def values_at(site: Site) -> dict[str, Expr]:
    """What block variables and lets stand for at a site."""
    values: dict[str, Expr] = {}
    for parent, name, index in site.path:
        if isinstance(parent, Block):
            values.update({found.var: found.value for found in parent.iters})
        for found in getattr(parent, name)[:index]:
            if isinstance(found, Let):
                values[found.var.name] = found.value
    return values


def values_within(site: Site) -> dict[str, Expr]:
    """What block variables and lets stand for in the block at a site."""
    return values_at(site) | {found.var: found.value for found in site.node.iters}


def written(body: tuple[Stmt, ...]) -> set[str]:
    """The buffers that a body stores to, except those it allocates."""
    names, own = set(), set()
    for found in statements(body):
        if isinstance(found, Store):
            names.add(found.buffer)
        elif isinstance(found, Allocate):
            own.add(found.buffer.name)
        elif isinstance(found, (Block, Iteration)) and found.init:
            names |= written(found.init)
    return names - own


def allocated(body: tuple[Stmt, ...]) -> set[str]:
    """The buffers that a body allocates."""
    return {found.buffer.name for found in statements(body) if isinstance(found, Allocate)}


def mentioned(body: Iterable[Any]) -> set[str]:
    """The buffers that statements or expressions touch in any way."""
    return {
        found.buffer for top in body for found in occurrences((Load, Prefetch, Search, Store), top)
    }


def named(body: Iterable[Any]) -> set[str]:
    """The buffers that statements touch in any way, or that guards among them are about."""
    found = tuple(body)
    return mentioned(found) | {guard.buffer for guard in occurrences(Guard, *found)}


def used_by(statement: Any) -> set[str]:
    """The buffers that a statement touches, apart from what stands in the bodies of loops and conditions."""
    is_whole = isinstance(statement, (Block, Store))
    return mentioned((statement,) if is_whole else parts_of(statement))


def statements_beside(site: Site, top: Site) -> Iterator[Any]:
    """The statement at `top` and every one below it, but for that at a site and those below that."""
    own = {id(found) for found in statements((site.node,))}
    return (found for found in statements((top.node,)) if id(found) not in own)


def accesses(
    body: tuple[Stmt, ...],
    buffers: set[str],
    *,
    values: Values,
    function: Function,
) -> Iterator[Access]:
    """Every access of some buffers in a body, the order of stores being program order. An index of a
    buffer that `has_two_names` may be anything."""
    loops, several = loops_of(function), with_two_names(function)
    forms: dict[Expr | Range | None, Form | None] = {None: None}
    for found in touches(body, values=values, buffers=buffers, conditions=False):
        is_told = found.buffer not in several
        numbers = numbers_of(function, found.buffer, found.indices) if is_told else ()
        for at in (*found.indices, *numbers):
            if at is not None and at not in forms:
                forms[at] = None if isinstance(at, Range) else form_of(at, {}, loops=loops)
        indices = tuple([forms[at] if is_told else None for at in found.indices])
        yield Access(
            found.buffer, indices, found.is_store, numbers=tuple([forms[at] for at in numbers])
        )


def is_wide(indices: Iterable[Expr]) -> bool:
    """Whether an access is to a vector of elements."""
    return any(DType.parse(dtype_of(at)).is_vector for at in indices)


@remembered
def with_two_names(function: Function) -> frozenset[str]:
    """The buffers of a function of which an element `has_two_names`."""
    return frozenset([found.name for found in all_buffers(function) if has_two_names(found)])


def has_two_names(buffer: AnyBuffer) -> bool:
    """Whether out-of-row indices name elements of the next row, which `extra_storage` permits. Without it
    a position beyond a row is a miss, so that each element has one name."""
    return isinstance(buffer, SparseBuffer) and buffer.extra_storage > 0 and len(buffer.axes) > 1
