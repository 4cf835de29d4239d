"""The table of expression types: the dtype of each, its operands, what it reads, and its lanes.

Passes, primitives and backends ask this table about a type of expression, so that a new type needs one
entry here. A test checks that the table covers the language.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal

import msgspec

from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    LaneReduce,
    Load,
    Ramp,
    Reinterpret,
    Search,
    Select,
    TransposeReduce,
    Unary,
    Var,
    VScale,
)


class ExprKind(msgspec.Struct, frozen=True):
    """Properties of every expression of a type."""

    dtype: Callable[[Any], str]
    """Returns the dtype of an expression, derived from its operands."""
    lanes: Literal["elementwise", "scalar", "own rule"] = "elementwise"
    """Relation of a vector to its operands. "elementwise": a lane of the result is the same operation on
    this lane of each operand; operands that are the same for all lanes may be broadcast. "scalar": the result
    has no lanes. "own rule": anything else; `lane_projection` and `body_vectorizer` have a rule for it."""
    reads: bool = False
    """True if it reads memory, and so must be in bounds."""
    lazy: tuple[str, ...] = ()
    """The operands that are evaluated only if a condition selects them."""
    operands_of_one_dtype: tuple[str, ...] = ()
    """The fields of the operands that must have one dtype. It is that of a result whose dtype is declared."""


def dtype_of(expr: Expr) -> str:
    """Return the dtype of an expression, derived from its operands.

    >>> dtype_of(Compare("lt", Var("i", "int64x4"), Var("n", "int64x4")))
    'boolx4'
    """
    return EXPR_KINDS[type(expr)].dtype(expr)


def has_lanes(expr: Expr) -> bool:
    """Return whether an expression is a vector.

    >>> has_lanes(Var("i", "int64x4")), has_lanes(Var("i", "int64"))
    (True, False)
    """
    return DType.parse(dtype_of(expr)).is_vector


def _dtype_of_comparison(expr: Compare) -> str:
    return DType.parse(dtype_of(expr.lhs)).with_scalar("bool").text


def _dtype_of_ramp(expr: Ramp) -> str:
    return DType(dtype_of(expr.base), expr.lanes.count, expr.lanes.scalable).text


def _dtype_of_broadcast(expr: Broadcast) -> str:
    return DType(dtype_of(expr.value), expr.lanes.count, expr.lanes.scalable).text


def _dtype_of_lane_reduction(expr: LaneReduce) -> str:
    return DType.parse(dtype_of(expr.value)).scalar


def _dtype_of_transposed_reduction(expr: TransposeReduce) -> str:
    return DType(DType.parse(dtype_of(expr.values[0])).scalar, len(expr.values)).text


def _dtype_of_choice(expr: Select | IfThenElse) -> str:
    return dtype_of(expr.if_true)


def _int64(_expr: Expr) -> str:
    return "int64"


_declared = attrgetter("dtype")

EXPR_KINDS: dict[type[Any], ExprKind] = {
    Const: ExprKind(_declared, lanes="scalar"),
    Var: ExprKind(_declared, lanes="own rule"),
    Unary: ExprKind(lambda expr: dtype_of(expr.operand)),
    Binary: ExprKind(lambda expr: dtype_of(expr.lhs), operands_of_one_dtype=("lhs", "rhs")),
    Compare: ExprKind(_dtype_of_comparison, operands_of_one_dtype=("lhs", "rhs")),
    Cast: ExprKind(_declared),
    Reinterpret: ExprKind(_declared),
    Select: ExprKind(_dtype_of_choice, operands_of_one_dtype=("if_true", "if_false")),
    IfThenElse: ExprKind(
        _dtype_of_choice,
        lazy=("if_true", "if_false"),
        operands_of_one_dtype=("if_true", "if_false"),
    ),
    Call: ExprKind(_declared, operands_of_one_dtype=("args",)),
    Load: ExprKind(_declared, reads=True),
    Search: ExprKind(_int64, lanes="scalar", reads=True),
    VScale: ExprKind(_int64, lanes="scalar"),
    Ramp: ExprKind(_dtype_of_ramp, lanes="own rule"),
    Broadcast: ExprKind(_dtype_of_broadcast, lanes="own rule"),
    LaneReduce: ExprKind(_dtype_of_lane_reduction, lanes="scalar"),
    TransposeReduce: ExprKind(
        _dtype_of_transposed_reduction, lanes="own rule", operands_of_one_dtype=("values",)
    ),
}
"""One entry for each type of expression."""

LAZY = {kind: frozenset(entry.lazy) for kind, entry in EXPR_KINDS.items() if entry.lazy}
"""The lazily evaluated operands of each type of expression that has any."""
