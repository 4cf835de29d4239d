"""Affine forms have the value of their expression for all variables; mixed-radix digits separate loops."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from gossamer_ir.analysis.accesses.linear_form import by_vars, form_of
from gossamer_ir.analysis.bounds.loops_by_name import LoopsByName
from gossamer_ir.arith.affine import (
    ONE_FORM,
    ZERO_FORM,
    Affine,
    affine_of,
    combine,
    expr_of,
    factor_affine,
    product_of,
    quotient,
    times,
)
from gossamer_ir.arith.inequalities import slack_of
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, integer_value, mul, product
from gossamer_ir.dependence.mixed_radix import (
    digits_from_counts,
    injectivity_key,
    is_covering,
    loops_in_digit_order,
    number_from_digits,
    split_digits,
)
from gossamer_ir.nodes import Binary, Compare, For, Function
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute

NAMES = "ijmn"
VARS = dict(zip(NAMES, map(index_var, NAMES), strict=True))


def value_of(expr, point):
    values = {name: index(value) for name, value in point.items()}
    return integer_value(simplify(substitute(expr, values)))


def points(random, count=4):
    return [{name: random.randint(-7, 7) for name in NAMES} for _ in range(count)]


def drawn(random, depth=3):
    if depth == 0 or random.random() < 0.2:
        return random.choice([*VARS.values(), index(random.randint(-3, 4))])
    sides = drawn(random, depth - 1), drawn(random, depth - 1)
    return Binary(random.choice(["add", "sub", "mul", "mul"]), *sides)


@pytest.mark.parametrize("seed", range(30))
def test_products_and_quotients_undo_each_other(seed):
    random = Random(seed)
    first, second = (affine_of(drawn(random, 2)) for _ in range(2))
    whole = times(first, second)
    for point in points(random):
        values = [value_of(expr_of(form), point) for form in (first, second, whole)]
        assert values[0] * values[1] == values[2]
    if second != ZERO_FORM:
        assert quotient(whole, second) == first
    count, factors = factor_affine(whole, (expr_of(second),))
    assert affine_of(product((index(count), *factors))) == whole
    assert affine_of(product_of(whole)) == whole


def test_what_is_not_a_multiple_has_no_quotient():
    m, n = (affine_of(VARS[name]) for name in "mn")
    rows = combine(m, ONE_FORM, 1)
    for form, by in [
        (times(rows, n), combine(n, ONE_FORM, 1)),
        (m, n),
        (ONE_FORM, m),
        (m, ZERO_FORM),
    ]:
        assert quotient(form, by) is None
    assert quotient(Affine({}, 7), Affine({}, 2)) is None
    assert quotient(ZERO_FORM, rows) == ZERO_FORM


@pytest.mark.parametrize("seed", range(30))
def test_forms_by_variables_are_what_they_are_made_of(seed):
    random = Random(seed)
    expr = drawn(random)
    form = by_vars(affine_of(expr), {"i", "j"})
    for point in points(random):
        total = value_of(expr_of(form.base), point)
        for name, step in form.terms.items():
            total += point[name] * value_of(expr_of(step), point)
        assert total == value_of(expr, point)
    assert form.opaque == free_vars(*form.base.terms) & {"i", "j"}
    assert all(free_vars(*step.terms).isdisjoint("ij") for step in form.terms.values())


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_the_slack_is_not_negative_where_a_condition_holds(op):
    random = Random(op)
    for _ in range(20):
        condition = Compare(op, drawn(random, 2), drawn(random, 2))
        slack = slack_of(condition)
        assert (slack is None) == (op in ("eq", "ne"))
        for point in points(random) if slack is not None else ():
            values = {name: index(value) for name, value in point.items()}
            holds = simplify(substitute(condition, values)).text == "True"
            assert holds == (value_of(expr_of(slack), point) >= 0)


def loops_with(extents):
    loops = LoopsByName(Function("f", (), ()))
    for name, extent in extents.items():
        loops[name] = For(name, ZERO, index(extent), ())
    return loops


def index_of(coefficients):
    terms = [mul(index_var(name), index(by)) for name, by in coefficients.items()]
    total = ZERO
    for term in terms:
        total = add(total, term)
    return total


def test_injectivity_by_digits_holds_for_all_values():
    random, told = Random(5), [0, 0]
    for _ in range(300):
        extents = {name: random.randint(1, 4) for name in "ijm"}
        steps = {name: random.choice([-6, -1, 1, 1, 2, 3, 4, 6, 8, 12]) for name in "ijm"}
        if random.random() < 0.3:  # without gaps
            order = random.sample("ijm", 3)
            counts = digits_from_counts([index(extents[name]) for name in order])
            steps = {name: at.coefficient.constant for name, at in zip(order, counts, strict=True)}
        loops = loops_with(extents)
        form = form_of(index_of(steps), {}, loops=loops)
        every = list(itertools.product(*(range(extents[name]) for name in "ijm")))
        values = [sum(a * steps[name] for a, name in zip(at, "ijm", strict=True)) for at in every]
        if injectivity_key(form, "i", loops=loops, varying={"i", "j", "m"}) is not None:
            told[0] += 1
            owner = {}
            for at, value in zip(every, values, strict=True):
                assert owner.setdefault(value, at[0]) == at[0]
        extent = random.randint(1, 8)
        if is_covering(form, index(extent), loops=loops):
            told[1] += 1
            assert set(range(extent)) <= set(values)
    assert min(told) > 10


def test_extents_may_be_sums():
    row = add(VARS["n"], ONE)
    loops = {
        name: For(name, ZERO, extent, ())
        for name, extent in zip("ij", (VARS["m"], row), strict=True)
    }
    i, j, n = (VARS[name] for name in "ijn")
    written = add(mul(i, row), j)
    spread = add(add(j, i), mul(n, i))
    for at in (written, spread):
        assert loops_in_digit_order(form_of(at, {}, loops=loops), loops=loops) == ("j", "i")
    assert loops_in_digit_order(form_of(add(mul(i, n), j), {}, loops=loops), loops=loops) is None


def test_quotients_of_digits_are_numbers_of_digits():
    digits = dict(
        zip("ijm", digits_from_counts([index(extent) for extent in (3, 4, 5)]), strict=True)
    )
    splits = {divisor: split_digits(digits, divisor) for divisor in range(1, 61)}
    for divisor, parts in splits.items():
        for at in itertools.product(range(3), range(4), range(5)) if parts is not None else ():
            high, span, low = parts
            point = dict(zip("ijm", at, strict=True))
            whole = value_of(number_from_digits(digits), point)
            assert divisor % span == 0
            assert value_of(number_from_digits(high), point) == whole // span
            assert value_of(number_from_digits(low), point) == whole % span
    assert [divisor for divisor, parts in splits.items() if parts] == [*range(5, 61, 5)]
