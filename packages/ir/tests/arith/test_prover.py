"""The prover: machine arithmetic, scopes, conditions, declared subsets, and proofs that end."""

from __future__ import annotations

import pytest
from claims import DTYPES, FIBER, M, prover_of
from proofs import FACTS

from gossamer_ir.arith import prover
from gossamer_ir.arith.constraints import VSCALE, Constraints
from gossamer_ir.arith.elimination import Eliminator
from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.build import add, index, index_var, mul
from gossamer_ir.nodes import (
    Binary,
    Cast,
    Compare,
    Const,
    InRange,
    Load,
    Relation,
    SortedSegments,
    Var,
)
from gossamer_ir.script import parse_expr

pytestmark = pytest.mark.no_error_examples

NAN = Const("float32", "nan")
MASK = Compare("lt", index_var("i"), index_var("m"))
MASKED = Load("P", (index_var("i"),), "int32", MASK, Const("int32", "-9"))
WIDE = Load("V", (index_var("i"),), "int64")
NARROWED = Cast("int64", Cast("int8", WIDE))
MACHINE = {
    "NaN does not equal itself": Compare("eq", NAN, NAN),
    "nor no less": Compare("le", NAN, NAN),
    "a sum of narrow integers wraps": Compare(
        "gt", Binary("add", Var("b", "uint8"), Const("uint8", "1")), Var("b", "uint8")
    ),
    "a masked load may give what no fact is about": Compare("ge", Cast("int64", MASKED), index(0)),
    "a masked load in a comparison of its own dtype": Compare("ge", MASKED, Const("int32", "0")),
    "what is narrowed wraps": Compare("le", NARROWED, index(1)),
    "a large unsigned constant is negative": Compare(
        "gt", Cast("int64", Const("uint64", str(2**64 - 1))), index(0)
    ),
    "a large unsigned value is negative": Compare(
        "ge", Cast("int64", Load("U", (index_var("i"),), "uint64")), index(0)
    ),
    "unsigned comparisons are not those of int64": Compare(
        "le", Var("u", "uint64"), Binary("add", Var("u", "uint64"), Const("uint64", "1"))
    ),
}


@pytest.mark.parametrize("claim", MACHINE.values(), ids=MACHINE)
def test_what_holds_of_numbers_only_is_not_proved_of_machine_values(claim):
    facts = (*FACTS, InRange("V", index(0), index(2)), InRange("U", index(0), index(2)))
    assert not Prover(facts).proves(claim)


def test_a_proof_ends_however_deep_its_loads_are_nested():
    text = "i"
    for _ in range(30):
        text = f"T.int64(P[{text}]) + T.int64(P[{text[:40] if len(text) < 40 else 'i'}])"
    prover = prover_of([M, FIBER])
    assert not prover.proves(parse_expr(f"{text} < 0", DTYPES))
    assert not prover.proves(parse_expr(f"T.int64(Q[{text}]) < 0", DTYPES))


def test_assumptions_of_a_scope_end_with_it():
    prover = Prover()
    stmt = parse_expr("i < m", DTYPES)
    with prover.scope():
        prover.assume(stmt)
        assert prover.proves(stmt)
    assert not prover.proves(stmt)


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


CUTS = (
    SortedSegments("L", "P", unique=True),
    SortedSegments("S", "U", unique=True),
    Relation("subset", "L", "S"),
)
WHOLE = "begin=T.int64(U[i]), end=T.int64(U[i + 1])"


