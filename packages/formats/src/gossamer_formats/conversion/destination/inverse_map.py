"""The inverse of a format's map: the coordinates along its axes, from logical coordinates.

A map is inverted if it is affine in the coordinates of axes and in elements of index arrays:

* `j` and `j - OFFSETS[d]` are solved for one unknown after the other;
* `io * 4 + ii` is a number whose digits are the coordinates;
* an element of an index array, such as `ROWS[s, r]`, is solved for like a coordinate. The values that occur
  are the contents of the array, and the axes that index it are solved for by their ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gossamer_formats.conversion.destination.known_sizes import KnownSizes
from gossamer_ir.analysis.axes.logical_elements import map_results, map_vars
from gossamer_ir.arith.affine import Affine, affine_of, expr_of, scale
from gossamer_ir.core.build import ONE, add, binary, floordiv, index, index_var, mul, sub
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Cast, Expr, FormatDescription, Load, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_support.items_by_name import items_by_name


class Solved(NamedTuple):
    """An expression of the logical coordinates `l0`, `l1`, ...; `extent` is the number of its values 0, 1,
    ..., None if they are not known to be in a range."""

    value: Expr
    extent: int | None


class InverseMap(NamedTuple):
    """Coordinates of axes by the variable of the map, and the contents of index arrays by their loads.

    `reaches_all`: the map leads back to all logical coordinates, if the axes are long enough. Otherwise, it
    may have gaps, or its results depend on each other.
    """

    coordinates: dict[str, Solved]
    contents: dict[Load, Solved]
    reaches_all: bool


def logical_var(dimension: int) -> Var:
    """Return the variable of a logical coordinate."""
    return index_var(f"l{dimension}")


def dimension_of(var: Var) -> int:
    """Return the logical dimension of a variable.

    >>> dimension_of(logical_var(2))
    2
    """
    return int(var.name.removeprefix("l"))


def dimensions_of(value: Expr) -> frozenset[int]:
    """Return the logical dimensions on which an expression depends."""
    return frozenset(int(name.removeprefix("l")) for name in free_vars(value))


def require_map_sizes(description: FormatDescription, sizes: KnownSizes) -> None:
    """Raise `FormatError` (`format.parameter.missing`) if a size in the results of the map is not known."""
    for name in sorted(free_vars(*map_results(description)) - set(map_vars(description))):
        sizes.require(name)


def inverse_map(
    description: FormatDescription, sizes: Mapping[str, int], shape: Sequence[int]
) -> InverseMap:
    """Return the inverse of the map for a tensor of a shape; the identity if there is no map.

    Sizes that are not known yet may occur in the lengths of axes, but not in the map. Raises
    `UnsupportedError` (`format.inverse`).

    >>> from gossamer_formats.descriptions.dia import dia
    >>> from gossamer_ir.script import print_expr
    >>> inverse = inverse_map(dia(), {"m": 3, "n": 4}, (3, 4))
    >>> {load.buffer: print_expr(solved.value) for load, solved in inverse.contents.items()}
    {'OFFSETS': 'l1 - l0'}
    """
    axes = items_by_name(description.axes)
    lengths = [with_sizes(axes[name].length, sizes) for name in description.buffer.axes]
    # An axis of one element comes last: it has the lowest digit, which is 0.
    ranks = [rank + len(axes) * (length == ONE) for rank, length in enumerate(lengths)]
    vars: list[Expr] = [index_var(name) for name in map_vars(description)]
    order = dict(zip(vars, ranks, strict=True))
    equations = [
        _Equation(
            affine_of(with_sizes(result, sizes)),
            Solved(logical_var(dimension), shape[dimension]),
            order,
        )
        for dimension, result in enumerate(map_results(description))
    ]
    return _solve(description, equations)


class _Equation(NamedTuple):
    """form == logical.value; `order` ranks the variables of the map, the highest digit first."""

    form: Affine
    logical: Solved
    order: Mapping[Expr, int]


def with_sizes(expr: Expr, sizes: Mapping[str, int]) -> Expr:
    """Return an expression with the values of sizes in place of their names."""

    def rule(node: Expr) -> Expr | None:
        return index(sizes[node.name]) if isinstance(node, Var) and node.name in sizes else None

    result: Expr = rewrite(expr, rule)
    return result


def _solve(description: FormatDescription, equations: list[_Equation]) -> InverseMap:
    solved: dict[Expr, Solved] = {}
    reaches_all = True
    waiting = list(equations)
    while waiting:
        # Equations with one unknown first: digits are taken apart only where nothing else determines them.
        for equation in sorted(waiting, key=lambda equation: len(_unknowns(equation, solved))):
            solutions = _solutions(equation, solved)
            if solutions is not None:
                unknowns = _unknowns(equation, solved)
                reaches_all &= bool(unknowns) and abs(unknowns[-1][1]) == 1
                solved |= solutions
                waiting.remove(equation)
                break
        else:
            raise UnsupportedError(
                "format.inverse",
                f"The map of the format '{description.name}' cannot be inverted; expected results that are "
                "affine in the coordinates and in elements of index arrays, and determine them.",
            )
    coordinates = {atom.name: value for atom, value in solved.items() if isinstance(atom, Var)}
    contents = {
        load: value for atom, value in solved.items() if (load := _load_of(atom)) is not None
    }
    return InverseMap(coordinates, contents, reaches_all)


# Other expressions: nothing is concluded from them.
def _load_of(atom: Expr) -> Load | None:
    value = atom.value if isinstance(atom, Cast) else atom
    return value if isinstance(value, Load) else None


def _unknowns(equation: _Equation, solved: Mapping[Expr, Solved]) -> list[tuple[Expr, int]]:
    """Return the unknown atoms with their coefficients, the largest first.

    Equal coefficients (of a block with one row) are in the order of the axes; a loaded number is after the
    last of its indices whose axis has several elements.
    """
    order = equation.order

    def rank(atom: Expr) -> tuple[int, bool]:
        if isinstance(atom, Var):
            return order.get(atom, 2 * len(order)), False
        ranks = [order.get(index_var(name), 2 * len(order)) for name in free_vars(atom)]
        several = [place for place in ranks if place < len(order)]
        return max(several, default=2 * len(order)), True

    terms = [term for term in equation.form.terms.items() if term[0] not in solved]
    return sorted(terms, key=lambda term: (-term[1], rank(term[0])))


def _solutions(equation: _Equation, solved: Mapping[Expr, Solved]) -> dict[Expr, Solved] | None:
    unknowns = _unknowns(equation, solved)
    if any(not isinstance(atom, Var) and _load_of(atom) is None for atom, _ in unknowns):
        return None
    remainder = _remainder(equation, solved)
    if len(unknowns) == 1 and unknowns[0][1] in (1, -1):
        atom, coefficient = unknowns[0]
        value = expr_of(scale(affine_of(remainder.value), coefficient))
        return {atom: Solved(value, remainder.extent if coefficient == 1 else None)}
    if any(coefficient <= 0 for _, coefficient in unknowns):
        return None
    return _digits(unknowns, remainder)


def _remainder(equation: _Equation, solved: Mapping[Expr, Solved]) -> Solved:
    """Return the logical coordinate minus the constant and the terms that are known."""
    solved_terms = [term for term in equation.form.terms.items() if term[0] in solved]
    value = equation.logical.value
    for atom, coefficient in solved_terms:
        value = sub(value, mul(solved[atom].value, index(coefficient)))
    value = add(value, index(-equation.form.constant))
    return Solved(value, _extent_of_remainder(equation, solved))


def _extent_of_remainder(equation: _Equation, solved: Mapping[Expr, Solved]) -> int | None:
    """Return the number of values from 0 on that a remainder may have; None if it may be negative."""
    least, extent = -equation.form.constant, equation.logical.extent
    if extent is None:
        return None
    extent += least
    for atom, coefficient in equation.form.terms.items():
        if atom not in solved:
            continue
        count = solved[atom].extent
        if count is None:
            return None
        least -= max(coefficient, 0) * (count - 1)
        extent += max(-coefficient, 0) * (count - 1)
    return extent if least >= 0 else None


def _digits(unknowns: list[tuple[Expr, int]], remainder: Solved) -> dict[Expr, Solved]:
    """Return the digits of a number, whose factors are the coefficients of the unknowns."""
    digits: dict[Expr, Solved] = {}
    value, extent = remainder
    for atom, coefficient in unknowns:
        count = None if extent is None else -(-extent // coefficient)
        digits[atom] = Solved(floordiv(value, index(coefficient)), count)
        value, extent = binary("floormod", value, index(coefficient)), coefficient
    return digits
