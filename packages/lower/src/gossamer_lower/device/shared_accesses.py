"""Accesses of memory that the threads of a block share, and which of them conflict."""

from __future__ import annotations

import msgspec

from gossamer_ir.arith.affine import affine_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Binary, Const, Expr
from gossamer_ir.traversal.free_vars import free_vars


class SharedAccess(msgspec.Struct, frozen=True):
    """An access of memory that threads share. The numbers of threads in the indices are the names of their
    axes. `first` are the axes along which only the first thread makes it. `is_by_one`: these and the indices
    determine the thread. `varying` are the names in the indices whose values may differ between threads."""

    buffer: str
    indices: tuple[Expr, ...]
    is_write: bool
    first: frozenset[str]
    is_by_one: bool
    varying: frozenset[str] = frozenset()


def may_conflict(new: SharedAccess, old: SharedAccess) -> bool:
    """Return whether two threads of a block may access one element, and one of them writes.

    Stores of different threads are to different elements, and so are, then, accesses by the same indices that
    determine the thread.
    """
    if new.buffer != old.buffer or not (new.is_write or old.is_write):
        return False
    is_by_same = new.is_by_one and old.is_by_one and new.first == old.first
    return not ((is_by_same and new.indices == old.indices) or _are_of_other_stages(new, old))


def _are_of_other_stages(new: SharedAccess, old: SharedAccess) -> bool:
    """Return whether indices are those of different stages of a pipeline: along a dimension, constants, or
    numbers that differ by a constant, modulo the number of stages."""
    varying = new.varying | old.varying
    return any(
        _is_other_stage(one, other, varying)
        for one, other in zip(new.indices, old.indices, strict=False)
    )


# Other expressions: nothing is concluded from them.
def _is_other_stage(one: Expr, other: Expr, varying: frozenset[str]) -> bool:
    match one, other:
        case Const(), Const():
            return one != other
        case Binary(op="floormod", lhs=lhs, rhs=rhs), Binary(
            op="floormod", lhs=other_lhs, rhs=other_rhs
        ):
            count = integer_value(rhs)
            apart = affine_of(lhs) - affine_of(other_lhs)
            # One thread's number may be the next thread's, and one more than its own.
            is_same = free_vars(one, other).isdisjoint(varying)
            is_known = is_same and rhs == other_rhs and not apart.terms
            return is_known and bool(count) and apart.constant % (count or 1) != 0
    return False
