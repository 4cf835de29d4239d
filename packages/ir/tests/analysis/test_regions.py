"""Regions that statements read and write: tables of boxes, and enumeration of the accessed elements."""

from __future__ import annotations

from itertools import product
from textwrap import indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer_ir.analysis.regions import declare_regions, regions_of
from gossamer_ir.script import parse_module, print_expr, print_module
from gossamer_ir.verify import verify

PROGRAM = """
@T.prim_func
def main(
    x: T.handle, y: T.handle, p: T.handle, q: T.handle, s: T.handle, m: T.int64, n: T.int64
) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (m, n), "float32")
    P = T.match_buffer(p, (m + 1,), "int32")
    Q = T.match_buffer(q, (n,), "int32")
    S = T.match_buffer(s, (n,), "int32")
    T.assume(in_range(P, 0, n + 1))
    T.assume(monotone(P))
    T.assume(in_range(Q, 0, m))
    for i in T.serial(m):
        with T.block("b"):
            v = T.axis.spatial(m, i)
{body}
"""
ROW = "T.int64(P[v]):T.int64(P[v + 1])"
LOWER = 'T.search("lower", P, begin=0, end=m, value=v)'

REGIONS = {
    "a point": ("Y[v, 0] = 1.0", "()", "(Y[v, 0])"),
    "a row": ("for j in T.serial(n):\n    Y[v, j] = X[j]", "(X[0:n])", "(Y[v, 0:n])"),
    "a stencil": (
        "for j in T.serial(1, n - 1):\n    Y[v, j] = X[j - 1] + X[j + 1]",
        "(X[0:n])",
        "(Y[v, 1:1 + (n - 2)])",
    ),
    "elements that lie apart": (
        "Y[v, 0] = X[T.int64(P[v])] + X[T.int64(P[v + 1])]",
        "(X[T.int64(P[v]):T.int64(P[v]) + (T.int64(P[v + 1]) - T.int64(P[v]) + 1)], P[v:v + 2])",
        "(Y[v, 0])",
    ),
    "a row of a sparse matrix": (
        "for j in T.serial(T.int64(P[v + 1]) - T.int64(P[v])):\n"
        "    Y[v, 0] = Y[v, 0] + X[T.int64(P[v]) + j]",
        f"(P[v:v + 2], Y[v, 0], X[{ROW}])",
        "(Y[v, 0])",
    ),
    "all rows of a sparse matrix": (
        "for r in T.serial(m):\n"
        "    for j in T.serial(T.int64(P[r + 1]) - T.int64(P[r])):\n"
        "        X[T.int64(P[r]) + j] = 0.0",
        "(P[0:m + 1])",
        "(X[T.int64(P[0]):T.int64(P[m])])",
    ),
    "indirect, with a fact": (
        "for j in T.serial(n):\n    Y[T.int64(Q[j]), v] = 0.0",
        "(Q[0:n])",
        "(Y[0:m, v])",
    ),
    "indirect, without a fact": (
        "for j in T.serial(n):\n    Y[v, T.int64(S[j])] = 0.0",
        "(S[0:n])",
        "(Y[v, 0:n])",
    ),
    "indirect, but one element": ("Y[v, T.int64(S[v])] = 0.0", "(S[v])", "(Y[v, T.int64(S[v])])"),
    "through what is written": (
        "S[v] = T.int32(1)\nY[v, T.int64(S[v])] = 0.0",
        "(S[v])",
        "(S[v], Y[v, 0:n])",
    ),
    "backwards": ("for j in T.serial(n):\n    Y[v, n - 1 - j] = X[j]", "(X[0:n])", "(Y[v, 0:n])"),
    "by a quotient": (
        "for j in T.serial(n):\n    Y[v, j // 4] = 0.0",
        "()",
        "(Y[v, 0:(n - 1) // 4 + 1])",
    ),
    "by a remainder": (
        "for j in T.serial(n):\n    X[j % 3] = 0.0",
        "()",
        "(X[0:T.min(2, n - 1) + 1])",
    ),
    "by a product of sizes, which may wrap": (
        "for j in T.serial(m):\n    X[v + m * j] = 0.0",
        "()",
        "(X[0:n])",
    ),
    "after a condition": (
        "if v > 0:\n    Y[v, 0] = X[v - 1]",
        "(X[T.max(v - 1, 0):T.max(v - 1, 0) + (T.min(v - 1, n - 1) - T.max(v - 1, 0) + 1)])",
        "(Y[v, 0:T.min(0, n - 1) + 1])",
    ),
    "a search": (f"Y[v, 0] = X[{LOWER}]", f"(X[{LOWER}], P[0:m])", "(Y[v, 0])"),
    "a let": ("at: T.int64 = v + 1\nX[at] = X[at - 1]", "(X[v])", "(X[v + 1])"),
    "a buffer that it allocates is left out": (
        'L = T.alloc_buffer((4,), "float32")\nfor j in T.serial(4):\n    L[j] = X[v]\n'
        "for k in T.serial(4):\n    Y[v, k] = L[k]",
        "(X[v])",
        "(Y[v, 0:T.min(3, n - 1) + 1])",
    ),
}


@pytest.mark.parametrize("name", REGIONS)
def test_regions_of_a_block(name):
    body, reads, writes = REGIONS[name]
    module = verify(parse_module(PROGRAM.format(body=indent(body, " " * 12))))
    declared = declare_regions(module)
    lines = [line.strip() for line in print_module(declared).splitlines()]
    regions = [line for line in lines if line.startswith(("T.reads", "T.writes"))]
    assert regions == [f"T.reads{reads}", f"T.writes{writes}"]
    assert verify(parse_module(print_module(declared))) == declared


