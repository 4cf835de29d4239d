"""Iterations of loops with constant ranges, for which expressions are evaluated one by one.

Threads of a block are a constant number, and their elements are selected by quotients, remainders and bits
of their numbers, as in a layout that is swizzled. No linear form shows that these differ; trying all does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from math import gcd, prod
from typing import Any, TypeAlias

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


def differ_at_points(
    loop_names: Sequence[str],
    indices: Iterable[Expr],
    *,
    points: ConstantPoints,
    conditions: Iterable[Expr] = (),
    equal: Callable[[Expr], bool],
) -> bool:
    """Return whether elements are different wherever one of some loops is in different iterations, by trying
    all `points` at which the conditions hold. `equal` returns whether an expression has one value in all
    iterations that are compared, such as the variable of a loop around these.

    >>> from gossamer_ir.core.build import ZERO, index, index_var
    >>> t = index_var("t")
    >>> points = ConstantPoints([For("t", ZERO, index(8), ())])
    >>> high, low = Binary("floordiv", t, index(2)), Binary("bitand", t, index(1))
    >>> for indices in ([high, low], [high]):
    ...     differ_at_points("t", indices, points=points, equal=lambda expr: False)
    True
    False
    """
    iterations = _without_none(points.values(index_var(name)) for name in loop_names)
    if len(iterations) < len(loop_names):
        return False
    selected = np.ones(points.shape, bool)
    for holds in _without_none(map(points.values, conditions)):
        selected = selected & holds
    columns = _without_none(_varying_part(affine_of(at), points, equal) for at in indices)
    # Where variables differ that are equal, nothing is compared.
    columns += _without_none(
        points.values(var) for var in map(index_var, sorted(points.names)) if equal(var)
    )
    elements = _distinct([np.broadcast_to(column, points.shape)[selected] for column in columns])
    pairs = _distinct(
        [np.broadcast_to(column, points.shape)[selected] for column in (*columns, *iterations)]
    )
    return elements is not None and pairs is not None and pairs <= elements


def _without_none(several: Iterable[PointValues | None]) -> list[PointValues]:
    return [values for values in several if values is not None]


def _varying_part(
    form: Affine, points: ConstantPoints, equal: Callable[[Expr], bool]
) -> PointValues | None:
    """Return numbers that differ only where an index does, by its terms that depend on the points alone.

    Terms that may have any values are multiples of a number, modulo which the others are compared. It is a
    power of two, so that this holds for numbers that wrap around, too.
    """
    terms = form.terms.items()
    varying = {atom: by for atom, by in terms if not free_vars(atom).isdisjoint(points.names)}
    values = points.values(expr_of(Affine(varying, form.constant)))
    modulus = gcd(*(by for atom, by in terms if atom not in varying and not equal(atom)))
    return values if values is None or not modulus else values % (modulus & -modulus)


def _distinct(columns: Sequence[PointValues]) -> int | None:
    """Return the number of different tuples of values; None if they have no number that fits int64."""
    number, radix = np.zeros(1, np.int64), 1
    for column in columns:
        least, most = (int(column.min()), int(column.max())) if column.size else (0, 0)
        number = number + (column - least) * radix
        radix *= most - least + 1
        if radix > MAX_INT64:
            return None
    return len(np.unique(number))