@pytest.mark.parametrize(
    ("place", "window", "kind", "is_proved"),
    [
        ("T.int64(P[i]) + j", WHOLE, "exact", True),
        ("T.int64(P[i + 1]) - 1 - j", WHOLE, "exact", True),
        ("T.int64(P[i]) + j + 1", WHOLE, "exact", False),
        ("T.int64(P[i]) - 1", WHOLE, "exact", False),
        ("j", WHOLE, "exact", False),
        ("T.int64(P[i + 1]) + j", WHOLE, "exact", False),
        ("T.int64(P[i]) + j", "begin=T.int64(U[i]) + 1, end=T.int64(U[i + 1])", "exact", False),
        ("T.int64(P[i]) + j", "begin=T.int64(U[i]), end=T.int64(U[i + 1]) - 1", "exact", False),
        ("T.int64(P[i]) + j", "begin=T.int64(U[j]), end=T.int64(U[j + 1])", "exact", False),
        ("T.int64(P[i]) + j", "begin=T.int64(P[i]), end=T.int64(P[i + 1])", "exact", False),
    ],
)
def test_what_is_declared_a_subset_is_found(place, window, kind, is_proved):
    dtypes = DTYPES | dict.fromkeys(("L", "S", "U"), "int32")
    facts = (*FACTS, *CUTS, InRange("U", index(0), index_var("nnz")))
    search = f'T.search("{kind}", S, {window}, value=T.int64(L[{place}]))'
    claim = parse_expr(f"{search} >= 0", dtypes)
    for premises, expected in ((facts, is_proved), (facts[:-1], False)):
        prover = Prover(premises)
        prover.assume_range("i", index(0), index_var("m"))
        prover.assume_range("j", index(0), parse_expr(FIBER[2], DTYPES))
        assert prover.proves(claim) == expected


@pytest.mark.parametrize("shift", ["16", "4611686018427387904", "4611686018427387904 * 4"])
def test_a_multiple_that_fits_no_machine_integer_stays_one(shift):
    prover = Prover()
    prover.assume(parse_expr("n >= 0 and m >= 0", DTYPES))
    prover.assume_range("i", index(0), index(2))
    prover.assume_range("j", index(0), parse_expr("(n + 1) // 2", DTYPES))
    prover.assume(parse_expr("i * ((n + 1) // 2) + j < n", DTYPES))
    assert prover.proves(parse_expr(f"j * {shift} + 3 >= 0", DTYPES))
    assert not prover.proves(parse_expr(f"j * {shift} + 3 < m", DTYPES))


@pytest.mark.parametrize("condition", ["n > w * 8 + T.min(b, 7)", "n > w * 8 + b"])
def test_an_element_below_a_row_is_one_of_the_matrix_whatever_is_said_of_its_place(condition):
    dtypes = dict.fromkeys("bimnw", "int64")
    prover = Prover(())
    words = "((n + 7) // 8)"
    premises = ("i >= 0", "i < m", "w >= 0", f"w < {words}", "n >= 0", "b >= 0", condition)
    with prover.scope():
        for text in premises:
            prover.assume(parse_expr(text, dtypes))
        assert prover.proves(parse_expr(f"i * {words} + w < m * {words}", dtypes))
        assert not prover.proves(parse_expr(f"i * {words} + w < m * {words} - 1", dtypes))


def test_the_square_of_vscale_has_no_known_range():
    """Splits of splits by vscale make it; it is no other factor times vscale."""
    for is_lower in (True, False):
        assert Constraints().range_bound(mul(VSCALE, VSCALE), is_lower=is_lower) is None


def test_what_was_proved_is_not_proved_again_in_another_prover(monkeypatch):
    searched = []
    proves = Eliminator.proves

    def counted(eliminator, goal):
        searched.append(goal)
        return proves(eliminator, goal)

    monkeypatch.setattr(Eliminator, "proves", counted)
    monkeypatch.setattr(prover, "_answers", {})
    claim, assumed = parse_expr("i < m + 1", DTYPES), ("i < m",)
    assert [prover_of(assumed).proves(claim) for _ in range(3)] == [True] * 3
    assert len(searched) == 1
    # Neither with other constraints nor with other facts.
    assert not prover_of(()).proves(claim)
    other = Prover()
    other.assume(parse_expr("i < m", DTYPES))
    assert other.proves(claim)
    assert len(searched) == 3


def test_places_with_equal_constraints_have_states_of_their_own():
    states = []
    place = Prover()
    for _ in range(2):
        with place.scope():
            place.assume_nonnegative(index_var("i"))
            states.append(place.state)
    assert len({*states, place.state}) == 3
