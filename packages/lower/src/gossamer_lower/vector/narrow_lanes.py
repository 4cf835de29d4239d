"""Computes vectors of indices in 32 bits where 64 bits are not needed.

Index arithmetic is in int64, and index arrays are mostly int32: a vector of differences of offsets would take
twice the registers of the vectors that it masks. On CPUs with AVX-512, an instruction on 512 bits also keeps
others from one of the vector units (measured on SpMV of short rows: 1.25 times as fast with 256 bits).
"""

from __future__ import annotations

from gossamer_ir.analysis.lane_projection import LANE
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.core.build import ZERO, index, is_nonnegative_integer, widen
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of, has_lanes
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Const,
    Expr,
    For,
    Function,
    LaneReduce,
    Load,
    Module,
    Node,
    Select,
    Var,
)
from gossamer_ir.traversal.node_index import nodes_in_body, nodes_of_type
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import collect
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import with_body

MAX_INT32 = 2**31 - 1
"""The largest int32."""


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    after={"eliminate_redundant_masks": "only masks that stay are narrowed"},
    before={"hoist_invariant_loads": "what a vector loads tells whether it fits into 32 bits"},
)
def narrow_lanes(module: Module) -> Module:
    """Compare and reduce int64 vectors that were widened from int32 as int32 vectors.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n):
    ...     Y[T.ramp(0, 1, 4)] = T.Select(
    ...         T.broadcast(i, 4) < T.cast(T.cast(P[T.ramp(0, 1, 4)], "int32x4"), "int64x4"),
    ...         X[T.ramp(0, 1, 4)], X[T.ramp(4, 1, 4)])
    ... ''')
    >>> print(body_text(narrow_lanes(before)))
    for i in T.serial(n):
        Y[T.ramp(0, 1, 4)] = T.Select(T.broadcast(T.int32(T.min(i, 2147483647)), 4) < \
T.cast(P[T.ramp(0, 1, 4)], "int32x4"), X[T.ramp(0, 1, 4)], X[T.ramp(4, 1, 4)])
    """
    return map_functions(module, _narrow_function)


def _narrow_function(function: Function) -> Function:
    if not any(_may_be_narrowed(node) for node in nodes_in_body(function, Compare, LaneReduce)):
        return function
    return with_body(function, rewrite_body(function.body, _Narrower(function).rule))


def _may_be_narrowed(node: Compare | LaneReduce) -> bool:
    """Return whether a comparison or reduction has a vector of int64 that contains one of int32."""
    if isinstance(node, LaneReduce):
        vector = node.value if node.op in ("min", "max") else None
    else:
        vector = node.rhs if node.op == "lt" and isinstance(node.lhs, Broadcast) else None
    return vector is not None and any(map(_is_widened, collect(Cast, vector)))


def _is_widened(expr: Expr) -> bool:
    """Return whether an expression is a vector of int64 that was int32."""
    return (
        isinstance(expr, Cast)
        and DType.parse(expr.dtype).scalar == "int64"
        and has_lanes(expr.value)
        and DType.parse(dtype_of(expr.value)).scalar == "int32"
    )


class _Narrower:
    """Narrows the vectors of one function."""

    def __init__(self, function: Function) -> None:
        self._point = ProgramPoint(function)
        self._nonnegative = _vars_from_zero(function)

    def rule(self, node: Node) -> Expr | None:
        """Return an expression with a narrower vector; None if nothing is known to be narrower."""
        match node:
            case LaneReduce(op="min" | "max" as op, value=value):
                narrow = self._narrow(value)
                return None if narrow is None else Cast("int64", LaneReduce(op, narrow))
            case Compare(op="lt", lhs=Broadcast(value=bound) as lhs, rhs=rhs):
                narrow = self._narrow(rhs)
                if narrow is None or not self._is_nonnegative(bound):
                    return None
                # No int32 is greater than the largest one, so that the bound may be cut off there.
                least = Cast("int32", Binary("min", bound, index(MAX_INT32)))
                return Compare("lt", Broadcast(least, lhs.lanes), narrow)
        return None

    def _narrow(self, value: Expr) -> Expr | None:
        """Return an int32 vector with the values of an int64 vector; None if they may not fit."""
        match value:
            case Cast() if _is_widened(value):
                return value.value
            case Broadcast(value=Const(dtype="int64", text=text), lanes=lanes):
                number = int(text)
                fits = -MAX_INT32 - 1 <= number <= MAX_INT32
                return Broadcast(constant(number, "int32"), lanes) if fits else None
            case Binary(op="sub", lhs=lhs, rhs=rhs):
                # The difference of two natural numbers of 31 bits does not wrap.
                if not (self._is_nonnegative_vector(lhs) and self._is_nonnegative_vector(rhs)):
                    return None
                return self._both(value, lhs, rhs)
            case Binary(op="min" | "max", lhs=lhs, rhs=rhs):
                return self._both(value, lhs, rhs)
            case Select(condition=condition, if_true=if_true, if_false=if_false):
                first, second = self._narrow(if_true), self._narrow(if_false)
                if first is None or second is None:
                    return None
                return Select(condition, first, second)
        return None

    def _both(self, value: Binary, lhs: Expr, rhs: Expr) -> Expr | None:
        first, second = self._narrow(lhs), self._narrow(rhs)
        if first is None or second is None:
            return None
        return Binary(value.op, first, second)

    def _is_nonnegative_vector(self, value: Expr) -> bool:
        """Return whether all lanes of a widened load are proved to be 0 or more."""
        if not isinstance(value, Cast) or not isinstance(value.value, Load):
            return False
        load = value.value
        rest = load.passthrough
        is_rest_nonnegative = rest is None or (
            isinstance(rest, Broadcast) and self._is_nonnegative(rest.value)
        )
        # The facts about an index array hold for all its elements.
        element = Load(load.buffer, tuple(LANE for _ in load.indices), "int32")
        return is_rest_nonnegative and self._point.prover.proves_nonnegative(widen(element))

    def _is_nonnegative(self, value: Expr) -> bool:
        if isinstance(value, Var):
            return value.name in self._nonnegative
        return is_nonnegative_integer(value)


def _vars_from_zero(function: Function) -> set[str]:
    """Return the variables of serial loops from 0 on; of several loops of a name, all are."""
    loops = list(nodes_of_type(function, For))
    others = {loop.var for loop in loops if loop.start != ZERO}
    return {loop.var for loop in loops} - others
