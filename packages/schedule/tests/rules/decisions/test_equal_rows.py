"""Neighboring rows with equal columns: when their groups pay, and what they are."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rule_programs import AXES, CSR, DOT, SUM, machine, module_of

from gossamer_ir.interchange.records import Stats
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.library.row_spmv import row_spmv
from gossamer_schedule.rules.schedule_rule import RuleContext

FAST = machine("gathers=fast,vector_bits=512")
SMALL_CACHES = machine("gathers=fast,vector_bits=512,l2=64")
EQUAL = Stats(1000, 1000, 30_000, longest_row=90, empty_rows=0, equal_rows=334)


def first_decision(body=CSR + DOT, *, target=FAST, stats=EQUAL, is_sibling=False):
    context = RuleContext(stats, is_sibling=is_sibling, machine=target)
    return row_spmv(module_of(body), context).decisions[0].what


def test_rows_run_side_by_side():
    what = "3 rows side by side, 8 partial results in lanes, gathers shared where columns are equal"
    assert first_decision() == what


OTHERS = {
    "few equal rows": {"stats": replace(EQUAL, equal_rows=0)},
    "no stats": {"stats": None},
    "short rows": {"stats": replace(EQUAL, nnz=2_000, longest_row=40)},
    "slower gathers": {"target": machine("gathers=moderate,vector_bits=512")},
    "masks without registers": {"target": machine("gathers=fast,vector_bits=256")},
    "a sibling": {"is_sibling": True},
    "contiguous terms": {"body": CSR + SUM},
    "rows of one width": {"body": AXES["ell"] + DOT},
    "no init": {"body": CSR + DOT.replace("        with T.init():\n            C[i] = 0.0\n", "")},
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_rows_run_one_by_one(name):
    assert "side by side" not in first_decision(**OTHERS[name])


@pytest.mark.parametrize("equal", [0, 333, 334, 999])
def test_a_class_of_stats_keeps_whether_a_third_of_the_rows_are_equal(equal):
    rounded = replace(EQUAL, equal_rows=equal).representative()
    assert bool(rounded.equal_rows) == (equal >= 334)
    assert rounded.representative() == rounded


@pytest.mark.parametrize(("target", "count"), [(FAST, 0), (SMALL_CACHES, 2)])
def test_elements_are_prefetched_as_those_of_other_rows(target, count):
    steps = schedule_report(module_of(CSR + DOT), target, EQUAL).schedule.loop
    assert [step.op for step in steps].count("prefetch") == count
