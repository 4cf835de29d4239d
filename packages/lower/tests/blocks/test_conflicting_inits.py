"""Points of a block that write one element initialize it once, before any of them updates it."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Block, For
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect
from gossamer_ir.verify import verify
from gossamer_lower import lower_blocks, lower_to_flat
from gossamer_testkit.show import body_text

HEADER = """
@T.prim_func
def sums(x: T.handle, y: T.handle, z: T.handle, p: T.handle, n: T.int64, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n, 3), "float64")
    Y = T.match_buffer(y, (m,), "float64")
    Z = T.match_buffer(z, (n, 3), "float64")
    P = T.match_buffer(p, (n,), "int64")
"""
ROWS = np.array([0, 2, 0, 0])
SCATTER = """
for i in T.serial(n):
    for j in T.serial(3):
        with T.block("scatter"):
            vi, vj = T.axis.remap("KINDS", [i, j])
            with T.init():
                Y[P[vi]] = 1.0
            Y[P[vi]] = Y[P[vi]] + X[vi, vj]
"""


def program(body):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return verify(parse_module(HEADER + lines))


def results(module):
    """Y and Z after the program, interpreted as written and after lowering."""
    for stage in (module, verify(lower_to_flat(module))):
        y, z = np.full(3, 7.0), np.full((4, 3), 7.0)
        arguments = {"x": np.arange(12.0).reshape(4, 3), "y": y, "z": z, "p": ROWS, "n": 4, "m": 3}
        run(stage, arguments, chunks=2)
        yield y, z


def scattered(start=1.0):
    expected = np.full(3, 7.0)
    expected[ROWS] = start
    np.add.at(expected, ROWS, np.arange(12.0).reshape(4, 3).sum(axis=1))
    return expected


CONDITIONED = """
for i in T.serial(n):
    if i >= 0:
        for j in T.serial(3):
            with T.block("scatter"):
                vi, vj = T.axis.remap("SS", [i, j])
                with T.init():
                    Y[P[vi]] = 1.0
                Y[P[vi]] = Y[P[vi]] + X[vi, vj]
