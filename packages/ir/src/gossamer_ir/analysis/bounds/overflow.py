"""Overflow analysis: bounds of absolute values, so that proofs about unbounded integers carry over.

The prover uses unbounded integers, machine integers wrap. Addition, subtraction and multiplication agree
modulo 2**bits: if the unbounded result is in [0, extent), the machine result is the same, even if
intermediate values wrap (`is_sound`). The operands of comparisons and divisions must not wrap (`is_exact`).
"""

from __future__ import annotations

from typing import Self

from gossamer_ir.analysis.bounds.value_bounds import ValueBounds, limit_of
from gossamer_ir.arith.nonaffine_bounds import OPERATION_BOUNDS
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.operations import AFFINE_OPERATIONS
from gossamer_ir.nodes import (
    Binary,
    BinaryOp,
    Cast,
    Compare,
    Function,
    IfThenElse,
    Load,
    Node,
    Search,
    Select,
    Unary,
)
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.walk import children, every_stmt
from gossamer_support.identity_cache import memoize_by_identity


@memoize_by_identity
def overflow_of(function: Function) -> OverflowAnalysis:
    """Return bounds of all variables of a function, and for the index buffers that it does not write."""
    analysis = OverflowAnalysis(function)
    # Names are unique in a function, so one table serves all points of it.
    analysis.bind_each(every_stmt(function))
    return analysis


class OverflowAnalysis(ValueBounds):
    """The expressions that cannot overflow, by the bounds of their operands.

    >>> from gossamer_ir.core.build import ZERO, add, index, index_var, mul
    >>> from gossamer_ir.nodes import For
    >>> analysis, i = OverflowAnalysis(Function("f", (), ())), index_var("i")
    >>> analysis.bind_loop(For("i", ZERO, index(100), ()))
    >>> analysis.is_exact(mul(i, index(8)))
    True
    >>> analysis.is_exact(add(index_var("unknown"), index(1)))
    False
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self._exact: dict[Node, bool] = {}

    def copy(self) -> Self:
        result = super().copy()
        result._exact = {}
        return result

    def _forget(self, var_name: str) -> None:
        super()._forget(var_name)
        # A bound of a variable may be part of any cached answer.
        self._exact.clear()

    def is_exact(self, expr: Node) -> bool:
        """Return whether no operation in an integer expression wraps."""
        # The extents of an array that was passed were computed by the caller and compared with its shape.
        if type(expr) in LEAVES or expr in self._extents:
            return True
        exact = self._exact.get(expr)
        if exact is None:
            exact = self._exact[expr] = self._is_exact(expr)
        return exact

    def _is_exact(self, expr: Node) -> bool:
        match expr:
            case Binary() if expr.op in AFFINE_OPERATIONS:
                # The bound is of the absolute value, so the least integer, -2**63, counts as wrapping; this
                # is safe.
                fits = self.unwrapped_bound(expr) < limit_of(dtype_of(expr))
                return fits and self.is_exact(expr.lhs) and self.is_exact(expr.rhs)
            case Unary(op="neg"):
                fits = self.bound(expr.operand) < limit_of(dtype_of(expr))
                return fits and self.is_exact(expr.operand)
            case Select() | IfThenElse() | Binary(op="and" | "or" | "min" | "max"):
                return all(map(self.is_exact, children(expr)))
        return self.is_sound(expr)

    def is_sound(self, expr: Node) -> bool:
        """Return whether an integer expression equals its unbounded value modulo 2**bits, so that the two are
        equal if the unbounded value is in range."""
        if type(expr) in LEAVES:
            return True
        match expr:
            # Modulo 2**bits is a ring homomorphism for these: wraps in between cancel.
            case Binary() if expr.op in AFFINE_OPERATIONS:
                return self.is_sound(expr.lhs) and self.is_sound(expr.rhs)
            # A wrapped dividend has another quotient, also modulo 2**bits.
            case Binary() if _relates_operands(expr.op):
                return self.is_exact(expr.lhs) and self.is_exact(expr.rhs)
            case Compare() | Cast():
                return all(map(self.is_exact, children(expr)))
            case Select() | IfThenElse():
                sides = (expr.if_true, expr.if_false)
                return self.is_exact(expr.condition) and all(map(self.is_sound, sides))
            case Search():
                return all(map(self.is_exact, children(expr)))
            # The prover relates the element to its index,
            # so the index must be the number that it reasons about.
            case Load() if expr.buffer in self._facts.ordered:
                return all(map(self.is_exact, expr.indices))
        return all(map(self.is_sound, children(expr)))


def _relates_operands(op: BinaryOp) -> bool:
    """Return whether the prover concludes something about the operands of an operation."""
    return op in OPERATION_BOUNDS and OPERATION_BOUNDS[op].relates_operands
