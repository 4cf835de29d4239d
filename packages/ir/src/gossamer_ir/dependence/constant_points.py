"""Iterations of loops with constant ranges, for which expressions are evaluated one by one.

Threads of a block are a constant number, and their elements are selected by quotients, remainders and bits
of their numbers, as in a layout that is swizzled. No linear form shows that these differ; trying all does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from math import gcd, prod
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from gossamer_ir.analysis.proofs.symbolic_bounds import constants_of
from gossamer_ir.arith.affine import Affine, affine_of, expr_of
from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.integers import MAX_INT64
from gossamer_ir.nodes import Binary, BinaryOp, Compare, CompareOp, Const, Expr, For, Unary, Var
from gossamer_ir.traversal.free_vars import free_vars

PointValues: TypeAlias = npt.NDArray[Any]
Item = TypeVar("Item")

MAX_POINTS = 1 << 16
"""The largest number of iterations that are tried: a millisecond for each index."""

# Other operations: of floats, or left to the prover.
_OPERATIONS: dict[BinaryOp, Callable[[PointValues, PointValues], PointValues]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.logical_and,
    "or": np.logical_or,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
}
# Other operations: of any count.
_BY_CONSTANT: dict[BinaryOp, Callable[[PointValues, PointValues], PointValues]] = {
    "shl": np.left_shift,
    "shr": np.right_shift,
}
_COMPARISONS: dict[CompareOp, Callable[[PointValues, PointValues], PointValues]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


class ConstantPoints:
    """The iterations of those of some loops that have constant ranges, unless they are too many.

    >>> from gossamer_ir.core.build import ZERO, index, index_var
    >>> points = ConstantPoints([For("t", ZERO, index(4), ()), For("i", ZERO, index_var("n"), ())])
    >>> points.values(Binary("bitxor", index_var("t"), index(1))).tolist()
    [1, 0, 3, 2]
    >>> points.values(index_var("i"))
    """

    def __init__(self, loops: Iterable[For]) -> None:
        # A long range would leave no points for the others.
        ranges = {
            loop.var: values
            for loop in loops
            if (values := constants_of(loop)) and len(values) <= MAX_POINTS
        }
        if prod(map(len, ranges.values())) > MAX_POINTS:
            ranges = {}
        grids = np.meshgrid(*ranges.values(), indexing="ij", sparse=True)
        self._vars = dict(zip(ranges, (grid.astype(np.int64) for grid in grids), strict=True))
        self.shape = tuple(map(len, ranges.values()))

    @property
    def names(self) -> Set[str]:
        """The variables of the loops whose iterations these are."""
        return self._vars.keys()

    # Other expressions: they depend on more than the variables.
    def values(self, expr: Expr) -> PointValues | None:
        """Return the values of an integer or bool expression, an array that broadcasts to `shape`; None if it
        is not a function of the variables."""
        if dtype_of(expr) not in ("int64", "bool"):
            return None
        match expr:
            case Var():
                return self._vars.get(expr.name)
            case Const(dtype="int64"):
                return np.asarray(int(expr.text), np.int64)
            case Unary(op="not"):
                return _apply(np.logical_not, self.values(expr.operand))
            case Binary():
                operands = self.values(expr.lhs), self.values(expr.rhs)
                return _apply(_operation(expr), *operands)
            case Compare() if dtype_of(expr.lhs) == "int64":
                operands = self.values(expr.lhs), self.values(expr.rhs)
                return _apply(_COMPARISONS[expr.op], *operands)
        return None


# Other operations: those of the tables.
def _operation(expr: Binary) -> Callable[..., PointValues] | None:
    """Return the function of an operation; None for one that may divide by 0 or shift by too many bits."""
    by = integer_value(expr.rhs)
    if expr.op in _BY_CONSTANT:
        return _BY_CONSTANT[expr.op] if by is not None and 0 <= by < 64 else None
    if expr.op in ("floordiv", "floormod") and not by:
        return None
    return _OPERATIONS.get(expr.op)


def _apply(
    function: Callable[..., PointValues] | None, *operands: PointValues | None
) -> PointValues | None:
    if function is None or any(operand is None for operand in operands):
        return None
    return function(*operands)


class TriedAccess(NamedTuple):
    """An access of which iterations are tried: the `points` at which the conditions hold."""

    indices: Sequence[Expr]
    points: ConstantPoints
    conditions: Sequence[Expr]


def differ_at_points(
    loop_names: Sequence[str],
    accesses: Sequence[TriedAccess],
    *,
    equal: Callable[[Expr], bool],
) -> bool:
    """Return whether elements are different wherever one of some loops is in different iterations, by trying
    all points of the accesses at which their conditions hold. One access is compared with itself, and each of
    several ones with the others.

    `equal` returns whether an expression has one value in all iterations that are compared, such as the
    variable of a loop around these.

    >>> from gossamer_ir.core.build import ZERO, index, index_var
    >>> t = index_var("t")
    >>> points = ConstantPoints([For("t", ZERO, index(8), ())])
    >>> high, low = Binary("floordiv", t, index(2)), Binary("bitand", t, index(1))
    >>> for indices in ([high, low], [high]):
    ...     differ_at_points("t", [TriedAccess(indices, points, ())], equal=lambda expr: False)
    True
    False
    """
    iterations = [_values_in_each(index_var(name), accesses) for name in loop_names]
    if None in iterations:
        return False
    dimensions = zip(*(map(affine_of, access.indices) for access in accesses), strict=True)
    columns = [_varying_parts(forms, accesses, equal) for forms in dimensions]
    # Where variables differ that are equal, nothing is compared.
    names = set[str].intersection(*({*access.points.names} for access in accesses))
    columns += [
        _values_in_each(var, accesses) for var in map(index_var, sorted(names)) if equal(var)
    ]
    elements = _numbers(_without_none(columns), accesses)
    pairs = _numbers(_without_none([*columns, *iterations]), accesses)
    if elements is None or pairs is None:
        return False
    # An element of one access alone, which several iterations may load, is compared with nothing.
    every, uses = np.unique(np.concatenate([*map(np.unique, elements)]), return_counts=True)
    common = every[uses > 1] if len(accesses) > 1 else every
    counted = [
        numbers[np.isin(element, common)] for element, numbers in zip(elements, pairs, strict=True)
    ]
    return len(np.unique(np.concatenate(counted))) <= len(common)


def _values_in_each(expr: Expr, accesses: Iterable[TriedAccess]) -> list[PointValues] | None:
    """Return the values of an expression at the points of each access; None if it has none at some."""
    values = [access.points.values(expr) for access in accesses]
    present = _without_none(values)
    return present if len(present) == len(values) else None


def _without_none(several: Iterable[Item | None]) -> list[Item]:
    return [values for values in several if values is not None]


def _varying_parts(
    forms: Sequence[Affine], accesses: Sequence[TriedAccess], equal: Callable[[Expr], bool]
) -> list[PointValues] | None:
    """Return numbers that differ only where the indices of accesses along one dimension do, by their terms
    that depend on the points alone.

    Terms that may have any values are multiples of a number, modulo which the others are compared. It is a
    power of two, so that this holds for numbers that wrap around, too.
    """
    rest = [
        {
            atom: by
            for atom, by in form.terms.items()
            if free_vars(atom).isdisjoint(access.points.names)
        }
        for form, access in zip(forms, accesses, strict=True)
    ]
    # Terms that have one value in all accesses make no difference.
    common = {
        atom
        for atom, by in rest[0].items()
        if equal(atom) and all(terms.get(atom) == by for terms in rest)
    }
    modulus = gcd(*(by for terms in rest for atom, by in terms.items() if atom not in common))
    parts: list[PointValues] = []
    for form, terms, access in zip(forms, rest, accesses, strict=True):
        varying = {atom: by for atom, by in form.terms.items() if atom not in terms}
        values = access.points.values(expr_of(Affine(varying, form.constant)))
        if values is None:
            return None
        parts.append(values if not modulus else values % (modulus & -modulus))
    return parts


def _numbers(
    columns: Sequence[Sequence[PointValues]], accesses: Sequence[TriedAccess]
) -> list[PointValues] | None:
    """Return a number for each tuple of values at a point of each access; None if one does not fit int64."""
    selected = [_selected_points(access) for access in accesses]
    numbers: list[PointValues] = [
        np.zeros(int(np.count_nonzero(points)), np.int64) for points in selected
    ]
    radix = 1
    for column in columns:
        parts = [
            np.broadcast_to(values, points.shape)[points].astype(np.int64)
            for values, points in zip(column, selected, strict=True)
        ]
        every = np.concatenate(parts)
        least, most = (int(every.min()), int(every.max())) if every.size else (0, 0)
        numbers = [
            number + (values - least) * radix for number, values in zip(numbers, parts, strict=True)
        ]
        radix *= most - least + 1
        if radix > MAX_INT64:
            return None
    return numbers


def _selected_points(access: TriedAccess) -> PointValues:
    """Return whether the conditions of an access hold, at each of its points."""
    selected = np.ones(access.points.shape, bool)
    for holds in _without_none(map(access.points.values, access.conditions)):
        selected = selected & holds
    return selected
