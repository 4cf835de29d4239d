"""The rule for long rows times few features: when it applies, and what it packs."""

from __future__ import annotations

import pytest

from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.script import parse_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.library.narrow_spmm import narrow_spmm
from gossamer_schedule.rules.schedule_rule import RuleContext
from gossamer_testkit import retyped, script

L2 = 1 << 20
WIDE = Target.parse(f"generic-cpu:vector_bits=512,l2={L2}")
TEXT = script("csr_spmm")


def long_rows(mean=20, *, rows=1000, columns=1000):
    return Stats(rows, columns, mean * rows, 2 * mean, 0)


def matched(*, features=16, stats=None, target=WIDE, text=TEXT, dtype="float32"):
    module = retyped(parse_module(text), dtype=dtype, index_dtype="int32")
    sizes = {} if features is None else {"feat_size": features}
    context = RuleContext(stats or long_rows())
    return narrow_spmm(specialize(module, sizes), target, context)


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
    found = matched(features=features, dtype=dtype, target=target)
    assert found.decisions[0].what == f"{sums} partial sums of a row in registers"
    assert found.decisions[2].what == "B_data packed at aligned addresses"


@pytest.mark.parametrize("features", [None, 1, 8, 24, 48, 64, 128])
def test_other_numbers_of_features_are_left_to_other_rules(features):
    assert matched(features=features) is None


def test_short_rows_and_unknown_matrices_are_left_to_other_rules():
    assert matched(stats=long_rows(15)) is None
    assert matched(stats=long_rows(16)) is not None
    module = specialize(parse_module(TEXT), {"feat_size": 16})
    assert narrow_spmm(module, WIDE, RuleContext()) is None


@pytest.mark.parametrize(
    ("stats", "reason"),
    [
        (long_rows(20, rows=1000, columns=2000), "is not known to be gathered 16 times or more"),
        (long_rows(20, rows=9000, columns=9000), "would not stay in the private cache"),
    ],
)
def test_an_operand_that_is_not_packed(stats, reason):
    found = matched(stats=stats)
    assert found.decisions[2].why.endswith(reason)
    assert "cache_region" not in {step.op for step in found.decisions[2].steps}
    assert matched(stats=stats, features=32) is None, "partial sums of two vectors gain nothing"


TAKEN = ["C_data_rf", "csrmm_rf", "i_unit", "B_data_global", "B_data_1_c", "j_0", "k_c"]


@pytest.mark.parametrize("name", TAKEN)
def test_programs_that_use_the_names_are_left_to_other_rules(name):
    taken = TEXT.replace("c: T.handle", f"{name}: T.handle").replace("(c,", f"({name},")
    assert taken != TEXT
    assert matched(text=taken) is None


INIT = """        with T.init():
            C[i, k] = 0.0
"""


@pytest.mark.parametrize(("old", "new"), [("C[i, k] + A", "C[i, k] - A"), (INIT, "")])
def test_differences_and_sums_without_an_init_are_left_to_other_rules(old, new):
    assert old in TEXT
    assert matched(text=TEXT.replace(old, new)) is None


def test_the_default_schedule_says_why():
    module = specialize(parse_module(TEXT), {"feat_size": 16})
    found = schedule_report(module, WIDE, long_rows())
    assert found.rule == "narrow_spmm"
    assert all(decision.why for decision in found.decisions)
