"""The value of an integer expression whose variables are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gossamer_ir.core.integers import UNBOUNDED
from gossamer_ir.core.operations import DIVISIONS
from gossamer_ir.nodes import Binary, BinaryOp, Cast, Const, Expr, Load, Var

# Other operations: refused.
_OPERATIONS: frozenset[BinaryOp] = frozenset(
    {"add", "sub", "mul", "floordiv", "floormod", "min", "max"}
)


class NotArithmeticError(Exception):
    """An expression that has no value here; its argument is the name of the node's class."""


# Other expressions: refused.
def evaluate_integer(
    expr: Expr,
    vars: Mapping[str, int | float | bool],
    *,
    element: Callable[[str, int], int] | None = None,
) -> int:
    """Return the value of an integer expression in unbounded arithmetic: a size must not wrap.

    `element` returns the element of a buffer at a position. Raises `ZeroDivisionError`, and
    `NotArithmeticError` for other expressions than constants, variables, elements and arithmetic.

    >>> from gossamer_ir.core.build import add, index, index_var
    >>> evaluate_integer(add(index_var("m"), index(1)), {"m": 4})
    5
    """
    match expr:
        case Const():
            return int(expr.text)
        case Var():
            return int(vars[expr.name])
        case Binary() if expr.op in _OPERATIONS:
            left = evaluate_integer(expr.lhs, vars, element=element)
            right = evaluate_integer(expr.rhs, vars, element=element)
            if right == 0 and expr.op in DIVISIONS:
                raise ZeroDivisionError
            return UNBOUNDED[expr.op](left, right)
        case Cast():
            return evaluate_integer(expr.value, vars, element=element)
        case Load(indices=(position,)) if element is not None:
            return element(expr.buffer, evaluate_integer(position, vars, element=element))
    raise NotArithmeticError(type(expr).__name__)
