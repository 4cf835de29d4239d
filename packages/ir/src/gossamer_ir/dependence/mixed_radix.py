"""Index forms as mixed-radix numbers whose digits are loop variables: `128 * k_0 + 16 * k_1 + k_2`.

If the digits do not overlap, the index determines every loop variable (it is injective). If there are also
no gaps between digits, the index takes every value of a range (it is surjective).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import reduce
from typing import TypeAlias, TypeVar

import msgspec

from gossamer_ir.analysis.accesses.linear_form import LinearForm
from gossamer_ir.analysis.bounds.loops_by_name import LoopsByName
from gossamer_ir.arith.affine import (
    ONE_FORM,
    ZERO_FORM,
    Affine,
    affine_of,
    expr_of,
    factor_affine,
    factors_of,
    product_of,
    quotient,
    scale,
    times,
    vscale_coefficient,
)
from gossamer_ir.core.build import (
    ONE,
    ZERO,
    add,
    ceildiv,
    floordiv,
    index_var,
    integer_value,
    mul,
    sub,
    unconditional_extent,
)
from gossamer_ir.nodes import Binary, Expr, For, VScale

_WORD = 1 << 64
"""The number of machine integers: values that differ by a multiple of it are equal."""


class Digit(msgspec.Struct, frozen=True):
    """A digit of a number: its place value (`coefficient`) and its number of values (`extent`)."""

    coefficient: Affine
    extent: Expr

    @property
    def radix(self) -> Affine:
        """The place value of the next digit if there is no gap."""
        return times(self.coefficient, affine_of(self.extent))


Key: TypeAlias = tuple[Affine, frozenset[tuple[str, Affine]], Affine]
_Name = TypeVar("_Name")


def names_if_gapless(digits: Mapping[_Name, Digit]) -> tuple[_Name, ...] | None:
    """Return the names of digits in ascending order; None unless the lowest place value is 1, and each other
    place value is the number of values of the digits below it.

    >>> from gossamer_ir.core.build import index
    >>> names_if_gapless({"high": Digit(Affine({}, 8), index(3)), "low": Digit(ONE_FORM, index(8))})
    ('low', 'high')
    >>> names_if_gapless({"high": Digit(Affine({}, 9), index(3)), "low": Digit(ONE_FORM, index(8))})
    """
    expected, left, order = ONE_FORM, dict(digits), list[_Name]()
    while left:
        names = [name for name, digit in left.items() if digit.coefficient == expected]
        # A digit with one value has the same place value as the next digit, and must come before it.
        names.sort(key=lambda name: integer_value(left[name].extent) != 1)
        if not names:
            return None
        order.append(names[0])
        digit = left.pop(names[0])
        if left:
            expected = digit.radix
    return tuple(order)


def digits_from_counts(extents: Sequence[Expr]) -> tuple[Digit, ...]:
    """Return the digits without gaps that have these numbers of values, highest first.

    >>> from gossamer_ir.core.build import index
    >>> [digit.coefficient.constant for digit in digits_from_counts([index(3), index(4), index(8)])]
    [32, 8, 1]
    """
    digits: list[Digit] = []
    for extent in reversed(extents):
        digits.append(Digit(digits[-1].radix if digits else ONE_FORM, extent))
    return tuple(reversed(digits))


def count_of_values(digits: Iterable[Digit]) -> Affine:
    """Return the number of values of a number with these digits."""
    return reduce(times, (affine_of(digit.extent) for digit in digits), ONE_FORM)


def digits_of(form: LinearForm, names: Set[str], *, loops: Mapping[str, For]) -> dict[str, Digit]:
    """Return the terms of a form in some loops, as digits."""
    return {name: Digit(by, loops[name].extent) for name, by in form.terms.items() if name in names}


def injectivity_key(
    form: LinearForm, loop_name: str, *, loops: LoopsByName, varying: Set[str]
) -> Key | None:
    """Return a key that describes how the form determines the iteration of a loop; None if it does not.

    Accesses with equal keys access different elements in different iterations of the loop, for all values of
    the other `varying` loops. Loops that do not vary are part of the key.
    """
    if loop_name not in form.terms or form.opaque & varying:
        return None
    digits = digits_of(form, varying | {loop_name}, loops=loops)
    # The other digits must be below the loop's place value or multiples of the place value above it.
    loop_digit = digits.pop(loop_name)
    if _is_negative(loop_digit.coefficient):  # the loop counts backwards: negate the whole number
        loop_digit, digits = (
            _negated_digit(loop_digit),
            {name: _negated_digit(digit) for name, digit in digits.items()},
        )
    low: list[Digit] = []
    for name, digit in digits.items():
        if integer_value(loops[name].start) != 0:
            return None
        is_above = quotient(digit.coefficient, loop_digit.radix) is not None
        # Digits above need the loop's own digit to start at 0, or it might carry into them.
        if not (is_above and integer_value(loops[loop_name].start) == 0):
            low.append(digit)
    if not _is_positive_if_nonempty(loop_digit.coefficient, low) or not digits_fit(
        low, loop_digit.coefficient
    ):
        return None
    # The fifth multiple of 2**62 is 2**64, which wraps to 0: distinct numbers, but one element.
    if value_span(form, varying, loops=loops) >= _WORD:
        return None
    # Accesses that differ in an outer, fixed loop are of different elements in the same iteration already.
    fixed = frozenset(item for item in form.terms.items() if item[0] not in varying)
    return (form.terms[loop_name], fixed, form.base)


def _is_negative(coefficient: Affine) -> bool:
    return coefficient.constant < 0 if not coefficient.terms else factor_affine(coefficient)[0] < 0


def _negated_digit(digit: Digit) -> Digit:
    return Digit(scale(digit.coefficient, -1), digit.extent)


def value_span(form: LinearForm, varying: Set[str], *, loops: LoopsByName) -> int:
    """Return a bound of the difference of two values of a form over all iterations of the `varying` loops. If
    it is below 2**64, different values are different machine integers."""
    digits = digits_of(form, varying, loops=loops)
    extents = [unconditional_extent(digit.extent) for digit in digits.values()]
    whole = 0
    for digit, extent in zip(digits.values(), extents, strict=True):
        count, factors = _factor_by_extents(digit.coefficient, extents)
        # A constant extent with symbolic factors is bounded as a product:
        # the factors may be sizes of one array.
        values = integer_value(extent)
        if values is None or factors:
            values = loops.overflow.product_bound((*factors, *factors_of(extent)))
        whole += abs(count * values)
    return whole


def is_positive(form: Affine) -> bool:
    """Return whether a form is a positive constant or a positive multiple of vscale."""
    return (vscale_coefficient(form) or 0) > 0


def _is_positive_if_nonempty(coefficient: Affine, low: list[Digit]) -> bool:
    """Return whether a coefficient is positive provided that the loops of the lower digits are not empty."""
    if not coefficient.terms:
        return coefficient.constant > 0
    extents = [digit.extent for digit in low]
    count, factors = _factor_by_extents(coefficient, extents)
    nonnegative = {factor for extent in extents for factor in factors_of(extent)}
    return count > 0 and all(
        factor in nonnegative or isinstance(factor, VScale) for factor in factors
    )


def _factor_by_extents(form: Affine, extents: Iterable[Expr]) -> tuple[int, tuple[Expr, ...]]:
    """Return a form as an integer times factors, among them the factors of some extents that divide it."""
    if not form.terms:
        return form.constant, ()
    factors = (factor for extent in extents for factor in factors_of(extent))
    return factor_affine(
        form, dict.fromkeys(factor for factor in factors if isinstance(factor, Binary))
    )


def digits_fit(low: list[Digit], below: Affine) -> bool:
    """Return whether the sum of the digits, times their place values, is always less than `below`."""
    if not low:
        return True
    # A negative digit would borrow from the place values above.
    if any(_is_negative(digit.coefficient) for digit in low):
        return False
    sizes = [integer_value(digit.extent) for digit in low]
    # All numbers are known, so the largest sum is compared instead of single digits.
    if below.is_constant and None not in sizes and all(d.coefficient.is_constant for d in low):
        largest = zip(low, sizes, strict=True)
        return below.constant > sum(
            digit.coefficient.constant * max((size or 0) - 1, 0) for digit, size in largest
        )
    # Any digit may be the highest: extents are symbolic, so the digits cannot be sorted by size.
    for number, digit in enumerate(low):
        rest = low[:number] + low[number + 1 :]
        if quotient(below, digit.radix) is not None and digits_fit(rest, digit.coefficient):
            return True
    return False


def loops_in_digit_order(form: LinearForm, *, loops: Mapping[str, For]) -> tuple[str, ...] | None:
    """Return the loops of a form in ascending order of digits; None unless the form consists of digits
    without gaps."""
    if form.base != ZERO_FORM:
        return None
    return lowest_loops(form, form.terms.keys(), loops=loops)


def lowest_loops(
    form: LinearForm, names: Set[str], *, loops: Mapping[str, For]
) -> tuple[str, ...] | None:
    """Return some loops of a form in ascending order of digits; None unless they are digits without gaps of a
    number that is added to a term that does not depend on them."""
    digits = digits_of(form, names, loops=loops)
    order = names_if_gapless(digits)
    if order is None or form.opaque & names:
        return None
    return order if all(integer_value(loops[name].start) == 0 for name in digits) else None


def number_from_digits(digits: Mapping[str, Digit]) -> Expr:
    """Return the number that has variables as its digits."""
    total: Expr = ZERO
    for name, digit in digits.items():
        total = add(total, mul(index_var(name), product_of(digit.coefficient)))
    return total


def split_digits(
    digits: Mapping[str, Digit], divisor: int
) -> tuple[dict[str, Digit], int, dict[str, Digit]] | None:
    """Split digits without gaps (highest first) at a place value that divides `divisor`.

    Returns the digits of the quotient by that place value, the place value, and the digits of the remainder;
    None if no place value but 1 divides it.
    """
    several = list(digits.items())
    for number, (_, digit) in enumerate(several[:-1], start=1):
        span = digit.coefficient
        # Only then does no digit lie on both sides of the cut.
        if span.is_constant and divisor > 0 and span.constant > 0 and divisor % span.constant == 0:
            extents = [outer.extent for _, outer in several[:number]]
            names = [name for name, _ in several[:number]]
            high = dict(zip(names, digits_from_counts(extents), strict=True))
            return high, span.constant, dict(several[number:])
    return None


def without_loop_terms(form: LinearForm, names: Set[str], *, loops: Mapping[str, For]) -> Expr:
    """Return a form without its terms in some loops."""
    others = sorted(form.terms.keys() - names)
    digits = digits_of(form, set(others), loops=loops)
    return add(number_from_digits({name: digits[name] for name in others}), expr_of(form.base))


def loops_that_repeat(order: Sequence[str], *, loops: Mapping[str, For]) -> tuple[str, ...]:
    """Return some loops without those of a single iteration: their variable is 0, so they contribute
    nothing."""
    return tuple(name for name in order if integer_value(loops[name].extent) != 1)


def is_covering(form: LinearForm, extent: Expr, *, loops: Mapping[str, For]) -> bool:
    """Return whether a form takes all values in [0, extent), and possibly greater ones."""
    every = loops_in_digit_order(form, loops=loops)
    if every is None:
        return False
    order = loops_that_repeat(every, loops=loops)
    if not order:
        return integer_value(extent) == 1
    top = order[-1]
    # An empty inner loop would make the whole nest empty, and nothing would be covered.
    if not all(is_positive(affine_of(loops[name].extent)) for name in order[:-1]):
        return False
    return _is_at_least(
        unconditional_extent(loops[top].extent), form.terms[top], unconditional_extent(extent)
    )


def _is_at_least(count: Expr, step: Affine, extent: Expr) -> bool:
    """Return whether count * step >= extent, for constants, multiples, and a count that is a rounded-up
    quotient."""
    if step == ONE_FORM and count == extent:
        return True
    number, bound = integer_value(count), integer_value(extent)
    if number is not None and bound is not None:
        return number * factor_affine(step)[0] >= bound
    multiple = quotient(affine_of(count), affine_of(extent))
    if multiple is not None and is_positive(multiple):
        return True
    if isinstance(count, Binary) and count.op == "floordiv" and isinstance(count.lhs, Binary):
        divisor, inner = affine_of(count.rhs), count.lhs.lhs
        fewer = quotient(step, divisor)
        if fewer is not None and count == ceildiv_by(inner, divisor):
            return _is_at_least(unconditional_extent(inner), fewer, extent)
    return False


def ceildiv_by(extent: Expr, divisor: Affine) -> Expr:
    """Return the quotient of an extent by a positive divisor, rounded up."""
    if divisor == ONE_FORM:
        return extent
    if divisor.is_constant:
        return ceildiv(extent, divisor.constant)
    whole = product_of(divisor)
    return floordiv(add(extent, sub(whole, ONE)), whole)


def ceildiv_in_range(extent: Expr, divisor: Affine) -> Expr:
    """Return the quotient of an extent by a positive divisor, rounded up, without a sum that may wrap around.

    n // 8 + min(n % 8, 1) never exceeds n, unlike (n + 7) // 8 for the largest n.
    """
    by = product_of(divisor)
    return add(floordiv(extent, by), Binary("min", Binary("floormod", extent, by), ONE))
