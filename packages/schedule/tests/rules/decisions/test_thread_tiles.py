"""Tiles of features that are packed by their threads: when they pay, and what the schedule does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rule_programs import machine

from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule.rules.library.row_spmm import row_spmm
from gossamer_schedule.rules.schedule_rule import RuleContext
from gossamer_testkit import script

MACHINE = "vector_bits={bits},l2=2097152,l3=16777216,cores={cores}"
TEXT = script("csr_spmm")


def graph(uses=32, *, columns=8192):
    """A square matrix with so many elements in a row and in a column."""
    return Stats(columns, columns, uses * columns, 4 * uses, 0)


def report(*, features=512, stats=None, dtype="float32", bits=512, cores=2, text=TEXT, part=False):
    module = retype_module(parse_module(text), dtype=dtype, index_dtype="int32")
    sizes = {} if features is None else {"feat_size": features}
    context = RuleContext(stats or graph(), is_sibling=part)
    target = machine(MACHINE.format(bits=bits, cores=cores))
    rule_report = row_spmm(specialize(module, sizes), replace(context, machine=target))
    assert rule_report is not None
    return rule_report


def is_packed(**options):
    return "cache_region" in {
        step.op for decision in report(**options).decisions for step in decision.steps
    }


def reason(**options):
    """Why the operand is read where it is."""
    (why,) = (
        decision.why
        for decision in report(**options).decisions
        if decision.what == "the dense operand is read where it is"
    )
    return why


def test_a_large_operand_that_is_used_often_is_packed_by_each_thread():
    rule_report = report()
    what = [decision.what for decision in rule_report.decisions]
    assert what[0] == "features in 8 tiles of 4 vectors of 16 lanes, around the rows i"
    assert "B_data packed for each tile of features" in what
    parallel = [
        step for one in rule_report.decisions for step in one.steps if step.op == "parallel"
    ]
    assert [step.args["loop"] for step in parallel] == ["k_0"], "no thread reads another's copy"


@pytest.mark.parametrize(
    ("dtype", "bits", "vectors", "lanes"),
    [("float32", 256, 8, 8), ("float64", 512, 4, 8), ("float32", 128, 8, 4)],
)
def test_a_row_of_a_tile_has_256_bytes_if_they_fit_the_registers(dtype, bits, vectors, lanes):
    what = report(dtype=dtype, bits=bits).decisions[0].what
    assert f"of {vectors} vectors of {lanes} lanes, around the rows" in what


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"features": 520}, "there are not several whole tiles"),
        ({"features": None}, "there are not several whole tiles"),
        ({"cores": 16}, "8 tiles would not keep 16 cores busy"),
        ({"cores": 7}, "8 tiles would not keep 7 cores busy"),
        ({"stats": graph(23)}, "a row of B_data is used fewer than 24 times"),
        ({"stats": graph(columns=2048)}, "B_data has 4 MiB, and rows of 32 elements pay"),
        ({"stats": graph(45, columns=2048)}, "B_data has 4 MiB, and rows of 45 elements pay"),
        ({"stats": graph(64, columns=512)}, "B_data has 1 MiB, and rows of 64 elements pay"),
        ({"stats": Stats(512, 4096, 15 * 4096, 300, 0)}, "a row of B_data is used fewer than 16"),
        ({"stats": graph(columns=32768)}, "the copy of a tile would take 8 MiB, and 4 MiB"),
    ],
)
def test_an_operand_that_is_not_packed(options, why):
    assert not is_packed(**options)
    assert reason(**options).startswith(why)


@pytest.mark.parametrize(
    "options",
    [
        {"stats": graph(24)},
        {"stats": graph(columns=4096)},
        {"stats": graph(46, columns=2048)},
        {"stats": graph(64, columns=1024)},
        {"stats": Stats(512, 2048, 16 * 2048, 300, 0)},
        {"stats": graph(columns=16384)},
        {"cores": 8},
        {"cores": 1},
    ],
)
def test_an_operand_at_the_thresholds_is_packed(options):
    assert is_packed(**options)


def test_without_statistics_nothing_is_packed():
    module = specialize(parse_module(TEXT), {"feat_size": 512})
    rule_report = row_spmm(module, RuleContext(machine=machine(MACHINE.format(bits=512, cores=2))))
    assert "cache_region" not in {step.op for one in rule_report.decisions for step in one.steps}


def test_parts_and_sums_without_an_init_are_not_packed():
    init = "        with T.init():\n            C[i, k] = 0.0\n"
    assert init in TEXT
    assert not is_packed(part=True)
    assert not is_packed(text=TEXT.replace(init, ""))
