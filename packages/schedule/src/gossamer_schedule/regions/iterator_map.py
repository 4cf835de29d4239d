"""Index maps that are proved one to one from their mixed-radix digits.

A digit of an index is `i`, `i // c`, `i % d` or `i // c % d`. A map is one to one if the digits of each index
determine it, and if each digit occurs once, in one result, where the digits leave no gaps. The map is onto
if the extents are multiples of the divisors; otherwise some elements of the new buffer are unused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gossamer_ir.arith.affine import (
    ZERO_FORM,
    Affine,
    affine_of,
    combine,
    factors_of,
    product_of,
    quotient,
)
from gossamer_ir.core.build import (
    ONE,
    ZERO,
    add,
    binary,
    floordiv,
    index,
    integer_value,
    mul,
    product,
)
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.dependence.mixed_radix import Digit, ceildiv_by, count_of_values, names_if_gapless
from gossamer_ir.nodes import Binary, Expr, IndexMap, Unary, Var
from gossamer_schedule.predicates.block_predicates import less_than


class IndexDigit(msgspec.Struct, frozen=True):
    """The digit `var // divisor % modulus`; without a modulus, `var // divisor`."""

    var: str
    divisor: int
    modulus: int | None


class MappedDigit(msgspec.Struct, frozen=True):
    """A digit of an index, and the digit of a result that it becomes."""

    source: IndexDigit
    result: int
    digit: Digit


class BufferLayout(msgspec.Struct, frozen=True):
    """A one-to-one map: the extents of its results, and where it puts each digit."""

    map: IndexMap
    extents: tuple[Expr, ...]
    mapped_digits: tuple[MappedDigit, ...]
    padded: Mapping[str, Expr]
    """The extents of the variables that leave elements of the new buffer unused."""

    def at(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the indices of an element in the new buffer."""
        values = dict(zip(self.map.vars, indices, strict=True))
        return tuple(_simplify_at(result, values) for result in self.map.results)

    @property
    def unsafe_dimensions(self) -> tuple[int, ...]:
        """The dimensions in which an index out of bounds may become in bounds of the new buffer.

        An index stays out of bounds if its digit without a modulus is the leading one of a result and no
        elements are unused.
        """
        return tuple(
            number
            for number, var in enumerate(self.map.vars)
            if var in self.padded or not self._is_leading(var)
        )

    def _is_leading(self, var_name: str) -> bool:
        """Return whether the leading digit of an index is also the leading digit of a result.

        The result is then out of bounds if the index is.
        """
        leading = [
            mapped
            for mapped in self.mapped_digits
            if mapped.source.var == var_name and mapped.source.modulus is None
        ]
        return bool(leading) and all(map(self._is_leading_in_result, leading))

    def _is_leading_in_result(self, mapped: MappedDigit) -> bool:
        """Return whether a digit is the leading one of its result."""
        return mapped.digit.radix == affine_of(self.extents[mapped.result])

    def unused_condition(self, indices: Sequence[Expr]) -> Expr | None:
        """Return the condition under which new indices belong to no old element; None if all do."""
        inside = (
            less_than(self._index(name, indices), extent) for name, extent in self.padded.items()
        )
        condition = conjunction(*inside)
        return None if condition is None else Unary("not", condition)

    def _index(self, var_name: str, indices: Sequence[Expr]) -> Expr:
        """Return one old index of the element at new indices."""
        total: Expr = ZERO
        for mapped in self.mapped_digits:
            if mapped.source.var == var_name:
                by = product_of(mapped.digit.coefficient)
                value = floordiv(indices[mapped.result], by)
                if not self._is_leading_in_result(mapped):
                    value = Binary("floormod", value, mapped.digit.extent)
                total = add(total, mul(value, index(mapped.source.divisor)))
        return total


