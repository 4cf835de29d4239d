"""Partial sums of long rows side by side: when they pay, and what is packed."""

from __future__ import annotations

import pytest

from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.library.row_spmm import row_spmm
from gossamer_schedule.rules.schedule_rule import RuleContext
from gossamer_testkit import retyped, script

L2 = 1 << 20
WIDE = Target.parse(f"generic-cpu:vector_bits=512,l2={L2}")
TEXT = script("csr_spmm")


def long_rows(mean=40, *, rows=1000, columns=1000):
    return Stats(rows, columns, mean * rows, 2 * mean, 0)


def partial_sums(*, features=16, stats=None, target=WIDE, text=TEXT, dtype="float32"):
    module = retyped(parse_module(text), dtype=dtype, index_dtype="int32")
    sizes = {} if features is None else {"feat_size": features}
    return decisions_of(specialize(module, sizes), target, RuleContext(stats or long_rows()))


def decisions_of(module, target, context):
    """The decisions of the rule; None if a row has no partial sums."""
    report = row_spmm(module, target, context)
    has_sums = report is not None and "partial sums of a row" in report.decisions[0].what
    return report.decisions if has_sums else None


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
    target = Target.parse(f"generic-cpu:vector_bits={bits},l2={L2}")
    found = partial_sums(features=features, dtype=dtype, target=target)
    assert found[0].what == f"{sums} partial sums of a row in registers"
    assert found[2].what == "B_data packed at aligned addresses"


@pytest.mark.parametrize("features", [None, 1, 8, 24, 48, 64, 128])
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
    found = partial_sums(stats=stats)
    assert found[2].why.startswith(reason)
    assert "cache_region" not in {step.op for step in found[2].steps}
    assert partial_sums(stats=stats, features=32) is None, (
        "partial sums of two vectors gain nothing"
    )


TAKEN = ["C_data_rf", "csrmm_rf", "i_unit", "B_data_global", "B_data_1_c", "j_0", "k_c"]


@pytest.mark.parametrize("name", TAKEN)
def test_rows_of_programs_that_use_the_names_have_one_sum(name):
    taken = TEXT.replace("c: T.handle", f"{name}: T.handle").replace("(c,", f"({name},")
    assert taken != TEXT
    assert partial_sums(text=taken) is None


INIT = """        with T.init():
            C[i, k] = 0.0
"""


@pytest.mark.parametrize(("old", "new"), [("C[i, k] + A", "C[i, k] - A"), (INIT, "")])
def test_differences_and_sums_without_an_init_are_added_in_order(old, new):
    assert old in TEXT
    assert partial_sums(text=TEXT.replace(old, new)) is None


def test_the_default_schedule_says_why():
    module = specialize(parse_module(TEXT), {"feat_size": 16})
    found = schedule_report(module, WIDE, long_rows())
    assert found.rule == "row_spmm"
    assert all(decision.why for decision in found.decisions)