def test_elements_of_a_sparse_buffer_that_values_select_are_anywhere_in_it():
    module = parse_module("""
@T.prim_func
def main(x: T.handle, p: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I,), "float32")
    P = T.sp.match_buffer(p, (I,), "int32")
    T.assume(monotone(P))
    for i in T.serial(n):
        with T.block("b"):
            v = T.axis.spatial(n, i)
            for j in T.serial(n):
                X[T.int64(P[j])] = 1.0
""")
    (loop,) = declare_regions(verify(module)).functions[0].body
    (written,) = loop.body[0].writes
    assert print_expr(written.ranges[0].start) == "0"
    assert print_expr(written.ranges[0].extent) == "n"


def test_a_region_holds_an_index_whose_constants_wrap_around():
    module = parse_module("""
@T.prim_func
def main(x: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (4,), "float32")
    for i in T.serial(4):
        with T.block("b"):
            v = T.axis.spatial(4, i)
            X[T.int64(1) + -9223372036854775808 + -9223372036854775808] = 1.0
""")
    (loop,) = verify(declare_regions(module)).functions[0].body
    (written,) = loop.body[0].writes
    assert (print_expr(written.ranges[0].start), print_expr(written.ranges[0].extent)) == ("0", "4")


AFFINE = """
@T.prim_func
def main(x: T.handle) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (200, 200), "float32")
    for i in T.serial(4):
        for j in T.serial({j}):
            for k in T.serial({k}):
                X[{rows}, {columns}] = 1.0
"""


@pytest.mark.parametrize(
    ("is_clamped", "ranges"),
    [(True, [("i * 4", "T.min(i * 4 + 3, n - 1) - i * 4 + 1")]), (False, [("i * 4", "4")])],
)
def test_a_region_is_clamped_to_the_buffer_unless_asked_not_to(is_clamped, ranges):
    (function,) = parse_module("""
@T.prim_func
def main(x: T.handle, y: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (4,), "float32")
    T.func_attr({"sparse_tir_level": 0})
    for i in T.serial((n + 3) // 4):
        for j in T.serial(4):
            if i * 4 + j < n:
                Y[j] = X[i * 4 + j]
""").functions
    (loop,) = function.body
    accessed = regions_of(function, loop.body, is_clamped=is_clamped).read_region("X")
    accessed_ranges = [
        (print_expr(at.start), print_expr(at.extent)) for at in accessed.region.ranges
    ]
    assert accessed_ranges == ranges


COEFFICIENTS = st.tuples(st.integers(0, 9), *[st.integers(-3, 3)] * 3)


class T:
    min, max = min, max


def index_text(coefficients):
    first, *others = coefficients
    return f"{first + 40} + " + " + ".join(
        f"{count} * {name}" for count, name in zip(others, "ijk", strict=True)
    )


@given(COEFFICIENTS, COEFFICIENTS, st.integers(1, 4), st.sampled_from(["1", "3", "i + 1", "j + 1"]))
def test_a_box_holds_what_is_touched_and_an_exact_one_nothing_else(rows, columns, j, k):
    texts = {"rows": index_text(rows), "columns": index_text(columns)}
    (function,) = parse_module(AFFINE.format(j=j, k=k, **texts)).functions
    (written,) = regions_of(function, function.body[0].body).writes
    for i in range(4):
        points = (
            {"i": i, "j": a, "k": b} for a in range(j) for b in range(eval(k, {"i": i, "j": a}))
        )
        touched = {(eval(texts["rows"], at), eval(texts["columns"], at)) for at in points}
        sides = []
        for side in written.region.ranges:
            start, extent = (
                eval(print_expr(part), {"T": T, "i": i}) for part in (side.start, side.extent)
            )
            sides.append(range(start, start + extent))
        box = set(product(*sides))
        assert touched <= box
        assert not written.is_exact or touched == box


VECTORS = """
@T.prim_func
def main(x: T.handle, p: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n * 4,), "float32")
    P = T.match_buffer(p, (n * 4,), "int64")
    for i in T.serial(n):
        with T.block("b"):
            v = T.axis.spatial(n, i)
            X[{at}] = T.broadcast(T.float32(1), 4)
"""


@pytest.mark.parametrize(
    ("at", "touched"),
    [
        ("T.ramp(v * 4, 1, 4)", "v * 4:v * 4 + 4"),
        ("T.ramp(v * 4 + 3, -1, 4)", "v * 4:v * 4 + 4"),
        ("T.ramp(0, 1, 4) + T.broadcast(v * 4, 4)", "v * 4:v * 4 + 4"),
        ("T.broadcast(v, 4)", "v"),
        ("T.ramp(v, P[v], 4)", "0:n * 4"),
        ("P[T.ramp(v * 4, 1, 4)]", "0:n * 4"),
        ('T.cast(T.ramp(T.int32(0), T.int32(1), 4), "int64x4")', "0:n * 4"),
    ],
)
def test_the_region_of_a_vector_holds_all_of_its_lanes(at, touched):
    declared = declare_regions(parse_module(VECTORS.format(at=at)))
    verify(declared)
    assert f"T.writes(X[{touched}])" in print_module(declared)
