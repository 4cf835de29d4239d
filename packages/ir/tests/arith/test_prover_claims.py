"""Statements that the prover must prove and must not prove, each with its premises.

A row lists the premises in order (the range of a variable as (name, start, extent), or a condition), and the
claim. `proofs` checks every small case of each row: a claim that must be proved is true in all cases, and a
claim that must not be proved is false in at least one.
"""

from __future__ import annotations

import itertools
import random

import pytest
from claims import DTYPES, FIBER, M, prover_of
from proofs import Statement, random_expr, random_premises

from gossamer_ir.script import parse_expr

pytestmark = pytest.mark.no_error_examples

J = ("j", "0", "n")
K = ("k", "0", "nnz")
OTHER = ("l", "0", "T.int64(P[k + 1]) - T.int64(P[k])")
BESIDE = ("l", "0", "T.int64(O[i + 1]) - T.int64(O[i])")
IN_SUM = "T.int64(S[i]) + j * (T.int64(O[i + 1]) - T.int64(O[i])) + l"
POSITION = "T.int64(P[i]) + j"
ROW = 'T.search("upper", P, begin=1, end=m, value=k)'
LOWER = 'T.search("lower", P, begin=i, end=m, value=k)'
SLOT = 'T.search("exact", P, begin=0, end=m, value=k)'
IN_FIBER = 'T.search("exact", Q, begin=T.int64(P[i]), end=T.int64(P[i + 1]), value=x)'
TILES = ("i", "0", "(m + 15) // 16")
TILE = ("j", "0", "T.min(16, m - i * 16)")
FUSED = ("a", "0", "m * n")
PROVED = {
    "constants and ranges": [
        ([], "0 <= 0"),
        ([M], "0 <= i"),
        ([M], "i < m"),
        ([M], "i + 1 <= m"),
        ([M], "m > 0"),
        ([M], "m != 0"),
        ([("i", "2", "m")], "i >= 2"),
        ([("i", "-3", "3")], "i < 0"),
        ([("i", "-3", "3")], "-i <= 3"),
        ([M], "m - 1 - i >= 0"),
        ([M, ("j", "0", "i")], "j + 1 < m"),
        ([M, ("j", "0", "m - i")], "i + j < m"),
        ([M, ("j", "i", "m - i")], "j < m"),
        ([M, ("j", "0", "16")], "i * 16 + j < m * 16"),
        ([("i", "0", "4"), ("j", "0", "8")], "i * 8 + j < 32"),
        ([("i", "0", "4"), ("j", "0", "8")], "31 - (i * 8 + j) >= 0"),
        ([("i", "0", "4"), ("j", "0", "3")], "3 - i + (2 - j) * 4 < 12"),
        ([("x", "-2", "5")], "x * 2 >= -4"),
        ([("x", "-2", "5")], "x * -3 <= 6"),
    ],
    "products of sizes": [
        ([M, J], "i * n + j < m * n"),
        ([M, J], "i * n + j >= 0"),
        ([M, J], "n * i + j < m * n"),
        ([M, J, ("k", "0", "l")], "(i * n + j) * l + k < m * n * l"),
        ([M, J], "(i + 1) * n <= m * n"),
        ([M], "i * i >= 0"),
        ([("t", "0", "m")], "t * (T.vscale() * 4) >= 0"),
        ([("t", "0", "m"), ("j", "0", "T.vscale() * 4")], "t * (T.vscale() * 4) + j >= 0"),
        ([("t", "0", "m"), ("j", "0", "T.vscale()")], "t * T.vscale() + j < m * T.vscale()"),
        ([], "T.vscale() * 4 >= 4"),
        ([M, ("j", "0", "n - k")], "i * n - i * k + j < m * n - m * k"),
        ([M, ("j", "0", "n - k")], "i * n - i * k + j >= 0"),
        (["x >= y", M, J], "i * x + j <= (m - 1) * (x - y) + i * y + n - 1"),
    ],
    "floor division": [
        ([M], "i // 4 <= i"),
        ([M], "i // 4 >= 0"),
        ([("i", "0", "64")], "i // 16 < 4"),
        ([("i", "0", "64")], "i // 16 * 16 <= i"),
        ([], "(n + 15) // 16 * 16 >= n"),
        ([], "n // 16 * 16 <= n"),
        ([], "n // 16 * 16 > n - 16"),
        ([("x", "-8", "8")], "x // 4 >= -2"),
        ([("x", "-8", "8")], "x // 4 < 0"),
        ([("x", "-8", "8")], "x // -4 <= 2"),
        ([("x", "-8", "8")], "x // -4 >= 0"),
        ([("i", "0", "m"), ("j", "0", "16")], "(i * 16 + j) // 16 == i"),
        ([("i", "0", "m")], "(i + 1) // 2 <= i"),
        ([("i", "0", "(m + 3) // 4")], "i * 4 < m"),
        ([("i", "0", "m // 4"), ("j", "0", "4")], "i * 4 + j < m"),
        ([TILES, TILE], "i * 16 + j < m"),
        ([FUSED, "n > 0"], "a // n < m"),
        ([FUSED, "n > 0"], "a // n >= 0"),
        ([M, J], "(i * n + j) // n == i"),
        ([("i", "0", "64")], "i >> 4 < 4"),
        ([("x", "-8", "8")], "x >> 2 >= -2"),
    ],
    "remainders": [
        ([M], "i % 4 < 4"),
        ([M], "i % 4 >= 0"),
        ([], "x % 4 >= 0"),
        ([], "x % 4 < 4"),
        ([], "x % -4 <= 0"),
        ([], "x % -4 > -4"),
        ([], "x // 4 * 4 + x % 4 == x"),
        ([("i", "0", "m")], "i % 4 <= i"),
        ([("i", "0", "64")], "i // 8 * 8 + i % 8 < 64"),
        ([("i", "0", "m"), ("j", "0", "16")], "(i * 16 + j) % 16 == j"),
        ([FUSED, "n > 0"], "a % n < n"),
        ([FUSED, "n > 0"], "a % n >= 0"),
        ([FUSED, "n > 0"], "a // n * n + a % n < m * n"),
        ([], "x & 15 < 16"),
        ([], "7 & x >= 0"),
    ],
    "minimum, maximum and choice": [
        ([M], "T.min(i, 7) <= 7"),
        ([M], "T.max(i, 7) >= 7"),
        ([M], "T.min(i, 7) >= 0"),
        ([M], "T.max(i, m - 1) < m"),
        ([("i", "0", "T.min(m, n)")], "i < m and i < n"),
        ([("i", "0", "T.min(m, n)")], "i * 2 < m + n"),
        ([], "T.min(x, y) <= T.max(x, y)"),
        ([], "T.min(x, y) + T.max(x, y) == x + y"),
        ([], "T.max(x, 0) >= x"),
        ([], "T.min(T.max(x, 0), 7) <= 7"),
        ([], "T.min(T.max(x, 0), 7) >= 0"),
        ([J], "T.Select(x < n, T.max(x, 0), j) < n"),
        ([M], "T.if_then_else(i > 3, i - 3, 0) >= 0"),
        ([("i", "0", "T.if_then_else(k < m, n, 0)")], "i < n"),
        ([("i", "0", "T.if_then_else(k < m, n, 0)")], "k < m"),
    ],
    "predicates": [
        (["x >= 0 and x < n"], "x <= n"),
        (["x >= y", "x != y"], "x > y"),
        (["x <= y", "y != x"], "y - x >= 1"),
        (["x == y + 1"], "x > y"),
        (["not (x < y)"], "x >= y"),
        (["not (x < 0 or x >= n)"], "x < n"),
        ([], "x < y or x >= y"),
        ([], "not (x < y and x > y)"),
        (["x >= 2 * y", "y > 1"], "x >= 4"),
        (["T.if_then_else(x >= 0, x < n, False)"], "n > 0"),
        (["x * 2 < n", "n < 4"], "x <= 1"),
        (["x > y"], "x != y"),
        (["x >= 0"], "T.if_then_else(x >= n, True, x < n)"),
    ],
    "indirect loads": [
        ([M], "T.int64(P[i]) >= 0"),
        ([M], "T.int64(P[i]) <= nnz"),
        ([], "O[0] == 0"),
        ([("i", "0", "4"), "O[0] <= O[i]"], "O[i] >= 0"),
        ([("i", "0", "3"), "i == 0"], "O[i] <= O[i + 1]"),
        ([], "T.int64(O[3]) == nnz"),
        ([], "T.int64(O[4 - 1]) - T.int64(O[0]) == nnz"),
        ([M], "P[i] >= 0"),
        ([M], "T.int64(P[i]) <= T.int64(P[i + 1])"),
        ([M], "P[i] <= P[i + 1]"),
        ([M], "T.int64(P[i]) <= T.int64(P[i + 3])"),
        ([M, ("k", "i", "m")], "P[i] <= P[k]"),
        ([M, FIBER], f"{POSITION} < nnz"),
        ([M, FIBER], f"{POSITION} >= 0"),
        ([M, FIBER], f"{POSITION} < T.int64(P[i + 1])"),
        ([K], "T.int64(Q[k]) < n"),
        ([K], "T.int64(Q[k]) * 3 + 2 < n * 3"),
        ([M, FIBER, ("k", "0", "m")], f"T.int64(Q[{POSITION}]) * m + k < n * m"),
        ([M, FIBER], f"T.int64(D[{POSITION}]) // 4 * 4 < n"),
        ([], "T.int64(B[i]) < 256"),
        ([], "T.int64(B[i]) >= 0"),
        ([], "T.int64(W[i]) > -3000000000"),
        ([], "W[i] == W[i]"),
        (["T.int64(W[i]) >= 0"], "T.int64(W[i]) + 1 > 0"),
    ],
    "segments of indptr are disjoint": [
        ([M, FIBER, ("k", "i + 1", "m - i - 1"), OTHER], f"{POSITION} < T.int64(P[k]) + l"),
        ([M, FIBER, ("k", "0", "i"), OTHER], f"T.int64(P[k]) + l < {POSITION}"),
        ([M, FIBER, "i < k", OTHER], f"{POSITION} != T.int64(P[k]) + l"),
        ([M, FIBER], f"{POSITION} < T.int64(P[i + 2])"),
        ([M, FIBER, ("k", "i + 1", "m")], f"{POSITION} < T.int64(P[k])"),
        ([("i", "0", "2"), ("k", "0", "2"), "i < k"], "P[i + 1] <= P[k]"),
        ([M, FIBER, ("k", "0", "i + 1")], f"{POSITION} >= T.int64(P[k])"),
    ],
    "sums of products": [
        ([M, FIBER, BESIDE], f"{IN_SUM} >= T.int64(S[0])"),
        ([M, FIBER, BESIDE], f"{IN_SUM} < T.int64(S[i + 1])"),
        ([M, FIBER, BESIDE], f"{IN_SUM} < T.int64(S[m])"),
    ],
    "uniqueness within a fiber": [
        ([M, FIBER, ("k", "0", "j")], f"T.int64(Q[T.int64(P[i]) + k]) < T.int64(Q[{POSITION}])"),
        ([M, FIBER, ("k", "0", "j")], f"Q[T.int64(P[i]) + k] != Q[{POSITION}]"),
        ([M, FIBER, ("k", "0", "j")], f"Q[T.int64(P[i]) + k] + j - k <= Q[{POSITION}] + 0"),
        ([M, FIBER, "j > 0"], f"T.int64(Q[{POSITION} - 1]) < T.int64(Q[{POSITION}])"),
        (
            [("j", "T.int64(P[i])", "T.int64(P[i + 1]) - T.int64(P[i])"), "k < j", "P[i] <= k"],
            "Q[k] < Q[j]",
        ),
        ([M, FIBER, ("k", "0", "j")], f"D[T.int64(P[i]) + k] <= D[{POSITION}]"),
        ([("j", "0", "3"), ("k", "0", "j")], "R[i, k] < R[i, j]"),
        ([("j", "0", "2")], "T.int64(R[i, j]) + 1 <= T.int64(R[i, j + 1])"),
    ],
    "searches": [
        ([M], f"{ROW} - 1 >= 0"),
        ([M], f"{ROW} - 1 < m"),
        ([], f"{SLOT} >= -1"),
        ([M], f"{SLOT} < m"),
        ([M], f"{LOWER} >= i"),
        ([M], f"{LOWER} <= m"),
        ([M, f"{LOWER} < m"], f"{LOWER} + 1 <= m"),
        ([M, "nnz >= 0"], f"{IN_FIBER} < nnz"),
        ([M, f"{IN_FIBER} >= 0"], f"{IN_FIBER} < T.int64(P[i + 1])"),
        ([M], f"T.max({IN_FIBER}, 0) >= 0"),
    ],
}
NOT_PROVED = {
    "constants and ranges": [
        ([], "0 < 0"),
        ([], "i >= 0"),
        ([M], "i > 0"),
        ([M], "i + 1 < m"),
        ([M], "i < n"),
        ([M], "m > 1"),
        ([("i", "-1", "m")], "i >= 0"),
        ([("i", "-3", "4")], "i < 0"),
        ([("i", "-3", "3")], "-i < 3"),
        ([M, ("j", "0", "i")], "j + 2 < m"),
        ([M, ("j", "0", "m - i")], "i + j + 1 < m"),
        ([M, ("j", "i", "m")], "j < m"),
        ([M, ("j", "0", "17")], "i * 16 + j < m * 16"),
        ([("i", "0", "4"), ("j", "0", "8")], "i * 8 + j < 31"),
        ([("x", "-2", "5")], "x * 2 > -4"),
        ([("x", "-2", "5")], "x * -3 < 6"),
    ],
    "products of sizes": [
        ([M, J], "i * n + j < m * m"),
        ([M, J], "i * n + j + 1 < m * n"),
        ([M, J], "i * m + j < m * n"),
        ([M], "i * n <= m * n"),
        ([], "i * n >= 0"),
        ([("i", "-2", "m")], "i * n >= 0"),
        ([("t", "-1", "m")], "t * (T.vscale() * 4) >= 0"),
        ([("t", "0", "m"), ("j", "0", "T.vscale() + 1")], "t * T.vscale() + j < m * T.vscale()"),
        ([], "T.vscale() * 4 >= 5"),
        ([], "T.vscale() <= 2"),
        ([M, ("j", "0", "n - k")], "i * n - i * k + j < m * n - k"),
        ([M, ("j", "0", "n - k + 1")], "i * n - i * k + j < m * n - m * k"),
        ([M, J], "i * x - i * y + j <= m * x - m * y + n"),
    ],
    "floor division": [
        ([("i", "-4", "4")], "i // 4 >= 0"),
        ([("i", "0", "65")], "i // 16 < 4"),
        ([], "n // 16 * 16 >= n"),
        ([], "i // 4 <= i"),
        ([("x", "-8", "8")], "x // 4 > -2"),
        ([("x", "-8", "8")], "x // 4 < -1"),
        ([("x", "-8", "8")], "x // -4 < 2"),
        ([("x", "-8", "8")], "x // -4 > 0"),
        ([("i", "0", "m"), ("j", "0", "17")], "(i * 16 + j) // 16 == i"),
        ([("i", "0", "(m + 3) // 4")], "i * 4 + 1 < m"),
        ([("i", "0", "(m + 3) // 4"), ("j", "0", "4")], "i * 4 + j < m"),
        ([TILES, ("j", "0", "16")], "i * 16 + j < m"),
        ([FUSED], "a // n < m"),
        ([FUSED], "a // n >= 0"),
        ([FUSED, "n > 0"], "a // n < m - 1"),
        ([FUSED, "n > 0"], "a // n < n"),
        ([M, ("j", "0", "n + 1")], "(i * n + j) // n == i"),
        ([("i", "0", "65")], "i >> 4 < 4"),
        ([("x", "-9", "8")], "x >> 2 >= -2"),
    ],
    "remainders": [
        ([M], "i % 4 < 3"),
        ([], "x % 4 <= x"),
        ([], "x % -4 >= 0"),
        ([], "x % n < n"),
        ([], "x % n >= 0"),
        ([FUSED], "a % n >= 0"),
        ([FUSED, "n > 0"], "a % n < m"),
        ([FUSED, "n > 0"], "a % n < n - 1"),
        ([("i", "0", "m"), ("j", "0", "17")], "(i * 16 + j) % 16 == j"),
        ([M], "i % 2 <= i % 3"),
        ([], "x & 15 < 15"),
        ([], "x & -4 >= 0"),
        ([], "x // 4 * 4 + x % 4 > x"),
    ],
    "minimum, maximum and choice": [
        ([M], "T.min(i, 7) >= 7"),
        ([M], "T.max(i, 2) <= 2"),
        ([M], "T.max(i, k) < m"),
        ([M], "T.min(i, k) >= 0"),
        ([("i", "0", "T.max(m, n)")], "i < m"),
        ([("i", "0", "T.min(m, n)")], "i + 1 < m"),
        ([], "T.min(x, y) < T.max(x, y)"),
        ([], "T.max(x, 0) > x"),
        ([J], "T.Select(x <= n, T.max(x, 0), j) < n"),
        ([M], "T.if_then_else(i > 1, i - 3, 0) >= 0"),
        ([("i", "0", "T.if_then_else(k < m, n, 1)")], "k < m"),
        ([("i", "0", "T.if_then_else(k < m, n, 1)")], "i < n"),
    ],
    "predicates": [
        (["x >= 0 or x < n"], "x >= 0"),
        (["x != y"], "x > y"),
        (["x >= y"], "x > y"),
        (["not (x < y)"], "x > y"),
        (["not (x < 0 and x >= n)"], "x < n"),
        (["not (x < 0 and y < 0)"], "x >= 0"),
        ([], "x < y or x > y"),
        ([], "not (x < y or x > y)"),
        (["x == y + 1"], "x > y + 1"),
        (["T.if_then_else(x >= 0, True, x < n)"], "x < n"),
        (["x * 2 < n", "n < 4"], "x <= 0"),
        (["x >= y"], "x != y"),
        (["2 * x == 2 * y + 2"], "x == y"),
    ],
    "indirect loads": [
        ([M], "T.int64(P[i]) < nnz"),
        ([], "P[0] == 0"),
        ([], "O[1] == 0"),
        ([], "T.int64(O[2]) == nnz"),
        ([], "T.int64(O[3]) < nnz"),
        ([M], "T.int64(P[i + 1]) <= T.int64(P[i])"),
        ([M], "T.int64(P[i]) < T.int64(P[i + 1])"),
        ([M], "P[i] > 0"),
        ([M, ("k", "0", "m")], "P[i] <= P[k]"),
        ([M, FIBER], f"{POSITION} + 1 < nnz"),
        ([M, FIBER], "T.int64(P[i + 1]) + j < nnz"),
        ([M, ("j", "0", "T.int64(P[i + 1])")], f"{POSITION} < nnz"),
        ([K], "T.int64(Q[k]) <= T.int64(Q[k + 1])"),
        ([K], "T.int64(Q[k]) + 1 < n"),
        ([K], "T.int64(Q[k]) > 0"),
        ([K], "T.int64(Q[k]) < nnz"),
        ([M], "T.int64(W[i]) >= 0"),
        ([M], "W[i] < n"),
        ([], "T.int64(B[i]) < 255"),
        ([], "V[i] >= 0"),
        ([M], "W[i] <= W[i + 1]"),
    ],
    "segments of indptr are disjoint": [
        ([M, FIBER, ("k", "i", "m"), OTHER], f"{POSITION} < T.int64(P[k]) + l"),
        ([M, FIBER, ("k", "0", "i + 1"), OTHER], f"T.int64(P[k]) + l < {POSITION}"),
        ([M, FIBER, "i != k", OTHER], f"{POSITION} < T.int64(P[k]) + l"),
        (
            [M, ("j", "0", "T.int64(P[i + 1]) - T.int64(P[i]) + 1"), "i < k", OTHER],
            f"{POSITION} < T.int64(P[k]) + l",
        ),
        ([M, FIBER, ("k", "0", "i + 1")], f"{POSITION} > T.int64(P[k])"),
        ([M, FIBER, "i < k"], f"{POSITION} + 1 < T.int64(P[k])"),
    ],
    "sums of products": [
        ([M, FIBER, BESIDE], f"{IN_SUM} >= 8"),
        ([M, FIBER, BESIDE], f"{IN_SUM} + 1 < T.int64(S[i + 1])"),
        ([M, FIBER, BESIDE], "T.int64(S[i]) + l * (T.int64(O[i + 1]) - T.int64(O[i])) + j < T.int64(S[m])"),
        ([M, BESIDE], "T.int64(S[i]) + l < T.int64(S[i + 1])"),
    ],
    "uniqueness within a fiber": [
        (
            [M, FIBER, ("k", "0", "j + 1")],
            f"T.int64(Q[T.int64(P[i]) + k]) < T.int64(Q[{POSITION}])",
        ),
        ([M, FIBER, ("k", "0", "j")], f"D[T.int64(P[i]) + k] < D[{POSITION}]"),
        ([K, ("j", "0", "k")], "Q[j] < Q[k]"),
        ([K, ("j", "0", "k")], "Q[j] <= Q[k]"),
        ([K, ("j", "0", "k")], "Q[j] != Q[k]"),
        ([M, FIBER], f"T.int64(Q[{POSITION}]) < T.int64(Q[{POSITION} + 1])"),
        ([M, FIBER, ("k", "0", "j")], f"Q[T.int64(P[i]) + k] + j - k < Q[{POSITION}] + 0"),
        ([("j", "0", "3"), ("k", "0", "j")], "Z[i, k] < Z[i, j]"),
        ([("j", "0", "3")], "R[i, j] < R[i + 1, j]"),
        ([("j", "0", "3"), ("k", "0", "j")], "R[k, i] < R[j, i]"),
        ([("j", "0", "3")], "R[i, j] > j"),
    ],
    "searches": [
        ([], f"{ROW} - 1 < m"),
        ([M], f"{ROW} < m"),
        ([], f"{SLOT} < m"),
        ([M], f"{SLOT} >= 0"),
        ([M], f"{LOWER} < m"),
        ([M], f"{LOWER} > i"),
        ([], f"{LOWER} <= m"),
        ([M], f"{IN_FIBER} >= 0"),
        ([M], f"{IN_FIBER} >= T.int64(P[i])"),
        ([M], f"{IN_FIBER} + 1 < nnz"),
    ],
}  # fmt: skip