def layout_of(index_map: IndexMap, shape: Sequence[Expr]) -> BufferLayout | None:
    """Return the layout of a buffer of a shape under a map; None unless it is proved one to one."""
    extents = dict(zip(index_map.vars, shape, strict=True))
    mapped_digits: list[MappedDigit] = []
    sizes: list[Expr] = []
    for result, expr in enumerate(index_map.results):
        terms = _digit_terms(expr, index_map.vars) or {}
        digits = {split: Digit(by, _digit_extent(split, extents)) for split, by in terms.items()}
        order = names_if_gapless(digits)
        if not order:
            return None
        mapped_digits += (MappedDigit(split, result, digits[split]) for split in order)
        sizes.append(product_of(count_of_values(digits.values())))
    if not all(_is_determined(var, extents[var], mapped_digits) for var in index_map.vars):
        return None
    padded = {
        var: extent for var, extent in extents.items() if not _is_exact(var, extent, mapped_digits)
    }
    return BufferLayout(index_map, tuple(sizes), tuple(mapped_digits), padded)


def _digit_terms(expr: Expr, names: Sequence[str]) -> dict[IndexDigit, Affine] | None:
    """Return the digits that an expression sums, with their coefficients; None if it is not such a sum."""
    form = affine_of(expr)
    terms: dict[IndexDigit, Affine] = {}
    for atom, count in form.terms.items():
        factors = [(_digit_of(factor, names), factor) for factor in factors_of(atom)]
        splits = [split for split, _ in factors if split is not None]
        # A product of two indices is not a digit.
        if len(splits) != 1:
            return None
        by = affine_of(product(factor for split, factor in factors if split is None))
        terms[splits[0]] = combine(terms.get(splits[0], ZERO_FORM), by, count)
    # A constant would leave the first slots of the new buffer unused.
    return None if form.constant else terms


# Other operations: nothing is concluded from them.
def _digit_of(expr: Expr, names: Sequence[str]) -> IndexDigit | None:
    """Return the digit of an index that an expression is, else None."""
    if isinstance(expr, Var):
        return IndexDigit(expr.name, 1, None) if expr.name in names else None
    if not isinstance(expr, Binary) or expr.op not in ("floordiv", "floormod"):
        return None
    inner, divisor = _digit_of(expr.lhs, names), integer_value(expr.rhs)
    if inner is None or divisor is None or divisor < 1:
        return None
    # i % 6 // 4 has digits of unequal sizes: 0 to 3, then 4 and 5.
    if inner.modulus is not None and inner.modulus % divisor:
        return None
    if expr.op == "floormod":
        return IndexDigit(inner.var, inner.divisor, divisor)
    modulus = None if inner.modulus is None else inner.modulus // divisor
    return IndexDigit(inner.var, inner.divisor * divisor, modulus)


def _digit_extent(split: IndexDigit, extents: Mapping[str, Expr]) -> Expr:
    """Return the number of values of a digit."""
    if split.modulus is not None:
        return index(split.modulus)
    return ceildiv_by(extents[split.var], Affine({}, split.divisor))


def _is_determined(var_name: str, extent: Expr, mapped_digits: Sequence[MappedDigit]) -> bool:
    """Return whether the digits of a variable determine its value: they leave no gaps, and the highest,
    and no other, has no modulus."""
    var_digits = [mapped for mapped in mapped_digits if mapped.source.var == var_name]
    digits = {
        mapped.source: Digit(Affine({}, mapped.source.divisor), mapped.digit.extent)
        for mapped in var_digits
    }
    # A digit that occurs twice would use each element several times.
    order = names_if_gapless(digits) if len(digits) == len(var_digits) else None
    if not order:
        return extent == ONE and not var_digits
    return [split for split in order if split.modulus is None] == [order[-1]]


def _is_exact(var_name: str, extent: Expr, mapped_digits: Sequence[MappedDigit]) -> bool:
    """Return whether the extent of a variable is a multiple of its largest divisor."""
    divisors = [mapped.source.divisor for mapped in mapped_digits if mapped.source.var == var_name]
    return quotient(affine_of(extent), Affine({}, max(divisors, default=1))) is not None


def _simplify_at(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return an expression at values of its variables, simplified."""
    if isinstance(expr, Var):
        return values.get(expr.name, expr)
    if isinstance(expr, Binary):
        return binary(expr.op, _simplify_at(expr.lhs, values), _simplify_at(expr.rhs, values))
    return expr
