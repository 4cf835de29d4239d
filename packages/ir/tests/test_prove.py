"""What must be proved, and what must not: each statement with what is known."""

from __future__ import annotations

import pytest

from gossamer_ir.build import add, index, index_var
from gossamer_ir.nodes import InRange, Monotone
from gossamer_ir.prove import Prover
from gossamer_ir.script import parse_expr

DTYPES = dict.fromkeys(("i", "j", "k", "l", "m", "n", "nnz", "t"), "int64")
DTYPES |= {"P": "int32", "Q": "int32"}
FACTS = (
    InRange("P", index(0), add(index_var("nnz"), index(1))),
    Monotone("P"),
    InRange("Q", index(0), index_var("n")),
)
FIBRE = ("j", "0", "T.int64(P[i + 1]) - T.int64(P[i])")

ROW = 'T.search("upper", P, begin=1, end=m, value=k)'
SLOT = 'T.search("exact", P, begin=0, end=m, value=k)'

PROVED = [
    ([], "0 <= 0"),
    ([("i", "0", "m")], "0 <= i"),
    ([("i", "0", "m")], "i < m"),
    ([("i", "0", "m")], "i + 1 <= m"),
    ([("i", "2", "m")], "i >= 2"),
    ([("i", "0", "m"), ("j", "0", "i")], "j + 1 < m"),
    ([("i", "0", "m"), ("j", "0", "m - i")], "i + j < m"),
    ([("i", "0", "m"), ("j", "0", "16")], "i * 16 + j < m * 16"),
    ([("i", "0", "4"), ("j", "0", "8")], "i * 8 + j < 32"),
    ([("i", "0", "4"), ("j", "0", "8")], "31 - (i * 8 + j) >= 0"),
    ([("i", "0", "m")], "i // 4 <= i"),
    ([("i", "0", "m")], "i // 4 >= 0"),
    ([("i", "0", "m")], "i % 4 < 4"),
    ([("i", "0", "m")], "i % 4 >= 0"),
    ([("i", "0", "64")], "i // 16 < 4"),
    ([("i", "0", "64")], "i // 16 * 16 <= i"),
    ([], "(n + 15) // 16 * 16 >= n"),
    ([("i", "0", "m")], "T.min(i, 7) <= 7"),
    ([("i", "0", "m")], "T.max(i, 7) >= 7"),
    ([("i", "0", "m")], "T.int64(P[i]) >= 0"),
    ([("i", "0", "m")], "T.int64(P[i]) <= nnz"),
    ([("i", "0", "m")], "T.int64(P[i]) <= T.int64(P[i + 1])"),
    ([("i", "0", "m")], "T.int64(P[i]) <= T.int64(P[i + 3])"),
    ([("i", "0", "m"), FIBRE], "T.int64(P[i]) + j < nnz"),
    ([("i", "0", "m"), FIBRE], "T.int64(P[i]) + j >= 0"),
    ([("i", "0", "m"), FIBRE], "T.int64(P[i]) + j < T.int64(P[i + 1])"),
    ([("k", "0", "nnz")], "T.int64(Q[k]) < n"),
    ([("k", "0", "nnz")], "T.int64(Q[k]) * 3 + 2 < n * 3"),
    ([("i", "0", "T.if_then_else(k < m, n, 0)")], "i < n"),
    ([("i", "0", "T.if_then_else(k < m, n, 0)")], "k < m"),
    ([("t", "0", "m")], "t * (T.vscale() * 4) >= 0"),
    ([], "T.vscale() * 4 >= 4"),
    ([("i", "0", "m")], "T.min(i, 7) >= 0"),
    ([("i", "0", "m")], "T.max(i, m - 1) < m"),
    ([("i", "0", "m")], f"{ROW} - 1 >= 0"),
    ([("i", "0", "m")], f"{ROW} - 1 < m"),
    ([], f"{SLOT} >= -1"),
    ([("i", "0", "m")], f"{SLOT} < m"),
]
NOT_PROVED = [
    ([], f"{ROW} - 1 < m"),
    ([("i", "0", "m")], f"{ROW} < m"),
    ([], f"{SLOT} < m"),
    ([("i", "0", "m")], f"{SLOT} >= 0"),
    ([("i", "0", "m")], "T.max(i, k) < m"),
    ([("i", "0", "m")], "T.min(i, k) >= 0"),
    ([], "0 < 0"),
    ([], "i >= 0"),
    ([("i", "0", "m")], "i > 0"),
    ([("i", "0", "T.if_then_else(k < m, n, 1)")], "k < m"),
    ([("i", "0", "m")], "i + 1 < m"),
    ([("i", "0", "m")], "i < n"),
    ([("i", "-1", "m")], "i >= 0"),
    ([("i", "0", "m"), ("j", "0", "i")], "j + 2 < m"),
    ([("i", "0", "m"), ("j", "0", "m - i")], "i + j + 1 < m"),
    ([("i", "0", "m"), ("j", "0", "17")], "i * 16 + j < m * 16"),
    ([("i", "0", "4"), ("j", "0", "8")], "i * 8 + j < 31"),
    ([("i", "-4", "4")], "i // 4 >= 0"),
    ([("i", "0", "m")], "i % 4 < 3"),
    ([("i", "0", "65")], "i // 16 < 4"),
    ([], "n // 16 * 16 >= n"),
    ([("i", "0", "m")], "T.min(i, 7) >= 7"),
    ([("i", "0", "m")], "T.max(i, 7) <= 7"),
    ([("i", "0", "m")], "T.int64(P[i]) < nnz"),
    ([("i", "0", "m")], "T.int64(P[i + 1]) <= T.int64(P[i])"),
    ([("i", "0", "m")], "T.int64(P[i]) < T.int64(P[i + 1])"),
    ([("i", "0", "m"), FIBRE], "T.int64(P[i]) + j + 1 < nnz"),
    ([("i", "0", "m"), FIBRE], "T.int64(P[i + 1]) + j < nnz"),
    ([("k", "0", "nnz")], "T.int64(Q[k]) <= T.int64(Q[k + 1])"),
    ([("k", "0", "nnz")], "T.int64(Q[k]) + 1 < n"),
    ([("t", "-1", "m")], "t * (T.vscale() * 4) >= 0"),
    ([], "T.vscale() * 4 >= 5"),
    ([("i", "0", "m"), ("j", "0", "n")], "i * n + j < m * m"),
]


