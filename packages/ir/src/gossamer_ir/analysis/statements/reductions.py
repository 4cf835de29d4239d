"""Built-in reducers (commutative, associative combiners), their identities, and reduction statements."""

from __future__ import annotations

import msgspec

from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.operations import REDUCERS
from gossamer_ir.nodes import Binary, Const, Expr, Load, ReduceOp, Store
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.walk import collect

REDUCE_OPS: tuple[ReduceOp, ...] = tuple(REDUCERS)


class Reduction(msgspec.Struct, frozen=True):
    """A store of the form `X[i] = X[i] op value`."""

    op: ReduceOp
    store: Store
    value: Expr


def identity(op: ReduceOp, dtype: str) -> Const:
    """Return the neutral element of a reducer: 0 for add, 1 for mul, the greatest value for min, ...

    >>> identity("max", "float32")
    Const(dtype='float32', text='-inf')
    """
    return constant(REDUCERS[op].identity(DType.parse(dtype)), dtype)


def match_reduction(store: Store) -> Reduction | None:
    """Return the reduction that a store performs; None for a plain store.

    Also None if the indices or the combined value read the buffer itself: then later updates depend on
    earlier ones, so their order matters.
    """
    value = store.value
    if not isinstance(value, Binary) or value.op not in REDUCE_OPS:
        return None
    for old, new in ((value.lhs, value.rhs), (value.rhs, value.lhs)):
        if isinstance(old, Load) and old.buffer == store.buffer and old.indices == store.indices:
            is_free = not any(reads_buffer(part, store.buffer) for part in (new, *store.indices))
            return Reduction(value.op, store, new) if is_free else None
    return None


def reads_buffer(expr: Expr, buffer_name: str) -> bool:
    """Return whether an expression reads a buffer."""
    return any(node.buffer == buffer_name for node in collect(READS, expr))
