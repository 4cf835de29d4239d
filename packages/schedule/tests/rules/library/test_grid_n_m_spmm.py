"""The rule for N:M matrices on grids of threads: by an intrinsic, or by threads with the reason. Results are
compared in `tests/integration/test_sparse_tensor_cores.py`."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from n_m_programs import INT4, PAIRS, PROGRAM, TF32, VARIANTS, float8_program

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


TRANSPOSED = INT4.replace("(N, K)", "(K, N)").replace(
    "B[(q * 4 + s) * 2 + p, k]", "B[k, q * 8 + s * 2 + p]"
)
SPECIAL = replace(
    GPU,
    n_m_products=tuple(
        (name, name) for name in ("tfloat32", "float8_e4m3", "float8_e5m2", "int4", "uint4", "int8")
    ),
)


@pytest.mark.parametrize(
    ("text", "intrinsic"),
    [
        (TF32, "tfloat32"),
        (INT4, "int4"),
        (INT4.replace('"int8"', '"uint8"').replace("-8, 8", "0, 16"), "uint4"),
        (TRANSPOSED, "int4"),
        (float8_program("float8_e4m3", "float8_e4m3"), "float8_e4m3"),
        (float8_program("float8_e5m2", "float8_e5m2"), "float8_e5m2"),
    ],
)
def test_instructions_take_patterns_of_their_own(text, intrinsic):
    report = report_of(text, SPECIAL)
    assert report.decisions[-1].what == f"the product by {intrinsic}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # Only the facts say that bytes have values of int4.
        (PAIRS, "these are int8 with 4:8"),
        (INT4.replace("in_range(B, -8, 8)", "in_range(B, -8, 9)"), "these are int8 with 4:8"),
        (TF32.replace("(2, 1)", "(4, 2)").replace("* 2", "* 4"), "these are tfloat32 with 2:4"),
    ],
)
def test_other_patterns_of_special_operands_have_threads(text, reason):
    report = report_of(text, SPECIAL)
    assert report.rule == "grid_n_m_spmm"
    assert reason in report.decisions[-1].why


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
    "two dtypes of float8": float8_program("float8_e4m3", "float8_e5m2"),
    "triples": PAIRS.replace("dense_fixed(2, parent=J)", "dense_fixed(3, parent=J)"),
    "pairs of rows": PAIRS.replace("dense_fixed(2, parent=J)", "dense_fixed(2)"),
    "another row of a pair": PAIRS.replace("* 2 + p", "* 2 + 1 - p"),
    "no features": PROGRAM.replace("dense_fixed(n)", "dense_fixed(0)"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_programs_are_not_matched(name):
    assert report_of(OTHERS[name]).rule != "grid_n_m_spmm"


def test_the_rule_is_for_machines_with_grids():
    assert report_of(PROGRAM, Machine()).rule == "n_m_spmm"