def proves(known, statement):
    prover = Prover(FACTS)
    for var, start, extent in known:
        prover.assume_range(var, parse_expr(start, DTYPES), parse_expr(extent, DTYPES))
    return prover.proves(parse_expr(statement, DTYPES))


@pytest.mark.parametrize(("known", "statement"), PROVED, ids=lambda value: str(value))
def test_proved(known, statement):
    assert proves(known, statement)


@pytest.mark.parametrize(("known", "statement"), NOT_PROVED, ids=lambda value: str(value))
def test_not_proved(known, statement):
    assert not proves(known, statement)


def test_what_is_released_no_longer_holds():
    prover = Prover()
    statement = parse_expr("i < m", DTYPES)
    mark = prover.mark()
    prover.assume(statement)
    assert prover.proves(statement)
    prover.release(mark)
    assert not prover.proves(statement)


def test_a_conjunction_is_assumed_and_proved_part_by_part():
    prover = Prover()
    prover.assume(parse_expr("i >= 0 and i < m", DTYPES))
    assert prover.proves(parse_expr("i >= 0 and i <= m", DTYPES))
    assert not prover.proves(parse_expr("i >= 0 and i < m - 1", DTYPES))


def test_the_unequal_are_ordered_where_one_is_known_to_be_no_greater():
    prover = Prover((InRange("Q", index(0), add(index_var("n"), index(1))),))
    prover.assume(parse_expr("T.int64(Q[k]) != n", DTYPES))
    prover.assume(parse_expr("n != i", DTYPES))
    assert prover.proves(parse_expr("T.int64(Q[k]) < n", DTYPES))
    assert not prover.proves(parse_expr("T.int64(Q[i]) < n", DTYPES))
    assert not prover.proves(parse_expr("T.int64(Q[k]) < n - 1", DTYPES))
    assert not prover.proves(parse_expr("i < n", DTYPES))


def test_the_unequal_are_ordered_on_either_side():
    prover = Prover()
    prover.assume(parse_expr("i >= n", DTYPES))
    prover.assume(parse_expr("n != i", DTYPES))
    assert prover.proves(parse_expr("i > n", DTYPES))
