"""Random user-declared reducers of tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from gossamer_ir.analysis.statements.reductions import identity
from gossamer_ir.core.constants import constant
from gossamer_ir.nodes import Binary, Compare, Const, Expr, Reducer, Select, Var

MakeReducer: TypeAlias = Callable[[str, str], Reducer]


def _reducer(
    name: str, dtypes: Sequence[str], results: Callable[..., Sequence[Expr]], start: Sequence[Const]
) -> Reducer:
    left = tuple(Var(f"{name}_l{number}", dtype) for number, dtype in enumerate(dtypes))
    right = tuple(Var(f"{name}_r{number}", dtype) for number, dtype in enumerate(dtypes))
    return Reducer(name, left, right, tuple(results(*left, *right)), tuple(start))


def largest_and_where(name: str, dtype: str) -> Reducer:
    """The larger value with its index; the first index of equal values."""

    def results(p0: Expr, v0: Expr, p1: Expr, v1: Expr) -> Sequence[Expr]:
        is_first = Binary("and", Compare("eq", v0, v1), Compare("lt", p0, p1))
        is_left = Binary("or", Compare("gt", v0, v1), is_first)
        return Select(is_left, p0, p1), Binary("max", v0, v1)

    start = identity("min", "int64"), identity("max", dtype)
    return _reducer(name, ("int64", dtype), results, start)


def sum_and_count(name: str, dtype: str) -> Reducer:
    def results(s0: Expr, c0: Expr, s1: Expr, c1: Expr) -> Sequence[Expr]:
        return Binary("add", s0, s1), Binary("add", c0, c1)

    return _reducer(name, (dtype, "int32"), results, (constant(0, dtype), constant(0, "int32")))


def min_and_max(name: str, dtype: str) -> Reducer:
    def results(a: Expr, b: Expr, c: Expr, d: Expr) -> Sequence[Expr]:
        return Binary("min", a, c), Binary("max", b, d)

    return _reducer(name, (dtype, dtype), results, (identity("min", dtype), identity("max", dtype)))


def complex_product(name: str, dtype: str) -> Reducer:
    """The product of complex numbers, with wrapping integers."""

    def results(a: Expr, b: Expr, c: Expr, d: Expr) -> Sequence[Expr]:
        real = Binary("sub", Binary("mul", a, c), Binary("mul", b, d))
        return real, Binary("add", Binary("mul", a, d), Binary("mul", b, c))

    return _reducer(name, (dtype, dtype), results, (constant(1, dtype), constant(0, dtype)))


def three_sums(name: str, dtype: str) -> Reducer:
    def results(*sides: Expr) -> Sequence[Expr]:
        return [Binary("add", sides[at], sides[at + 3]) for at in range(3)]

    return _reducer(name, (dtype,) * 3, results, (constant(0, dtype),) * 3)


REDUCERS: dict[bool, tuple[MakeReducer, ...]] = {
    True: (largest_and_where, sum_and_count, min_and_max, three_sums),
    False: (largest_and_where, sum_and_count, min_and_max, complex_product, three_sums),
}
"""The reducers of floats, and those of integers."""
