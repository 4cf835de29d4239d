"""Iterations that are tried one by one, compared with the elements that they select."""

import itertools
from random import Random

import pytest

from gossamer_ir.core.build import index
from gossamer_ir.dependence.constant_points import ConstantPoints, TriedAccess, differ_at_points
from gossamer_ir.nodes import For
from gossamer_ir.script import parse_expr
from gossamer_ir.traversal.free_vars import free_vars

DTYPES = dict.fromkeys(("t", "u", "k", "n"), "int64")
INDICES = (
    "t", "u", "t + u", "t * 4 + u", "t // 2", "t % 2", "t ^ u", "(t ^ u) * 4 + u", "t & 1", "t >> 1", "t | u",
    "k * 8 + t", "k * 6 + t", "n + t // 2", "n - u", "k", "T.min(t, 2)", "T.max(t, u) << 2",
)  # fmt: skip
CONDITIONS = ("t < 2", "t == u", "t % 2 == 0 and u < 1", "t >= 1 or u == 0", "not t < u", "n < t")
BITS = {"T.min": "min", "T.max": "max", "n < t": "True"}


def values_at(text, point):
    for old, new in BITS.items():
        text = text.replace(old, new)
    return eval(text, {}, point)


def has_common_element(names, texts, conditions, ranges):
    """Return whether two iterations that differ in a named variable select one element, for k in any of
    them."""
    elements = {}
    for values in itertools.product(*ranges.values(), range(8)):
        point = dict(zip((*ranges, "k"), values, strict=True)) | {"n": 5}
        if all(values_at(text, point) for text in conditions):
            element = tuple(values_at(text, point) for text in texts)
            iteration = tuple(point[name] for name in names)
            if elements.setdefault(element, iteration) != iteration:
                return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_iterations_that_differ_have_no_element_in_common(seed):
    random, proved = Random(seed), 0
    for _ in range(100):
        ranges = {name: range(random.randint(1, 4)) for name in "tu"}
        names = random.choice(("t", "u", "tu"))
        texts = random.choices(INDICES, k=random.randint(1, 3))
        conditions = random.choices(CONDITIONS, k=random.randint(0, 2))
        points = ConstantPoints(
            For(name, index(0), index(len(r)), ()) for name, r in ranges.items()
        )
        access = TriedAccess(
            [parse_expr(text, DTYPES) for text in texts],
            points,
            [parse_expr(text, DTYPES) for text in conditions],
        )
        proved_here = differ_at_points(
            names,
            [access],
            equal=lambda expr: free_vars(expr) <= {"n"},
        )
        proved += proved_here
        if proved_here:
            assert not has_common_element(names, texts, conditions, ranges), (texts, conditions)
    assert proved > 20


def test_iterations_of_which_an_equal_variable_differs_are_not_compared():
    points = ConstantPoints(For(name, index(0), index(4), ()) for name in "tu")
    for text, names, is_proved in (
        ("(t * 4 + u) // 2", {"t"}, False),
        ("(t + u) % 4", {"t"}, True),
        ("(t + u) % 4", set(), False),
    ):
        proved = differ_at_points(
            "u",
            [TriedAccess([parse_expr(text, DTYPES)], points, ())],
            equal=lambda expr, names=names: free_vars(expr) <= names,
        )
        assert proved == is_proved


def test_too_many_iterations_are_not_tried():
    points = ConstantPoints(For(name, index(0), index(1024), ()) for name in "tu")
    assert points.values(parse_expr("t + u", DTYPES)) is None


def test_what_may_be_undefined_has_no_values():
    points = ConstantPoints([For("t", index(0), index(4), ())])
    for text in ("t // (t - t)", "t << t", "t << 64", "t // 0", "n", "T.float32(t) < 1.0"):
        assert points.values(parse_expr(text, DTYPES)) is None
