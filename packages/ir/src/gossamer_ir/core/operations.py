"""The operations of one and of two operands, and the reducers: the dtypes for which they are defined, and
what analyses need to know of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import BinaryOp, ReduceOp, UnaryOp

OperandKind: TypeAlias = Literal["any", "numbers", "floats", "integers", "bools", "bits"]
"""Dtypes of operands. `bits` are integers and bools."""


class BinaryKind(msgspec.Struct, frozen=True):
    """The properties that distinguish an operation of two operands from the others."""

    operands: OperandKind
    divides: bool = False
    """True if it divides and rounds down: the analyses take it as not defined for an integer that is divided
    by 0, and floats are lowered by `lower_math`."""
    is_affine: bool = False
    """True if `affine_of` combines the forms of its operands. Its results must then agree with those of
    unbounded integers modulo 2**bits if its operands do."""


class ReducerKind(msgspec.Struct, frozen=True):
    """An operation that is commutative and associative, so that a reduction may use it."""

    operands: OperandKind
    identity: Callable[[DType], bool | float]
    """Returns the neutral element of a scalar dtype."""


UNARY_OPERANDS: dict[UnaryOp, OperandKind] = {
    "neg": "numbers",
    "not": "bools",
    "bitnot": "integers",
}
"""The operands of each operation of one operand."""

BINARY_KINDS: dict[BinaryOp, BinaryKind] = {
    "add": BinaryKind("numbers", is_affine=True),
    "sub": BinaryKind("numbers", is_affine=True),
    "mul": BinaryKind("numbers", is_affine=True),
    "div": BinaryKind("floats"),
    "floordiv": BinaryKind("numbers", divides=True),
    "floormod": BinaryKind("numbers", divides=True),
    "min": BinaryKind("any"),
    "max": BinaryKind("any"),
    "and": BinaryKind("bools"),
    "or": BinaryKind("bools"),
    "bitand": BinaryKind("bits"),
    "bitor": BinaryKind("bits"),
    "bitxor": BinaryKind("bits"),
    "shl": BinaryKind("integers"),
    "shr": BinaryKind("integers"),
}
"""The operations of two operands."""

DIVISIONS = frozenset(op for op, kind in BINARY_KINDS.items() if kind.divides)
"""The operations that divide and round down."""

AFFINE_OPERATIONS = frozenset(op for op, kind in BINARY_KINDS.items() if kind.is_affine)
"""The operations of affine forms."""


def _least(dtype: DType) -> float:
    return float("-inf") if dtype.is_float else dtype.limits[0]


def _greatest(dtype: DType) -> float:
    return float("inf") if dtype.is_float else dtype.limits[1]


REDUCERS: dict[ReduceOp, ReducerKind] = {
    "add": ReducerKind("numbers", lambda dtype: 0),
    "mul": ReducerKind("numbers", lambda dtype: 1),
    "min": ReducerKind("any", _greatest),
    "max": ReducerKind("any", _least),
    "and": ReducerKind("bools", lambda dtype: True),
    "or": ReducerKind("bools", lambda dtype: False),
}
"""The reducers. Each is also an operation of two operands."""
