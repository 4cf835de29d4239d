"""The accesses of statements, with their indices as linear forms in loop variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import msgspec

from gossamer_ir.analysis.accesses.buffer_accesses import Access, accesses
from gossamer_ir.analysis.accesses.init_nests import ValuesOfVars
from gossamer_ir.analysis.accesses.linear_form import LinearForm, form_of
from gossamer_ir.analysis.axes.element_numbers import numbers_of
from gossamer_ir.analysis.bounds.loops_by_name import loops_of
from gossamer_ir.nodes import AnyBuffer, Expr, Function, Range, SparseBuffer, Stmt
from gossamer_support.identity_cache import memoize_by_identity


class AccessForm(msgspec.Struct, frozen=True):
    """One load, search or store. An index is None if it is a range (of a search) or unknown. `numbers` are
    the numbers of its elements (see `numbers_of`)."""

    buffer: str
    indices: tuple[LinearForm | None, ...]
    is_store: bool
    numbers: tuple[LinearForm | None, ...] = ()

    @property
    def selectors(self) -> tuple[LinearForm | None, ...]:
        """The forms that the element determines: if one of them differs, so does the element."""
        return (*self.indices, *self.numbers)


def access_forms(
    body: tuple[Stmt, ...],
    buffers: Set[str],
    *,
    values: ValuesOfVars,
    function: Function,
) -> Iterator[AccessForm]:
    """Return the accesses of some buffers in a body, in program order."""
    listed = accesses(body, values=values, buffers=buffers, conditions=False)
    return forms_of_accesses(listed, function)


def forms_of_accesses(listed: Iterable[Access], function: Function) -> Iterator[AccessForm]:
    """Yield accesses with their indices as forms. Indices of a buffer that `has_aliasing_indices` are
    unknown, since they do not identify its elements."""
    loops, several = loops_of(function), buffers_with_aliasing_indices(function)
    forms: dict[Expr | Range | None, LinearForm | None] = {None: None}
    for access in listed:
        has_one_name = access.buffer not in several
        # X[i, j] and its number i * n + j: an index that is not linear may still give a linear number.
        numbers = numbers_of(function, access.buffer, access.indices) if has_one_name else ()
        for at in (*access.indices, *numbers):
            if at is not None and at not in forms:
                forms[at] = None if isinstance(at, Range) else form_of(at, {}, loops=loops)
        indices = tuple([forms[at] if has_one_name else None for at in access.indices])
        yield AccessForm(
            access.buffer, indices, access.is_store, numbers=tuple([forms[at] for at in numbers])
        )


@memoize_by_identity
def buffers_with_aliasing_indices(function: Function) -> frozenset[str]:
    """Return the buffers of a function that have elements with two names."""
    return frozenset([buffer.name for buffer in function.buffers if has_aliasing_indices(buffer)])


def has_aliasing_indices(buffer: AnyBuffer) -> bool:
    """Return whether out-of-row indices alias the next row, which `extra_storage` permits; two index tuples
    may then name one element. Without it, a position beyond a row reads the fill value."""
    return isinstance(buffer, SparseBuffer) and buffer.extra_storage > 0 and len(buffer.axes) > 1
