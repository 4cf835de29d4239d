"""Arrays of offsets (indptr): fiber `q` has the elements `indptr[q]`, ..., `indptr[q + 1] - 1`.

An array over several axes has one row of offsets for each tuple of indices along all but the last axis.
"""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.arith.affine import affine_of, distance
from gossamer_ir.core.build import ONE, add, sub, widen
from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import Cast, Expr, Load


def load_of_index(expr: Expr) -> Load | None:
    """Return the load that an index is, or widens to int64; None unless it loads an integer
    unconditionally."""
    inner = expr.value if isinstance(expr, Cast) and expr.dtype == "int64" else expr
    if not isinstance(inner, Load) or inner.predicate is not None:
        return None
    # A cast from float drops the fraction, so that distinct elements could give equal indices.
    return inner if DType.parse(inner.dtype).is_integer else None


def next_offset(offset: Load) -> Load:
    """Return the next offset: the end of the fiber that begins at this one."""
    *outer, last = offset.indices
    return replace(offset, indices=(*outer, add(last, ONE)))


def length_of(offset: Load) -> Expr:
    """Return the number of elements of the fiber that begins at an offset.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.script import print_expr
    >>> print_expr(length_of(Load("P", (index_var("q"),), "int64")))
    'P[q + 1] - P[q]'
    """
    return sub(widen(next_offset(offset)), widen(offset))


def offset_of(begin: Expr, end: Expr) -> Load | None:
    """Return the offset at which a fiber begins, if `begin` and `end` are adjacent offsets; None
    otherwise."""
    first, second = load_of_index(begin), load_of_index(end)
    if first is None or second is None or first.buffer != second.buffer:
        return None
    *outer, last = first.indices
    *others, next_one = second.indices
    # `distance`, not equality of texts: P[i + 1 + 1] is next to P[i + 1].
    return first if outer == others and distance(next_one, last) == 1 else None


def offset_of_length(length: Expr) -> Load | None:
    """Return the offset at which a fiber begins, if an expression is the difference of adjacent offsets; None
    otherwise.

    >>> offset = Load("P", (ONE,), "int32")
    >>> offset_of_length(length_of(offset)) == offset, offset_of_length(ONE)
    (True, None)
    """
    form = affine_of(length)
    # P[q + 1] - P[q] + 1 is not the length of a fiber.
    if form.constant or sorted(form.terms.values()) != [-1, 1]:
        return None
    ends = {count: atom for atom, count in form.terms.items()}
    return offset_of(ends[-1], ends[1])
