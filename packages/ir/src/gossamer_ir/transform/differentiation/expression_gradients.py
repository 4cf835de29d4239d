"""The gradients of the elements that an expression reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from gossamer_ir.core.build import zero_of
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Binary, Call, Cast, Expr, IfThenElse, Load, Select, Unary
from gossamer_ir.transform.differentiation.derivatives import (
    DERIVATIVES_OF_FUNCTIONS,
    DERIVATIVES_OF_OPERATIONS,
    neg,
)
from gossamer_ir.traversal.walk import collect


class Contribution(msgspec.Struct, frozen=True):
    """A term that is added to the gradient of a loaded element, where all conditions hold."""

    load: Load
    gradient: Expr
    conditions: tuple[Expr, ...] = ()


# Other expressions: refused.
def contributions(expr: Expr, seed: Expr, active: Collection[str]) -> Iterator[Contribution]:
    """Yield the gradient of each element of the active buffers that an expression reads; `seed` is the
    gradient of its value.

    Raises `UnsupportedError` (`adjoint.expression`) for an operation without a derivative.

    >>> from gossamer_ir.core.build import ONE
    >>> from gossamer_ir.nodes import Var
    >>> from gossamer_ir.script import print_expr
    >>> x, seed = Load("X", (ONE,), "float32"), Var("seed", "float32")
    >>> [print_expr(each.gradient) for each in contributions(Binary("mul", x, x), seed, {"X"})]
    ['seed * X[1]', 'X[1] * seed']
    """
    if not _reads(expr, active):
        return
    match expr:
        case Load():
            # An index array has no gradient.
            if expr.buffer in active:
                yield Contribution(expr, seed)
        case Unary(op="neg"):
            yield from contributions(expr.operand, neg(seed), active)
        case Binary() | Call():
            yield from _operand_contributions(expr, seed, active)
        case Cast():
            yield from _cast_contributions(expr, seed, active)
        case Select() | IfThenElse():
            yield from _select_contributions(expr, seed, active)
        case _:
            raise _derivative_error(type(expr).__name__)


def _reads(expr: Expr, active: Collection[str]) -> bool:
    return any(load.buffer in active for load in collect(Load, expr))


def _operand_contributions(
    expr: Binary | Call, seed: Expr, active: Collection[str]
) -> Iterator[Contribution]:
    if isinstance(expr, Binary):
        name: str = expr.op
        operands: tuple[Expr, ...] = (expr.lhs, expr.rhs)
        derivative = DERIVATIVES_OF_OPERATIONS.get(expr.op)
    else:
        name, operands = expr.function, expr.args
        derivative = DERIVATIVES_OF_FUNCTIONS.get(expr.function)
    if derivative is None or not DType.parse(dtype_of(expr)).is_float:
        raise _derivative_error(name)
    for operand, gradient in zip(operands, derivative(seed, *operands), strict=True):
        if _reads(operand, active):
            yield from contributions(operand, gradient(), active)


def _cast_contributions(expr: Cast, seed: Expr, active: Collection[str]) -> Iterator[Contribution]:
    dtype = dtype_of(expr.value)
    if not (DType.parse(dtype).is_float and DType.parse(expr.dtype).is_float):
        raise _derivative_error(f"conversion from {dtype} to {expr.dtype}")
    yield from contributions(expr.value, Cast(dtype, seed), active)


def _select_contributions(
    expr: Select | IfThenElse, seed: Expr, active: Collection[str]
) -> Iterator[Contribution]:
    """Yield the gradients of the two values, each where it is chosen.

    They are not multiplied by 0 where it is not: a slope may be infinite there.
    """
    fails = Unary("not", expr.condition)
    for operand, condition in ((expr.if_true, expr.condition), (expr.if_false, fails)):
        for contribution in contributions(operand, seed, active):
            if isinstance(expr, IfThenElse):
                # Where the other operand is chosen, the element need not exist.
                conditions = (condition, *contribution.conditions)
                yield Contribution(contribution.load, contribution.gradient, conditions)
            else:
                zero = zero_of(dtype_of(contribution.gradient))
                yield Contribution(
                    contribution.load,
                    Select(condition, contribution.gradient, zero),
                    contribution.conditions,
                )


def _derivative_error(name: str) -> UnsupportedError:
    return UnsupportedError(
        "adjoint.expression",
        f"The operation '{name}' has no derivative.",
        hint="Leave the buffers that it reads out of wrt=.",
    )
