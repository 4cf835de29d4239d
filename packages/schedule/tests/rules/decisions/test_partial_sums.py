"""Partial sums of long rows side by side: when they pay, and what is packed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rule_programs import machine

from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.library.row_spmm import row_spmm
from gossamer_schedule.rules.schedule_rule import RuleContext
from gossamer_testkit import script

L2 = 1 << 20
WIDE = machine(f"vector_bits=512,l2={L2}")
SMALL = machine("vector_bits=512,l2=16384,l3=32768")
TEXT = script("csr_spmm")


def long_rows(mean=40, *, rows=1000, columns=1000):
    return Stats(rows, columns, mean * rows, 2 * mean, 0)


def partial_sums(*, features=16, stats=None, target=WIDE, text=TEXT, dtype="float32"):
    module = retype_module(parse_module(text), dtype=dtype, index_dtype="int32")
    sizes = {} if features is None else {"feat_size": features}
    return decisions_of(specialize(module, sizes), target, RuleContext(stats or long_rows()))


def decisions_of(module, target, context):
    """The decisions of the rule; None if a row has no partial sums."""
    report = row_spmm(module, replace(context, machine=target))
    decisions = () if report is None else report.decisions
    return (
        decisions
        if any("partial sums of a row" in decision.what for decision in decisions)
        else None
    )


def operand_decision(decisions):
    """The decision about the dense operand."""
    return next(
        decision
        for decision in decisions
        if "operand" in decision.what or "packed" in decision.what
    )


@pytest.mark.parametrize(
    ("features", "dtype", "bits", "sums"),
    [
        (16, "float32", 512, 4),
        (32, "float32", 512, 4),
        (8, "float64", 512, 4),
        (4, "float32", 128, 4),
        (16, "float32", 256, 4),
    ],
)
def test_one_or_two_vectors_have_several_sums(features, dtype, bits, sums):
    target = machine(f"vector_bits={bits},l2={L2}")
    decisions = partial_sums(features=features, dtype=dtype, target=target)
    assert decisions[0].what == f"{sums} partial sums of a row in registers"
    assert decisions[2].what == "B_data packed at aligned addresses"


@pytest.mark.parametrize("features", [None, 1, 8, 24, 80, 128])
def test_rows_of_other_numbers_of_features_have_one_sum(features):
    assert partial_sums(features=features) is None


def test_short_rows_and_unknown_matrices_have_one_sum():
    assert partial_sums(stats=long_rows(15)) is None
    assert partial_sums(stats=long_rows(16)) is not None
    module = specialize(parse_module(TEXT), {"feat_size": 16})
    assert decisions_of(module, WIDE, RuleContext()) is None


def test_a_part_of_fused_rows_has_one_sum():
    module = specialize(parse_module(TEXT), {"feat_size": 16})
    assert decisions_of(module, WIDE, RuleContext(long_rows(), is_sibling=True)) is None


@pytest.mark.parametrize(
    ("stats", "reason"),
    [
        (
            long_rows(31),
            "a row of B_data is used fewer than 32 times on average",
        ),
        (long_rows(40, rows=9000, columns=9000), "the copy would take"),
    ],
)
def test_an_operand_that_is_not_packed(stats, reason):
    operand = operand_decision(partial_sums(stats=stats))
    assert operand.why.startswith(reason)
    assert "cache_region" not in {step.op for step in operand.steps}


@pytest.mark.parametrize(
    ("features", "dtype"),
    [(16, "float32"), (32, "float32"), (64, "float32"), (8, "float64"), (32, "float64")],
)
def test_a_few_vectors_that_are_aligned_have_two_sums(features, dtype):
    decisions = partial_sums(features=features, dtype=dtype, stats=long_rows(31))
    assert decisions[0].what == "vectors begin at aligned addresses of B_data"
    assert decisions[1].what == "2 partial sums of a row in registers"


def test_four_vectors_are_aligned_where_two_are_packed():
    assert operand_decision(partial_sums(features=32)).what.endswith("packed at aligned addresses")
    assert partial_sums(features=64)[0].what == "vectors begin at aligned addresses of B_data"


@pytest.mark.parametrize("features", [16, 32])
def test_vectors_that_are_neither_packed_nor_aligned_have_sums_if_there_is_one(features):
    decisions = partial_sums(features=features, stats=long_rows(31), target=SMALL)
    assert (decisions is not None) == (features == 16)
    if decisions:
        assert decisions[0].what == "vectors begin at the first feature"
        assert decisions[1].what == "4 partial sums of a row in registers"


def test_aligned_sums_are_stored_around_the_caches_if_they_are_large():
    stats = long_rows(20, rows=1 << 18, columns=10000)
    decisions = partial_sums(stats=stats)
    assert "C_data is stored around the caches" in {decision.what for decision in decisions}


INIT = """        with T.init():
            C[i, k] = 0.0
"""


@pytest.mark.parametrize(("old", "new"), [("C[i, k] + A", "C[i, k] - A"), (INIT, "")])
def test_differences_and_sums_without_an_init_are_added_in_order(old, new):
    assert old in TEXT
    assert partial_sums(text=TEXT.replace(old, new)) is None


def test_the_default_schedule_says_why():
    module = specialize(parse_module(TEXT), {"feat_size": 16})
    report = schedule_report(module, WIDE, long_rows())
    assert report.rule == "row_spmm"
    assert all(decision.why for decision in report.decisions)
