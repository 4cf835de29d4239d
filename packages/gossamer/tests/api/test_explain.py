"""`gossamer.explain`: the reasons that rules give for a schedule, and the steps that they explain."""

from __future__ import annotations

import pytest

import gossamer as gs
from gossamer.compilation.pipeline import flat_module, schedule_for_target
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import NAMES, operator_named
from gossamer.targets.resolve_target import resolve_target
from gossamer_ir.interchange.records import Schedule, Stats
from gossamer_schedule.trace.codec import step_to_python

WIDE = "generic-cpu:vector_bits=512,l2=1048576,l3=33554432,gathers=moderate"
SHORT = Stats(rows=100, columns=200, nnz=300, longest_row=9, empty_rows=1)
LARGE = Stats(rows=100_000, columns=100_000, nnz=6_000_000, longest_row=900, empty_rows=0)

FILL = """
@T.prim_func
def fill(x: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    for i in T.serial(n):
        X[i] = 1.0
"""


@pytest.mark.parametrize("op", NAMES)
@pytest.mark.parametrize("stats", [None, SHORT, LARGE])
def test_the_steps_are_those_of_the_schedule(op, stats):
    report = gs.explain(op, target=WIDE, stats=stats)
    _, target = resolve_target(WIDE)
    module = module_of(operator_named(op).program, Variant())
    assert report.schedule == schedule_for_target(module, target, stats)


def test_a_program_of_a_later_stage_has_no_decisions():
    report = gs.explain(FILL)
    assert (report.rule, report.decisions) == (None, ())
    assert report.schedule == Schedule()
    assert "not a pattern of any rule" in report.pattern


FACTS = [
    ("spmm", "bytes (prefetching pays", {"feat_size": 31}, LARGE, False),
    ("spmm", "a row of B_data has 124 bytes", {"feat_size": 31}, LARGE, True),
    ("spmm", "B_data has 50 MiB (prefetching pays from 2 MiB)", {"feat_size": 200}, LARGE, True),
    ("spmm", "without statistics of the data", {"feat_size": 128}, None, True),
    ("spmm", "B_data has 65 KiB; prefetching pays from 2 MiB", {"feat_size": 130}, SHORT, True),
    ("spmm", "B_data stays in the shared cache", {"feat_size": 128}, SHORT, True),
    ("spmm", "300 features of float32 fill 19 vectors", {"feat_size": 300}, None, True),
    (
        "spmv",
        "rows have 56 terms on average, and the remainder is one masked vector",
        {},
        LARGE,
        True,
    ),
    ("spmv", "rows have 3 terms on average, and gathers pay from 16", {}, SHORT, True),
    ("sddmm", "rows have 56 elements on average, 48 or more", {"feat_size": 32}, LARGE, True),
]


@pytest.mark.parametrize(("op", "text", "sizes", "stats", "is_said"), FACTS)
def test_the_facts_that_decided_are_named(op, text, sizes, stats, is_said):
    """Numbers are those of the class of the stats: 100,000 columns are named as 65,536."""
    report = gs.explain(op, target=WIDE, stats=stats, specialize=sizes)
    assert any(text in decision.why for decision in report.decisions) == is_said


def test_the_command_prints_every_decision_with_its_steps(command):
    output = command("show", "spmm", "--schedule", "--features", "300", "--target", WIDE)
    assert (output.status, output.err) == (0, "")
    text = " ".join(output.out.split())
    chosen = gs.explain("spmm", target=WIDE, specialize={"feat_size": 300})
    assert chosen.pattern in text
    for decision in chosen.decisions:
        assert decision.what in text
        assert f"because {decision.why}" in text
        for step in decision.steps:
            assert f"loop.{step_to_python(step)}" in text


def test_the_command_looks_at_a_matrix(command, matrix_file):
    output = command("show", "spmv", "--schedule", "--matrix", matrix_file, "--target", WIDE)
    assert (output.status, output.err) == (0, "")
    assert "30 by 40, 240 nonzeros; rows of 8 on average" in output.out
    assert "rows have 8 terms on average, and gathers pay from 16" in output.out


def test_a_program_without_a_rule_is_explained(command, tmp_path):
    path = tmp_path / "fill.py"
    path.write_text(FILL)
    output = command("show", str(path), "--schedule")
    assert output.status == 0
    assert output.out.splitlines()[0].split() == ["rule", "none"]


def test_a_stage_is_shown_for_a_target_and_a_dtype(command):
    words = ("show", "spmm", "--stage", "flat", "--features", "64")
    narrow = command(*words, "--target", "generic-cpu:vector_bits=256", "--dtype", "float64").out
    assert "float64x4" in narrow
    assert "float64x8" not in narrow
    assert "float32x16" in command(*words, "--target", WIDE).out


def test_code_is_shown_for_a_cpu_that_this_machine_may_lack(command):
    words = ("show", "spmm", "--stage", "asm", "--target")
    assert "zmm" in command(*words, "generic-cpu:cpu=sapphirerapids").out
    assert "zmm" not in command(*words, "generic-cpu:cpu=haswell").out


def test_a_script_is_retyped(command, tmp_path):
    path = tmp_path / "fill.py"
    path.write_text(FILL)
    output = command("show", str(path), "--stage", "flat", "--dtype", "float64")
    assert '"float64"' in output.out


BAD = [
    ("option.stage", "given with --schedule", ("spmm", "--stage", "flat", "--schedule")),
    ("option.stage", "given with --guards and --schedule", ("spmm", "--guards", "--schedule")),
    ("option.dtype", "'float16'", ("spmm", "--stage", "flat", "--dtype", "float16")),
    ("target.syntax", "'?'", ("spmm", "--schedule", "--target", "?")),
    ("backend.unknown", "'cuda'", ("spmm", "--schedule", "--target", "cuda")),
    ("format.read.missing", "none.mtx", ("spmm", "--schedule", "--matrix", "none.mtx")),
]


@pytest.mark.parametrize(("code", "named", "words"), BAD)
def test_what_cannot_be_shown_is_named(code, named, words, command):
    output = command("show", *words)
    assert (output.status, output.out) == (2, "")
    assert named in output.err
    assert f"[{code}]" in output.err


def test_an_operator_without_features_is_shown(command):
    assert command("show", "spmv", "--stage", "coordinate").status == 0


def test_a_flat_module_is_made_for_another_cpu():
    module = module_of(operator_named("spmm").program, Variant(features=16))
    assert flat_module(module, target="generic-cpu:cpu=sapphirerapids").stage == "flat"
