"""Accesses of memory that the threads of a block share, and which of them conflict."""

from __future__ import annotations

import msgspec

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Binary, Const, Expr


class SharedAccess(msgspec.Struct, frozen=True):
    """An access of memory that threads share. The numbers of threads in the indices are the names of their
    axes. `first` are the axes along which only the first thread makes it. `is_by_one`: these and the indices
    determine the thread."""

    buffer: str
    indices: tuple[Expr, ...]
    is_write: bool
    first: frozenset[str]
    is_by_one: bool


def may_conflict(new: SharedAccess, old: SharedAccess) -> bool:
    """Return whether two threads of a block may access one element, and one of them writes.

    Stores of different threads are to different elements, and so are, then, accesses by the same indices that
    determine the thread.
    """
    if new.buffer != old.buffer or not (new.is_write or old.is_write):
        return False
    is_by_same = new.is_by_one and old.is_by_one and new.first == old.first
    return not (
        (is_by_same and new.indices == old.indices)
        or _are_of_other_stages(new.indices, old.indices)
    )


def _are_of_other_stages(one: tuple[Expr, ...], other: tuple[Expr, ...]) -> bool:
    """Return whether indices are those of different stages of a pipeline: along a dimension, constants, or
    numbers that differ by a constant, modulo the number of stages."""
    return any(map(_is_other_stage, one, other))


# Other expressions: nothing is concluded from them.
def _is_other_stage(one: Expr, other: Expr) -> bool:
    match one, other:
        case Const(), Const():
            return one != other
        case Binary(op="floormod", lhs=lhs, rhs=rhs), Binary(op="floormod", lhs=other_lhs):
            count = integer_value(rhs)
            apart = affine_of(lhs) - affine_of(other_lhs)
            is_known = rhs == other.rhs and not apart.terms
            return is_known and bool(count) and apart.constant % (count or 1) != 0
    return False
