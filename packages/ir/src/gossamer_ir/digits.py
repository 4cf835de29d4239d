"""Index forms as numbers in a mixed radix whose digits are loops: `128 * k_0 + 16 * k_1 + k_2`.

From an index whose digits do not overlap every loop can be told; and an index that has all digits
from the lowest on visits a whole range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

from gossamer_ir.build import ONE, add, ceildiv, floordiv, integer_value, sub, without_guard
from gossamer_ir.linear import (
    NOTHING,
    UNIT,
    Form,
    Product,
    is_multiple,
    product_of,
    scaled,
    times,
    to_expr,
)
from gossamer_ir.loops import Loops
from gossamer_ir.nodes import Binary, Expr, For, VScale

_WORD = 1 << 64
"""Machine integers that are as far apart are equal."""

Digit: TypeAlias = tuple[Product, Product]
"""A loop's coefficient and its extent."""

Key: TypeAlias = tuple[Product, frozenset[tuple[str, Product]], frozenset[tuple[Expr, int]], int]


def digit_key(form: Form, loop: str, *, loops: Loops, varying: Set[str]) -> Key | None:
    """How the form determines the loop, None where it does not.

    Accesses with one key touch different elements in different iterations of the loop, whatever the
    other `varying` loops are; loops that do not vary are part of the key.
    """
    if loop not in form.terms or form.opaque & varying:
        return None
    coefficient = form.terms[loop]
    if coefficient[0] < 0:  # counted backwards
        key = digit_key(scaled(form, (-1, ())), loop, loops=loops, varying=varying)
        return None if key is None else (coefficient, *key[1:])
    radix = times(coefficient, product_of(loops[loop].extent))
    low: list[Digit] = []
    for name in form.terms.keys() & varying - {loop}:
        digit = (form.terms[name], product_of(loops[name].extent))
        if integer_value(loops[name].start) != 0:
            return None
        if not (is_multiple(digit[0], radix) and integer_value(loops[loop].start) == 0):
            low.append(digit)
    if not _is_positive(coefficient, low) or not fits(low, coefficient):
        return None
    if span(form, varying, loops=loops) >= _WORD:
        return None
    fixed = frozenset(item for item in form.terms.items() if item[0] not in varying)
    return (coefficient, fixed, frozenset(form.base.terms.items()), form.base.constant)


def span(form: Form, varying: Set[str], *, loops: Loops) -> int:
    """A bound of the difference of two values of a form, as its `varying` loops run. Below 2^64, machine
    integers, which wrap, differ where the values do."""
    counts = (
        times(product, product_of(without_guard(loops[name].extent)))
        for name, product in form.terms.items()
        if name in varying
    )
    return sum(
        abs(count) * (loops.magnitudes.of_product(atoms) if atoms else 1) for count, atoms in counts
    )


def is_positive(product: Product) -> bool:
    """Whether a product is a positive constant or a multiple of vscale."""
    return product[0] > 0 and all(isinstance(atom, VScale) for atom in product[1])


def _is_positive(coefficient: Product, low: list[Digit]) -> bool:
    """Whether a coefficient is positive wherever the loops of the lower digits are not empty."""
    known = {atom for _, extent in low for atom in extent[1]}
    left = tuple(atom for atom in coefficient[1] if atom not in known)
    return is_positive((coefficient[0], left))


def fits(low: list[Digit], below: Product) -> bool:
    """Whether the sum of the digits is always less than `below`."""
    if not low:
        return True
    if any(coefficient[0] <= 0 for coefficient, _ in low):
        return False
    if not below[1] and all(not c[1] and not extent[1] for c, extent in low):
        return sum(c[0] * max(extent[0] - 1, 0) for c, extent in low) < below[0]
    for position, (coefficient, extent) in enumerate(low):
        rest = low[:position] + low[position + 1 :]
        if is_multiple(below, times(coefficient, extent)) and fits(rest, coefficient):
            return True
    return False


def ascending(form: Form, *, loops: Mapping[str, For]) -> tuple[str, ...] | None:
    """The loops of a form from the lowest digit up, None unless the digits are gapless and the
    form is nothing but digits."""
    if form.base != NOTHING or form.opaque:
        return None
    expected, left, order = UNIT, dict(form.terms), []
    while left:
        found = [name for name, product in left.items() if product == expected]
        # A loop of one iteration has the coefficient of the digit above it.
        found.sort(key=lambda name: integer_value(loops[name].extent) != 1)
        if not found or integer_value(loops[found[0]].start) != 0:
            return None
        name = found[0]
        order.append(name)
        del left[name]
        expected = times(expected, product_of(loops[name].extent))
    return tuple(order)


def several(order: Sequence[str], *, loops: Mapping[str, For]) -> tuple[str, ...]:
    """Some loops without those of one iteration, which add nothing to a form that is nothing but digits."""
    return tuple(name for name in order if integer_value(loops[name].extent) != 1)


def is_covering(form: Form, extent: Expr, *, loops: Mapping[str, For]) -> bool:
    """Whether the form takes all values in [0, extent) (and maybe larger ones)."""
    every = ascending(form, loops=loops)
    if every is None:
        return False
    order = several(every, loops=loops)
    if not order:
        return integer_value(extent) == 1
    top = order[-1]
    if not all(is_positive(product_of(loops[name].extent)) for name in order[:-1]):
        return False
    return _reaches(without_guard(loops[top].extent), form.terms[top], without_guard(extent))


def _reaches(count: Expr, step: Product, extent: Expr) -> bool:
    """Whether count * step >= extent, by the form of count."""
    if step == UNIT and count == extent:
        return True
    number, bound = integer_value(count), integer_value(extent)
    if number is not None and bound is not None:
        return number * step[0] >= bound
    whole, part = product_of(count), product_of(extent)
    if is_multiple(whole, part) and is_positive(quotient(whole, part)):
        return True
    if isinstance(count, Binary) and count.op == "floordiv" and isinstance(count.lhs, Binary):
        divisor = product_of(count.rhs)
        inner = count.lhs.lhs
        if count == ceildiv_by(inner, divisor) and is_multiple(step, divisor):
            return _reaches(without_guard(inner), quotient(step, divisor), extent)
    return False


def quotient(product: Product, divisor: Product) -> Product:
    """A product over one that it is a multiple of."""
    atoms = list(product[1])
    for atom in divisor[1]:
        atoms.remove(atom)
    return (product[0] // divisor[0], tuple(atoms))


def ceildiv_by(extent: Expr, divisor: Product) -> Expr:
    """Extent over a positive divisor, rounded up."""
    if divisor == UNIT:
        return extent
    if not divisor[1]:
        return ceildiv(extent, divisor[0])
    whole = to_expr(divisor)
    return floordiv(add(extent, sub(whole, ONE)), whole)
