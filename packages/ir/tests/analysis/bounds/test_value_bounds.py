"""Products that cannot overflow, because an array that is passed has as many elements."""

from __future__ import annotations

from functools import reduce

import pytest

from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.core.build import add, floordiv, index, index_var, mul, sub
from gossamer_ir.nodes import Binary, Cast, Const, Load, VScale
from gossamer_ir.script import parse_module

TILED = """
@T.prim_func
def tiled(p: T.handle, q: T.handle, y: T.handle, m: T.int64, e: T.int64, w: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (SHAPE,), "int32")
    Y = T.match_buffer(y, (m,), "float32")
    for t in T.serial(START):
        for i in T.serial(m):
            Y[i] = 1.0
"""
T, ROW, M = map(index_var, "tim")


def analysis(shape: str, *, loop_name: str = "e"):
    text = TILED.replace("SHAPE", shape).replace("START", loop_name)
    (function,) = parse_module(text).functions
    return overflow_of(function)


@pytest.mark.parametrize(
    "shape", ["e // 1 * m + 1", "e * m", "m * e", "e * m + 1", "4 * e * m", "2 * (e * m) + 1"]
)
def test_an_iteration_times_a_size_is_bounded_by_an_array(shape):
    bounds = analysis(shape)
    for product in (mul(T, M), mul(M, T), add(mul(T, M), ROW), mul(mul(T, M), index(8))):
        assert bounds.is_exact(product)


OTHER = {
    "no array": ("e", "e"),
    "an array with a smaller extent": ("e + m", "e"),
    "an array of another size": ("e * w", "e"),
    "an array of more than a product": ("e * m + w", "e"),
    "an array of more dimensions": ("e, m + 1", "e"),
    "a loop that starts elsewhere": ("e * m", "w, e"),
    "a loop over another extent": ("e * m", "w"),
}


@pytest.mark.parametrize(("shape", "loop"), OTHER.values(), ids=OTHER)
def test_other_products_may_overflow(shape, loop):
    assert not analysis(shape, loop_name=loop).is_exact(mul(T, M))


def test_a_large_constant_may_overflow_even_so():
    assert not analysis("e * m").is_exact(mul(mul(T, M), index(2**20)))


def test_iterators_of_blocks_are_bounded_by_their_domains():
    text = """
@T.prim_func
def tiled(p: T.handle, y: T.handle, m: T.int64, e: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (e * m,), "int32")
    Y = T.match_buffer(y, (m,), "float32")
    for t in T.serial(e):
        with T.block("b"):
            vt = T.axis.spatial(e, t)
PREDICATE
            Y[0] = 1.0
"""
    # A predicate may be evaluated for values outside of the domain, so only the value bounds the iterator.
    for line, expected in (("", True), ("            T.where(vt < m)", False)):
        (function,) = parse_module(text.replace("PREDICATE", line)).functions
        assert overflow_of(function).is_exact(mul(index_var("vt"), M)) == expected


def test_a_variable_that_is_bound_again_loses_its_extent():
    bounds = analysis("e * m").copy()
    assert bounds.is_exact(mul(T, M))
    bounds.bind("t", index_var("w"))
    assert not bounds.is_exact(mul(T, M))
    assert analysis("e * m").is_exact(mul(T, M))


BITS = """
@T.prim_func
def bits(w: T.handle, p: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    W = T.match_buffer(w, (n,), "uint64")
    P = T.match_buffer(p, (n + 1,), "int64")
    T.assume(bit_counts(W, P, 64))
    T.assume(FACT)
"""


@pytest.mark.parametrize(
    ("fact", "is_exact"), [("has_value(P, 0, 0)", True), ("has_value(P, 0, 1)", False)]
)
def test_counts_of_bits_are_bounded_by_the_array_of_the_words(fact, is_exact):
    (function,) = parse_module(BITS.replace("FACT", fact)).functions
    count = Load("P", (index_var("n"),), "int64")
    assert overflow_of(function).is_exact(add(count, index(1))) is is_exact


@pytest.mark.parametrize(
    ("lanes", "is_exact"),
    [
        (mul(index(64), VScale()), True),
        (mul(VScale(), index(64)), True),
        # It may wrap around to any number.
        (reduce(mul, [VScale()] * 7), False),
        (mul(index(64), M), False),
    ],
)  # fmt: skip
def test_a_size_rounded_up_to_whole_vectors_does_not_overflow(lanes, is_exact):
    rounded = mul(floordiv(add(M, sub(lanes, index(1))), lanes), lanes)
    assert analysis("e").is_exact(rounded) == is_exact


OFFSETS = """
@T.prim_func
def offsets(p: T.handle, q: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n + 1,), "int32")
    Q = T.match_buffer(q, (n,), "int64")
    T.assume(in_range(P, LEAST, n + 1))
    T.assume(in_range(Q, 0, 9223372036854775807))
"""


@pytest.mark.parametrize(("least", "bound"), [("0", 2**31), ("-1", 2**32)])
def test_a_difference_of_natural_numbers_is_at_most_the_greater(least, bound):
    (function,) = parse_module(OFFSETS.replace("LEAST", least)).functions
    first, second = (Cast("int64", Load("P", (at,), "int32")) for at in (index(0), index(1)))
    assert overflow_of(function).bound(sub(second, first)) == bound


def test_a_sum_of_natural_numbers_that_may_wrap_is_not_one():
    (function,) = parse_module(OFFSETS.replace("LEAST", "0")).functions
    bounds = overflow_of(function)
    first, second = (Load("P", (at,), "int32") for at in (index(0), index(1)))
    total = Cast("int64", Binary("add", first, second))
    assert not bounds.is_nonnegative(total)
    assert bounds.bound(sub(total, Cast("int64", first))) == 2**32
    large = Load("Q", (index(0),), "int64")
    # The sum may be negative, so that the difference may wrap once more.
    assert not bounds.is_exact(sub(add(large, large), large))


def test_constants_are_not_negative_if_they_are_integers_from_0_on():
    (function,) = parse_module(OFFSETS.replace("LEAST", "0")).functions
    constants = (index(0), index(2), index(-1), Const("float64", "-1.0"), Const("float64", "1.0"))
    natural = [overflow_of(function).is_nonnegative(each) for each in constants]
    assert natural == [True, True, False, False, False]