def rows(table):
    return [
        pytest.param(premises, claim, id=f"{name}: {claim} ({number})")
        for name, values in table.items()
        for number, (premises, claim) in enumerate(values)
    ]


@pytest.mark.parametrize(("premises", "claim"), rows(PROVED))
def test_a_claim_that_is_true_in_every_small_case_is_proved(premises, claim):
    holds = [is_true for _, is_true in Statement(tuple(premises), claim).cases()]
    assert holds
    assert all(holds)
    assert prover_of(premises).proves(parse_expr(claim, DTYPES))


@pytest.mark.parametrize(("premises", "claim"), rows(NOT_PROVED))
def test_a_claim_that_is_false_in_a_small_case_is_not_proved(premises, claim):
    assert Statement(tuple(premises), claim).counterexample() is not None
    assert not prover_of(premises).proves(parse_expr(claim, DTYPES))


def test_each_table_has_claims_of_the_same_kinds():
    assert PROVED.keys() == NOT_PROVED.keys()


BOUNDS = {">=": range(6, -7, -1), "<=": range(-6, 7)}
"""For each comparison, constants from the strongest to the weakest bound."""


def strongest_bounds(premises, expr):
    """The strongest lower and the strongest upper bound that are proved: what a wrong proof exceeds first."""
    prover = prover_of(premises)
    for comparison, bounds in BOUNDS.items():
        claims = (f"{expr} {comparison} {bound}" for bound in bounds)
        yield from itertools.islice(
            (claim for claim in claims if prover.proves(parse_expr(claim, DTYPES))), 1
        )


@pytest.mark.parametrize("seeds", [range(start, start + 30) for start in range(0, 150, 30)])
def test_the_strongest_bounds_that_are_proved_hold_in_every_small_case(seeds):
    stmts = [
        Statement(premises, claim)
        for rng in map(random.Random, seeds)
        for premises in [random_premises(rng)]
        for claim in strongest_bounds(premises, random_expr(rng))
    ]
    wrong = [stmt for stmt in stmts if stmt.counterexample() is not None]
    assert wrong == []
    assert len(stmts) >= 5, "the premises are too weak to prove anything"