"""
TWICE = """
for i in T.serial(2 * n):
    for j in T.serial(3):
        with T.block("scatter"):
            vi = T.axis.spatial(n, i // 2)
            vj = T.axis.spatial(3, j)
            with T.init():
                Y[P[vi]] = 1.0
            Y[P[vi]] = Y[P[vi]] + 0.5 * X[vi, vj]
"""
CONFLICTING = {
    "spatial points": SCATTER.replace("KINDS", "SS"),
    "rows of a reduction": SCATTER.replace("KINDS", "SR"),
    "a reduction of rows": SCATTER.replace("KINDS", "RR"),
    "under a condition": CONDITIONED,
    "each point twice": TWICE,
}


@pytest.mark.parametrize("body", CONFLICTING.values(), ids=CONFLICTING)
def test_elements_written_by_several_points_keep_what_was_added(body):
    for y, _ in results(program(body)):
        np.testing.assert_array_equal(y, scattered())


def test_the_init_runs_before_the_loop_written_by_several_points():
    after = body_text(lower_blocks(program(SCATTER.replace("KINDS", "SR"))))
    assert after.startswith("for i_init in T.serial(n):\n    Y[P[i_init]] = 1.0\nfor i in")


APART = {
    "an index": "Z[vi, vj]",
    "an index backwards": "Z[n - 1 - vi, vj]",
    "digits": "Y[vi * 3 + vj]",
    "a quotient and its remainder": "Z[(vi * 3 + vj) // 3, (vi * 3 + vj) % 3]",
}


@pytest.mark.parametrize("element", APART.values(), ids=APART)
def test_an_init_stays_where_points_are_proved_not_to_meet(element):
    text = SCATTER.replace("KINDS", "SS").replace("Y[P[vi]]", element)
    assert body_text(lower_blocks(program(text))).startswith("for i in T.serial(n):\n    for j in")


def test_a_loop_that_counts_nothing_starts_anew():
    body = (
        SCATTER.replace("KINDS", "SR")
        .replace("\n    ", "\n        ")
        .replace("\nfor i", "\nfor t in T.serial(2):\n    for i")
    )
    for y, _ in results(program(body)):
        np.testing.assert_array_equal(y, scattered())


def test_what_is_allocated_in_a_loop_is_of_its_iteration():
    body = """
for i in T.serial(n):
    W = T.alloc_buffer((1,), "float64")
    for j in T.serial(3):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                W[0] = 0.0
            W[0] = W[0] + X[vi, vj]
    Z[i, 0] = W[0]
"""
    module = program(body)
    assert [loop.var for loop in collect(For, *lower_blocks(module).functions[0].body)] == [
        "i",
        "j",
    ]
    for _, z in results(module):
        np.testing.assert_array_equal(z[:, 0], np.arange(12.0).reshape(4, 3).sum(axis=1))


FIRST = SCATTER.replace("KINDS", "SS")
LATER = FIRST.replace("for i in T.serial(n)", "for i in T.serial(3)").replace("P[vi]", "P[vi + 1]")
MARKED = {
    "other statements of the loop use it": FIRST + "    Z[i, 0] = Y[P[i]]",
    "the loop changes what it is initialized from": FIRST.replace("= 1.0", "= Z[0, 0]")
    + "    Z[0, 0] = Z[0, 0] + 2.0",
    "it is computed from what was there": FIRST.replace("= 1.0", "= Y[P[vi]] * 0.5"),
    "the value is that of the first point": FIRST.replace("= 1.0", "= X[vi, 0]"),
    "before a reduction": SCATTER.replace("KINDS", "SR").replace("= 1.0", "= X[vi, 0]"),
    "several stores of one run": FIRST.replace(
        "Y[P[vi]] = 1.0",
        "Y[P[vi]] = X[vi, 0]\n                for t in T.serial(2):\n"
        "                    Y[P[vi]] = Y[P[vi]] + 1.0",
    ),
}


def first_points(y, z, *, start, after):
    """The expected arrays after the points of `FIRST`, one after the other."""
    x, seen = np.arange(12.0).reshape(4, 3), set()
    for i, j in np.ndindex(4, 3):
        row = ROWS[i]
        if row not in seen:
            seen.add(row)
            y[row] = start(x, y, z, i)
        y[row] += x[i, j]
        if j == 2:
            after(y, z, i)


def nothing(y, z, i):
    """Does nothing after the points of a row."""


def keeps(y, z, i):
    z[i, 0] = y[ROWS[i]]


def adds(y, z, i):
    z[0, 0] += 2


STARTS = {
    "other statements of the loop use it": (lambda x, y, z, i: 1.0, keeps),
    "the loop changes what it is initialized from": (lambda x, y, z, i: z[0, 0], adds),
    "it is computed from what was there": (lambda x, y, z, i: y[ROWS[i]] * 0.5, nothing),
    "the value is that of the first point": (lambda x, y, z, i: x[i, 0], nothing),
    "before a reduction": (lambda x, y, z, i: x[i, 0], nothing),
    "several stores of one run": (lambda x, y, z, i: x[i, 0] + 2, nothing),
}


@pytest.mark.parametrize("name", MARKED)
def test_elements_are_initialized_by_the_first_point_that_meets_others_there(name):
    expected = np.full(3, 7.0), np.full((4, 3), 7.0)
    start, after = STARTS[name]
    first_points(*expected, start=start, after=after)
    for y, z in results(program(MARKED[name])):
        np.testing.assert_array_equal(y, expected[0])
        np.testing.assert_array_equal(z, expected[1])


def test_the_first_of_points_that_meet_inside_of_the_reduction_tells_the_value():
    body = """
for j in T.serial(3):
    for i in T.serial(n):
        with T.block("scatter"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                Y[P[vi]] = X[vi, 0]
            Y[P[vi]] = Y[P[vi]] + X[vi, vj]
"""
    expected = np.array([0.0 + 0 + 1 + 2 + 6 + 7 + 8 + 9 + 10 + 11, 7.0, 3.0 + 3 + 4 + 5])
    for y, _ in results(program(body)):
        np.testing.assert_array_equal(y, expected)


def test_a_condition_tells_points_apart():
    """If there are two terms, the first one belongs to one row."""
    body = """
T.assume(in_range(P, 0, 13))
T.assume(monotone(P))
for i in T.serial(n - 1):
    for j in T.serial(P[i + 1] - P[i]):
        if j == 1:
            with T.block("second"):
                vi = T.axis.spatial(n - 1, i)
                with T.init():
                    Y[P[vi] + 1] = X[vi, 0]
                Y[P[vi] + 1] = Y[P[vi] + 1] * 2.0
"""
    assert "initialized" not in body_text(lower_blocks(program(body)))


def test_no_annotation_says_that_the_element_tells_the_value():
    body = MARKED["before a reduction"].replace(
        "            with T.init",
        '            T.block_attr({"init_of_element": True})\n            with T.init',
    )
    expected = np.full(3, 7.0), np.full((4, 3), 7.0)
    first_points(*expected, start=lambda x, y, z, i: x[i, 0], after=nothing)
    module = program(body)
    assert collect(Block, *module.functions[0].body)[0].annotations
    for y, _ in results(module):
        np.testing.assert_array_equal(y, expected[0])


def test_rows_without_terms_meet_others():
    """The reduction may be empty while the init runs, so that its range proves nothing."""
    body = """
T.assume(in_range(P, 0, 5))
T.assume(monotone(P))
for i in T.serial(n - 1):
    for j in T.serial(P[i + 1] - P[i]):
        with T.block("sum"):
            vi = T.axis.spatial(n - 1, i)
            vj = T.axis.reduce(P[vi + 1] - P[vi], j)
            with T.init():
                Y[P[vi + 1]] = 1.0
            Y[P[vi + 1]] = Y[P[vi + 1]] + X[vi, vj]
"""
    module = program(body)
    for stage in (module, verify(lower_to_flat(module))):
        y, p = np.full(4, 7.0), np.array([0, 2, 2, 3])
        arguments = {"x": np.arange(12.0).reshape(4, 3), "y": y, "z": np.zeros((4, 3)), "p": p}
        run(stage, {**arguments, "n": 4, "m": 4}, chunks=2)
        np.testing.assert_array_equal(y, [7.0, 7.0, 1.0 + 0 + 1, 1.0 + 6])


def test_an_index_that_the_loop_changes_says_nothing():
    body = """
for i in T.serial(n):
    for j in T.serial(3):
        with T.block("sum"):
            vi, vj = T.axis.remap("SS", [i, j])
            with T.init():
                Y[vi + P[0]] = 1.0
            Y[vi + P[0]] = Y[vi + P[0]] + X[vi, vj]
    P[0] = P[0] - 1
"""
    module = program(body)
    for stage in (module, verify(lower_to_flat(module))):
        y, p = np.full(3, 7.0), np.array([2, 0, 0, 0])
        arguments = {"x": np.arange(12.0).reshape(4, 3), "y": y, "z": np.zeros((4, 3)), "p": p}
        run(stage, {**arguments, "n": 4, "m": 3}, chunks=2)
        np.testing.assert_array_equal(y, [7.0, 7.0, 1.0 + 66])


KNOWN = {
    "an array of distinct rows": ("distinct(P)", "Y[P[vi]]"),
    "a sorted array": ("sorted_segments(P, unique=True)", "Y[P[vi]]"),
    "an array read backwards": ("distinct(P)", "Y[P[n - 1 - vi]]"),
}


@pytest.mark.parametrize(("fact", "element"), KNOWN.values(), ids=KNOWN)
def test_an_init_stays_where_facts_tell_points_apart(fact, element):
    text = FIRST.replace("Y[P[vi]]", element)
    module = program(f"\nT.assume({fact})" + text)
    assert body_text(lower_blocks(module)).startswith("for i in T.serial(n):\n    for j_init in")


REPEATED = FIRST.replace("\n    ", "\n        ").replace(
    "    for j", "for t in T.serial(2):\n        for j"
)


def test_each_iteration_of_a_loop_that_does_not_feed_the_block_initializes_anew():
    expected, seen = np.full(3, 7.0), set()
    for i, t, j in np.ndindex(4, 2, 3):
        row = ROWS[i]
        if (t, row) not in seen:
            seen.add((t, row))
            expected[row] = 1.0
        expected[row] += 3 * i + j
    for y, _ in results(program(REPEATED)):
        np.testing.assert_array_equal(y, expected)


def test_a_loop_in_which_a_condition_selects_the_point_does_not_repeat_it():
    """The value of the iterator is that of the loop variable, by the condition."""
    body = """
for j in T.serial(3):
    for i in T.serial(n):
        if i == 2:
            with T.block("second"):
                vi = T.axis.spatial(n, 2)
                vj = T.axis.spatial(3, j)
                with T.init():
                    Y[vi] = 1.0
                Y[vi] = Y[vi] + X[vi, vj]
"""
    for y, _ in results(program(body)):
        np.testing.assert_array_equal(y, [7.0, 7.0, 1.0 + 6 + 7 + 8])


def test_an_init_is_hoisted_out_of_a_loop_of_one_iteration():
    module = program(REPEATED.replace("T.serial(2)", "T.serial(1)"))
    assert "initialized" not in body_text(lower_blocks(module))
    for y, _ in results(module):
        np.testing.assert_array_equal(y, scattered())


REFUSED = {
    "a while loop repeats it": 'W = T.alloc_buffer((1,), "int64")\n'
    + FIRST.replace("\n    ", "\n        ")
    .replace("    for j", "W[0] = 0\n    while W[0] < 2:\n        W[0] = W[0] + 1\n        for j")
    .lstrip(),
    "the range of loop 't', which repeats it, is not known before": REPEATED.replace(
        "T.serial(2)", "T.serial(i + 1)"
    ),
    "iterations of loop 'i' run at once": MARKED["several stores of one run"].replace(
        "for i in T.serial", "for i in T.parallel"
    ),
    "the size of 'W' is read from what the function writes": 'W = T.alloc_buffer((P[0] + 3,), "float64")'
    + FIRST.replace("Y[", "W[").replace("= 1.0", "= X[vi, 0]")
    + "    P[0] = 0",
}


@pytest.mark.parametrize(("why", "body"), REFUSED.items(), ids=REFUSED)
def test_an_init_that_cannot_run_once_is_refused(why, body):
    module = program(body)
    with pytest.raises(UnsupportedError, match=why) as caught:
        lower_blocks(module)
    assert caught.value.code == "lower.lower_blocks.conflicting_inits"
    assert collect(Block, *module.functions[0].body)


def test_marks_are_as_many_as_a_size_that_a_let_named():
    module = program("""
size: T.int64 = 3
R = T.alloc_buffer((size,), "float64")
for i in T.serial(n):
    with T.block("counts"):
        vi = T.axis.spatial(n, i)
        with T.init():
            R[P[vi]] = X[vi, 0]
        R[P[vi]] = R[P[vi]] + 1.0
        Y[P[vi]] = R[P[vi]]
""")
    assert "initialized" in body_text(verify(lower_blocks(module)))
    for y, _ in results(module):
        assert y.tolist() == [3.0, 7.0, 4.0]
