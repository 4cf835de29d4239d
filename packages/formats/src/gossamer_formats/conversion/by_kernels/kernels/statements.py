"""Statements and expressions of kernels, whose indices are int64."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer_ir.core.build import ONE, ZERO, add, index_var, mul, sub, widen
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Compare,
    CompareOp,
    Const,
    Expr,
    Fact,
    For,
    HasValue,
    If,
    InRange,
    Let,
    Load,
    Monotone,
    Select,
    Stmt,
    Store,
)


def let(name: str, value: Expr) -> Let:
    """Return a statement that binds an index."""
    return Let(index_var(name), value)


def load(buffer_name: str, at: Expr, dtype: str) -> Expr:
    """Return an element of an array of integers as an int64.

    >>> from gossamer_ir.script import print_expr
    >>> print_expr(load("X", ZERO, "int32"))
    'T.int64(X[0])'
    """
    return widen(Load(buffer_name, (at,), dtype))


def store(buffer_name: str, at: Expr, value: Expr, dtype: str = "int64") -> Store:
    """Return a statement that stores an index in an array of integers."""
    return Store(buffer_name, (at,), cast(value, dtype))


def cast(value: Expr, dtype: str) -> Expr:
    """Return an index as an integer of a dtype."""
    if dtype == "int64":
        return value
    return Const(dtype, value.text) if isinstance(value, Const) else Cast(dtype, value)


def define_local(name: str, value: Expr) -> tuple[Stmt, ...]:
    """Return the statements that allocate a local variable and set it."""
    buffer = Buffer(name, (ONE,), "int64", scope="local")
    return Allocate(buffer), store_local(name, value)


def load_local(name: str) -> Expr:
    """Return the value of a local variable."""
    return Load(name, (ZERO,), "int64")


def store_local(name: str, value: Expr) -> Store:
    """Return a statement that sets a local variable."""
    return Store(name, (ZERO,), value)


def loop(name: str, start: Expr, end: Expr, body: Iterable[Stmt]) -> For:
    """Return the loop over the integers from `start` to `end` - 1.

    The body may be empty: `wrap_in_nest` then puts the inner levels of a nest into it.
    """
    return For(name, start, sub(end, start), tuple(body))


def when(condition: Expr, body: Iterable[Stmt], otherwise: Iterable[Stmt] = ()) -> If:
    """Return a branch."""
    return If(condition, tuple(body), tuple(otherwise))


def compare(op: CompareOp, lhs: Expr, rhs: Expr) -> Compare:
    """Return a comparison of indices."""
    return Compare(op, lhs, rhs)


def logical_and(lhs: Expr, rhs: Expr) -> Expr:
    """Return the conjunction of conditions that are both evaluated."""
    return Binary("and", lhs, rhs)


def logical_or(lhs: Expr, rhs: Expr) -> Expr:
    """Return the disjunction of conditions that are both evaluated."""
    return Binary("or", lhs, rhs)


def operation(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr:
    """Return an operation of two numbers of one dtype, such as "max"."""
    return Binary(op, lhs, rhs)


def select(condition: Expr, if_true: Expr, if_false: Expr) -> Expr:
    """Return one of two values, which are both evaluated."""
    return Select(condition, if_true, if_false)


def increment(buffer_name: str, at: Expr, dtype: str) -> Store:
    """Return a statement that adds 1 to an element of an array of integers."""
    return Store(
        buffer_name, (at,), Binary("add", Load(buffer_name, (at,), dtype), Const(dtype, "1"))
    )


def digits(number: Expr, base: Expr, digit: Expr) -> Expr:
    """Return a number with one more digit.

    >>> from gossamer_ir.script import print_expr
    >>> print_expr(digits(index_var("e"), index_var("n"), index_var("x")))
    'e * n + x'
    """
    return add(mul(number, base), digit)


def offsets_facts(buffer_name: str, fibers: Expr, count: Expr) -> tuple[Fact, ...]:
    """Return what holds for the first slots of fibers, after which the number of all slots stands."""
    return (
        Monotone(buffer_name),
        InRange(buffer_name, ZERO, add(count, ONE)),
        HasValue(buffer_name, ZERO, ZERO),
        HasValue(buffer_name, fibers, count),
    )
