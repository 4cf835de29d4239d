"""Names of a program: those that steps number, and those for which it has no schedule."""

from __future__ import annotations

import pytest

from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module
from gossamer_machine import Machine
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.analysis.program_names import addresses_taken_names, loop_stage_names
from gossamer_testkit import script

TARGET = Machine()
TEXT = script("csr_reduce")
SOFTMAX = script("sparse_softmax")


def test_names_of_axes_and_sparse_buffers_are_free_at_the_loop_stage():
    names = loop_stage_names(parse_module(TEXT))
    assert {"a", "b", "indptr", "indices", "m", "n", "nnz", "i", "j", "csr_reduce"} == names


@pytest.mark.parametrize(
    ("declared", "steps", "is_taken"),
    [
        ("J_indptr", [Step("parallel", {"loop": "i", "weight": "J_indptr[i] + 4 * i"})], True),
        ("J_indptr", [Step("parallel", {"loop": "i"})], False),
        ("B_data", [Step("cache_write", {"block": "sums", "buffer": "B_data"})], True),
        ("B_data", [Step("cache_write", {"block": "sums", "buffer": "B_data_local"})], False),
        ("j_0", [Step("reorder", {"loops": ("j_0", "j_1")})], False),
    ],
)
def test_only_names_of_lowering_that_a_step_addresses_are_refused(declared, steps, is_taken):
    module = parse_module(TEXT.replace("m: T.int", f"{declared}: T.int64, m: T.int", 1))
    assert addresses_taken_names(steps, module) is is_taken


def test_a_name_that_the_program_takes_is_numbered():
    module = parse_module(TEXT.replace("m: T.int", "B_data_local: T.int64, m: T.int", 1))
    steps = schedule_report(module, TARGET).schedule.loop
    copies = [step.args["block"] for step in steps if step.op == "reverse_compute_at"]
    assert copies == ["csr_reduce_B_data_local_1"]


def test_iterations_with_variables_of_the_same_names_are_scheduled():
    """The parser numbers them: the second `j` is `j_1`, which a split of the first one cannot make."""
    report = schedule_report(parse_module(SOFTMAX), TARGET)
    assert report.rule == "fused_rows"
    lanes = [step.args["loop"] for step in report.schedule.loop if step.op == "vectorize"]
    assert lanes == ["j_1_1", "j_1_1_1", "j_2_1", "j_3_1"]
