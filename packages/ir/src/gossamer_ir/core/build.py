"""Constructors of int64 index expressions, which fold constants, and their inverses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import TypeGuard

from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import SCALARS, DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.integers import UNBOUNDED, evaluate_int64, wrap_integer
from gossamer_ir.core.operations import DIVISIONS
from gossamer_ir.nodes import Binary, BinaryOp, Cast, Const, Expr, IfThenElse, SparseBuffer, Var


def index(value: int) -> Const:
    """Return an int64 constant; a value that int64 cannot represent wraps, as in arithmetic.

    >>> index(2**63 - 1), index(2**63)
    (Const(dtype='int64', text='9223372036854775807'), Const(dtype='int64', text='-9223372036854775808'))
    """
    if not -(2**63) <= value < 2**63:
        value = wrap_integer(value)
    return Const("int64", str(value))


# Shared objects, so that comparing with them mostly ends at the identity check.
ZERO = index(0)
ONE = index(1)


def index_var(name: str) -> Var:
    """Return an int64 variable."""
    return Var(name, "int64")


def handle(name: str) -> Var:
    """Return a pointer argument of `ParallelFor` or `Launch`."""
    return Var(name, "handle")


def is_handle(node: object) -> TypeGuard[Var]:
    """Return whether a node, such as an argument of a call, is the address of a buffer.

    >>> is_handle(handle("X")), is_handle(index_var("i"))
    (True, False)
    """
    return isinstance(node, Var) and node.dtype == "handle"


def var_name(expr: Expr) -> str | None:
    """Return the name of a variable, None for anything else.

    >>> var_name(index_var("i")), var_name(index(1))
    ('i', None)
    """
    return expr.name if type(expr) is Var else None


def integer_value(expr: Expr) -> int | None:
    """Return the value of an integer constant, None for anything else."""
    return int(expr.text) if type(expr) is Const and expr.dtype in _INTEGERS else None


def is_nonnegative_integer(expr: Expr) -> bool:
    """Return whether an expression is an integer constant of at least 0.

    >>> [is_nonnegative_integer(each) for each in (ZERO, index(-1), index_var("i"))]
    [True, False, False]
    """
    value = integer_value(expr)
    return value is not None and value >= 0


_INTEGERS = frozenset(name for name in SCALARS if DType(name).is_integer)


def add(lhs: Expr, rhs: Expr) -> Expr:
    """Return lhs + rhs, both int64."""
    # The common case first: most sums that passes build have no constant operand.
    if type(lhs) is not Const and type(rhs) is not Const:
        return Binary("add", lhs, rhs)
    left = integer_value(lhs) if type(lhs) is Const else None
    right = integer_value(rhs) if type(rhs) is Const else None
    if left is not None and right is not None:
        return Const("int64", str(evaluate_int64("add", left, right)))
    if left == 0:
        return rhs
    return lhs if right == 0 else Binary("add", lhs, rhs)


def sub(lhs: Expr, rhs: Expr) -> Expr:
    """Return lhs - rhs, both int64."""
    if type(lhs) is not Const and type(rhs) is not Const:
        return ZERO if lhs == rhs else Binary("sub", lhs, rhs)
    left, right = integer_value(lhs), integer_value(rhs)
    if left is not None and right is not None:
        return Const("int64", str(evaluate_int64("sub", left, right)))
    return lhs if right == 0 else Binary("sub", lhs, rhs)


def mul(lhs: Expr, rhs: Expr) -> Expr:
    """Return lhs * rhs, both int64."""
    if type(lhs) is not Const and type(rhs) is not Const:
        return Binary("mul", lhs, rhs)
    left = integer_value(lhs) if type(lhs) is Const else None
    right = integer_value(rhs) if type(rhs) is Const else None
    if left is not None and right is not None:
        return Const("int64", str(evaluate_int64("mul", left, right)))
    if left == 0 or right == 0:
        return ZERO
    if left == 1:
        return rhs
    return lhs if right == 1 else Binary("mul", lhs, rhs)


def floordiv(lhs: Expr, rhs: Expr) -> Expr:
    """Return lhs // rhs, both int64."""
    left, right = integer_value(lhs), integer_value(rhs)
    if left is not None and right:
        return Const("int64", str(evaluate_int64("floordiv", left, right)))
    return lhs if right == 1 else Binary("floordiv", lhs, rhs)


def binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    """Return an int64 operation, folded by the constructor of its operator (`add`, `mul`, ...) if it has one.

    >>> binary("mul", index_var("i"), ONE), binary("min", index(3), index(5))
    (Var(name='i', dtype='int64'), Const(dtype='int64', text='3'))
    """
    constructor = _CONSTRUCTORS.get(op)
    if constructor is not None:
        return constructor(lhs, rhs)
    return fold_constants(op, lhs, rhs) or Binary(op, lhs, rhs)


def fold_constants(op: BinaryOp, lhs: Expr, rhs: Expr) -> Const | None:
    """Return the result of an int64 operation on two constants; None for other operands.

    A division by zero is not folded to 0, so that a size that divides by zero can still be reported.

    >>> fold_constants("add", index(2**63 - 1), ONE)
    Const(dtype='int64', text='-9223372036854775808')
    """
    left, right = integer_value(lhs), integer_value(rhs)
    if left is None or right is None or op not in UNBOUNDED:
        return None
    is_undefined = right == 0 and op in DIVISIONS
    return None if is_undefined else Const("int64", str(evaluate_int64(op, left, right)))


# Other operations: none occurs; this makes the operations itself.
_CONSTRUCTORS: dict[BinaryOp, Callable[[Expr, Expr], Expr]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "floordiv": floordiv,
}


def product(factors: Iterable[Expr]) -> Expr:
    """Return the product of expressions; 1 if there are none.

    >>> product([]) == ONE, product([index_var("i")]) == index_var("i")
    (True, True)
    """
    one: Expr = ONE
    return reduce(mul, factors, one)


def ceildiv(lhs: Expr, rhs: int) -> Expr:
    """Return lhs / rhs rounded up, for rhs > 0."""
    return floordiv(add(lhs, index(rhs - 1)), index(rhs))


def widen(expr: Expr) -> Expr:
    """Return an integer expression, cast to int64 unless it has that dtype."""
    return expr if dtype_of(expr) == "int64" else Cast("int64", expr)


def unconditional_extent(extent: Expr) -> Expr:
    """Return the extent of a loop without the conditions under which it runs: `n` for `n if condition else
    0`."""
    while isinstance(extent, IfThenElse) and integer_value(extent.if_false) == 0:
        extent = extent.if_true
    return extent


def zero_of(dtype: str) -> Const:
    """Return the zero of a scalar dtype."""
    return constant(0, dtype)


def fill_of(buffer: SparseBuffer) -> Const:
    """Return the value that an absent coordinate of a sparse buffer reads."""
    return zero_of(buffer.dtype) if buffer.fill is None else buffer.fill
