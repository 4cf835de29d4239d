"""Which elements statements touch, as index forms over loop variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import msgspec

from gossamer_ir.init_nests import Values
from gossamer_ir.linear import Form, form_of
from gossamer_ir.loops import loops_of
from gossamer_ir.nodes import AnyBuffer, Expr, Function, Range, SparseBuffer, Stmt
from gossamer_ir.numbers import numbers_of
from gossamer_ir.remembered import remembered
from gossamer_ir.touches import Touch, touches


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


def accesses(
    body: tuple[Stmt, ...],
    buffers: Set[str],
    *,
    values: Values,
    function: Function,
) -> Iterator[Access]:
    """Every access of some buffers in a body, the order of stores being program order."""
    found = touches(body, values=values, buffers=buffers, conditions=False)
    return accesses_of(found, function)


def accesses_of(found: Iterable[Touch], function: Function) -> Iterator[Access]:
    """Some accesses as forms. An index of a buffer that `has_two_names` may be anything."""
    loops, several = loops_of(function), with_two_names(function)
    forms: dict[Expr | Range | None, Form | None] = {None: None}
    for touch in found:
        is_told = touch.buffer not in several
        numbers = numbers_of(function, touch.buffer, touch.indices) if is_told else ()
        for at in (*touch.indices, *numbers):
            if at is not None and at not in forms:
                forms[at] = None if isinstance(at, Range) else form_of(at, {}, loops=loops)
        indices = tuple([forms[at] if is_told else None for at in touch.indices])
        yield Access(
            touch.buffer, indices, touch.is_store, numbers=tuple([forms[at] for at in numbers])
        )


@remembered
def with_two_names(function: Function) -> frozenset[str]:
    """The buffers of a function of which an element `has_two_names`."""
    return frozenset([found.name for found in function.buffers if has_two_names(found)])


def has_two_names(buffer: AnyBuffer) -> bool:
    """Whether out-of-row indices name elements of the next row, which `extra_storage` permits. Without it
    a position beyond a row is a miss, so that each element has one name."""
    return isinstance(buffer, SparseBuffer) and buffer.extra_storage > 0 and len(buffer.axes) > 1
