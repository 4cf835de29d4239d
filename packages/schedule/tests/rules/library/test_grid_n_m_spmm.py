"""The rule for 2:4 matrices on grids of threads: by an intrinsic, or by threads with the reason. Results are
compared in `tests/integration/test_sparse_tensor_cores.py`."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from n_m_programs import PROGRAM, VARIANTS

from gossamer_ir.script import parse_module
from gossamer_machine import Grid, Machine
from gossamer_schedule.rules import schedule_report

GPU = Machine(
    grid=Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108),
    n_m_products=(("float16", "product"), ("int8", "other")),
)
IN_FLOAT32 = (
    PROGRAM.replace('"float16"', '"float32"')
    .replace("T.float32(A[i, q, s])", "A[i, q, s]")
    .replace("T.float32(B[q * 4 + s, k])", "B[q * 4 + s, k]")
)


def report_of(text, machine=GPU):
    return schedule_report(parse_module(text), machine)


def ops(text, machine=GPU):
    return [step.op for step in report_of(text, machine).schedule.loop]


@pytest.mark.parametrize("name", VARIANTS)
def test_an_intrinsic_multiplies_if_the_machine_has_one(name):
    report = report_of(VARIANTS[name])
    assert report.rule == "grid_n_m_spmm"
    (step,) = [step for step in report.schedule.loop if step.op == "sparse_tensorize"]
    assert step.args["intrinsic"] == ("other" if name == "int8" else "product")
    assert report.decisions[-1].what == f"the product by {step.args['intrinsic']}"
    assert ("decompose_reduction" in ops(VARIANTS[name])) == (name != "without init")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (IN_FLOAT32, "these are float32 with 2:4 and sums in float32"),
        (PROGRAM.replace("dense_fixed(n)", "dense_fixed(1)"), "there is one feature"),
    ],
)
def test_other_products_have_threads_and_the_reason(text, reason):
    report = report_of(text)
    assert report.rule == "grid_n_m_spmm"
    assert "sparse_tensorize" not in ops(text)
    assert ops(text).count("bind") == 4
    assert report.decisions[-1].what == "products by ordinary threads"
    assert reason in report.decisions[-1].why


def test_a_machine_without_intrinsics_has_threads():
    report = report_of(PROGRAM, replace(GPU, n_m_products=()))
    assert "multiplies matrices of no dtype" in report.decisions[-1].why


OTHERS = {
    "padded slots": PROGRAM.replace(", padded=False", ""),
    "unsorted slots": PROGRAM.replace("padded=False", "padded=False, sorted=False"),
    "slots with duplicates": PROGRAM.replace("padded=False", "padded=False, unique=False"),
    "1:4": PROGRAM.replace("(4, 2)", "(4, 1)"),
    "2:8": PROGRAM.replace("(4, 2)", "(8, 2)"),
    "another row": PROGRAM.replace("B[q * 4 + s, k]", "B[q * 4 + 3 - s, k]"),
    "a maximum": PROGRAM.replace(
        "C[i, k] + T.float32(A[i, q, s]) *", "T.max(C[i, k], T.float32(A[i, q, s])) *"
    ),
    "no features": PROGRAM.replace("dense_fixed(n)", "dense_fixed(0)"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_programs_are_not_matched(name):
    assert report_of(OTHERS[name]).rule != "grid_n_m_spmm"


def test_the_rule_is_for_machines_with_grids():
    assert report_of(PROGRAM, Machine()).rule == "n_m_spmm"
