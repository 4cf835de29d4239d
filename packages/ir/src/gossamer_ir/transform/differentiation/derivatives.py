"""The table of derivatives: of each operation and function, the gradients of its operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from gossamer_ir.core.build import zero_of
from gossamer_ir.core.constants import constant
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, BinaryOp, Call, Compare, CompareOp, Const, Expr, Select, Unary

Gradients: TypeAlias = tuple[Callable[[], Expr], ...]
"""One for each operand, made only for operands whose gradient is wanted."""
Derivative: TypeAlias = Callable[..., Gradients]
"""Takes the gradient of the result and the operands."""


def neg(value: Expr) -> Expr:
    """Return -value, folded for a negation.

    >>> from gossamer_ir.nodes import Var
    >>> neg(neg(Var("x", "float32")))
    Var(name='x', dtype='float32')
    """
    if isinstance(value, Unary) and value.op == "neg":
        return value.operand
    return Unary("neg", value)


def mul(lhs: Expr, rhs: Expr) -> Expr:
    """Return lhs * rhs of floats; a factor of 1 is left out.

    >>> from gossamer_ir.nodes import Var
    >>> mul(Var("x", "float32"), constant(1, "float32"))
    Var(name='x', dtype='float32')
    """
    if _is_one(lhs):
        return rhs
    return lhs if _is_one(rhs) else Binary("mul", lhs, rhs)


def _is_one(value: Expr) -> bool:
    return isinstance(value, Const) and value == constant(1, value.dtype)


def _div(lhs: Expr, rhs: Expr) -> Expr:
    return Binary("div", lhs, rhs)


def _call(function: str, *args: Expr) -> Expr:
    return Call(function, args, dtype_of(args[0]))


def _like(operand: Expr, value: float) -> Expr:
    return constant(value, dtype_of(operand))


def _if_positive(value: Expr, if_true: Expr, if_false: Expr) -> Expr:
    return Select(Compare("gt", value, zero_of(dtype_of(value))), if_true, if_false)


def _if_zero(value: Expr, if_true: Expr, if_false: Expr) -> Expr:
    return Select(Compare("eq", value, zero_of(dtype_of(value))), if_true, if_false)


def _extremum_derivative(op: CompareOp) -> Derivative:
    """Return the derivative of `max` (op "gt") or `min` ("lt"). Equal operands get half each."""

    def gradients(seed: Expr, lhs: Expr, rhs: Expr) -> Gradients:
        def share(one: Expr, other: Expr) -> Expr:
            unequal = Select(Compare(op, one, other), _like(one, 1), _like(one, 0))
            return mul(seed, Select(Compare("eq", one, other), _like(one, 0.5), unequal))

        return lambda: share(lhs, rhs), lambda: share(rhs, lhs)

    return gradients


def _quotient_gradients(seed: Expr, lhs: Expr, rhs: Expr) -> Gradients:
    return lambda: _div(seed, rhs), lambda: neg(mul(_div(seed, rhs), _div(lhs, rhs)))


def _power_gradients(seed: Expr, base: Expr, exponent: Expr) -> Gradients:
    """Return the gradients of a power. A power of zero does not depend on its exponent, a zeroth power not on
    its base: these are 0, not 0 * inf."""

    def base_gradient() -> Expr:
        lower = Binary("sub", exponent, _like(exponent, 1))
        slope = mul(exponent, _call("pow", base, lower))
        return mul(seed, _if_zero(exponent, _like(base, 0), slope))

    def exponent_gradient() -> Expr:
        slope = mul(_call("pow", base, exponent), _call("log", base))
        return mul(seed, _if_zero(base, _like(base, 0), slope))

    return base_gradient, exponent_gradient


def _unary_derivative(slope: Callable[[Expr], Expr]) -> Derivative:
    """Return the derivative of a function of one operand from its slope."""
    return lambda seed, operand: (lambda: mul(seed, slope(operand)),)


def _reciprocal_derivative(divisor: Callable[[Expr], Expr]) -> Derivative:
    """Return the derivative of a function whose slope is 1 / divisor."""
    return lambda seed, operand: (lambda: _div(seed, divisor(operand)),)


def _one_minus_square(value: Expr) -> Expr:
    return Binary("sub", _like(value, 1), mul(value, value))


def _slope_of_sigmoid(operand: Expr) -> Expr:
    value = _call("sigmoid", operand)
    return mul(value, Binary("sub", _like(operand, 1), value))


def _slope_of_erf(operand: Expr) -> Expr:
    return mul(_like(operand, 2 / math.sqrt(math.pi)), _call("exp", neg(mul(operand, operand))))


def _sign(operand: Expr) -> Expr:
    """Return the slope of `abs`, 0 at 0."""
    negative = _if_positive(neg(operand), _like(operand, -1), _like(operand, 0))
    return _if_positive(operand, _like(operand, 1), negative)


DERIVATIVES_OF_OPERATIONS: dict[BinaryOp, Derivative] = {
    "add": lambda seed, lhs, rhs: (lambda: seed, lambda: seed),
    "sub": lambda seed, lhs, rhs: (lambda: seed, lambda: neg(seed)),
    "mul": lambda seed, lhs, rhs: (lambda: mul(seed, rhs), lambda: mul(lhs, seed)),
    "div": _quotient_gradients,
    "max": _extremum_derivative("gt"),
    "min": _extremum_derivative("lt"),
}
"""The derivatives of operations of two floats."""

OPERATIONS_WITHOUT_DERIVATIVE: frozenset[BinaryOp] = frozenset({"floordiv", "floormod"})
"""The operations of floats that are refused, as functions with jumps are."""

DERIVATIVES_OF_FUNCTIONS: dict[str, Derivative] = {
    "exp": _unary_derivative(lambda x: _call("exp", x)),
    "exp2": _unary_derivative(lambda x: mul(_call("exp2", x), _like(x, math.log(2)))),
    "expm1": _unary_derivative(lambda x: _call("exp", x)),
    "log": _reciprocal_derivative(lambda x: x),
    "log2": _reciprocal_derivative(lambda x: mul(x, _like(x, math.log(2)))),
    "log10": _reciprocal_derivative(lambda x: mul(x, _like(x, math.log(10)))),
    "log1p": _reciprocal_derivative(lambda x: Binary("add", x, _like(x, 1))),
    "sqrt": _reciprocal_derivative(lambda x: mul(_like(x, 2), _call("sqrt", x))),
    "rsqrt": _unary_derivative(lambda x: _div(_call("rsqrt", x), mul(_like(x, -2), x))),
    "tanh": _unary_derivative(lambda x: _one_minus_square(_call("tanh", x))),
    "sigmoid": _unary_derivative(_slope_of_sigmoid),
    "erf": _unary_derivative(_slope_of_erf),
    "sin": _unary_derivative(lambda x: _call("cos", x)),
    "cos": _unary_derivative(lambda x: neg(_call("sin", x))),
    "abs": _unary_derivative(_sign),
    # A precision, as that of a conversion, which passes gradients on, too.
    "tf32": lambda seed, operand: (lambda: seed,),
    "pow": _power_gradients,
    "fma": lambda seed, a, b, c: (lambda: mul(seed, b), lambda: mul(a, seed), lambda: seed),
}
"""The derivatives of functions."""

FUNCTIONS_WITHOUT_DERIVATIVE = frozenset({"floor", "ceil", "trunc", "round"})
"""The functions of floats that are constant between jumps: they are refused, since zeros would hide that."""
