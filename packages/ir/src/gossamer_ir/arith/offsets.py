"""Arrays of offsets (indptr): the elements of fibre `q` are those from `indptr[q]` to before `indptr[q + 1]`.

An array over several axes has a row of offsets for each place along all but the last of them.
"""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.arith.affine import affine_of, distance
from gossamer_ir.core.build import ONE, add, sub, widen
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Cast, Expr, Load


def loaded(expr: Expr) -> Load | None:
    """The load of an integer that an index widens, or is."""
    inner = expr.value if isinstance(expr, Cast) and expr.dtype == "int64" else expr
    if not isinstance(inner, Load) or inner.predicate is not None:
        return None
    # What is not an integer loses its fraction, so that two values may become one.
    return inner if DType.parse(inner.dtype).is_integer else None


def following(offset: Load) -> Load:
    """The offset after another one: where the fibre that begins at this one ends."""
    *outer, last = offset.indices
    return replace(offset, indices=(*outer, add(last, ONE)))


def length_of(offset: Load) -> Expr:
    """How many elements the fibre has that begins at an offset.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.script import print_expr
    >>> print_expr(length_of(Load("P", (index_var("q"),), "int64")))
    'P[q + 1] - P[q]'
    """
    return sub(widen(following(offset)), widen(offset))


def offset_of(begin: Expr, end: Expr) -> Load | None:
    """The offset at which a fibre begins, where what it begins and ends at are offsets next to each other;
    None of other ranges."""
    first, second = loaded(begin), loaded(end)
    if first is None or second is None or first.buffer != second.buffer:
        return None
    *outer, last = first.indices
    *others, next_one = second.indices
    return first if outer == others and distance(next_one, last) == 1 else None


def offset_of_length(length: Expr) -> Load | None:
    """The offset at which the fibre begins that has so many elements; None of what is not known to be the
    length of a fibre.

    >>> offset = Load("P", (ONE,), "int32")
    >>> offset_of_length(length_of(offset)) == offset, offset_of_length(ONE)
    (True, None)
    """
    form = affine_of(length)
    if form.constant or sorted(form.terms.values()) != [-1, 1]:
        return None
    ends = {count: atom for atom, count in form.terms.items()}
    return offset_of(ends[-1], ends[1])


__all__ = ["following", "length_of", "loaded", "offset_of", "offset_of_length"]
