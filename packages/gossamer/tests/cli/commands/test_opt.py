"""`gossamer opt`: its inputs, the steps that it applies, and its errors."""

from __future__ import annotations

import io
import json
import sys

import pytest

from gossamer.cli.single_steps import to_step
from gossamer.operators import NAMES
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.serialization import loads
from gossamer_ir.script import parse_module, print_module
from gossamer_lower.passes_by_name import PASSES
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES
from gossamer_schedule import PRIMITIVES
from gossamer_testkit import script, script_names
from gossamer_testkit.examples import MATMUL

STAGES = ("coordinate", "position", "loop", "flat")
SCALE = """
@T.prim_func
def scale(x: T.handle, y: T.handle, n: T.int64) -> None:
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
"""
SUM = SCALE.replace("Y[vi] = X[vi] * 2.0", "Y[0] = X[vi]")


@pytest.fixture
def opt(command, monkeypatch):
    """Runs `gossamer opt` with a text on standard input."""

    def run(text, *arguments):
        data = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return command("opt", *arguments)

    return run


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("op", NAMES)
def test_what_show_prints_is_read_and_printed_the_same(op, stage, command, opt):
    shown = command("show", op, "--stage", stage).out
    again = opt(shown)
    assert (again.status, again.out, again.err) == (0, shown, "")
    encoded = opt(shown, "--json").out
    assert loads(encoded).stage == stage
    assert opt(encoded).out == shown


def test_steps_may_name_the_intrinsics_of_the_default_target(opt):
    steps = (
        'split(loop="l", factors=[None, 16])',
        'reorder(loops=["i", "l_0", "j", "l_1"])',
        'tensorize(loop="j", intrinsic="outer_product_float32_1x16")',
    )
    output = opt(print_module(MATMUL), *(word for step in steps for word in ("--pass", step)))
    assert output.status == 0
    assert '"intrinsic": "outer_product_float32_1x16@' in output.out


def test_stages_of_the_pipeline_are_passes(command, opt):
    """`show` without a schedule prints the result of the passes, applied one by one."""
    text = opt(SCALE, "--pass", "lower_to_flat").out
    words = [word for lowering_pass in FLAT_PASSES for word in ("--pass", lowering_pass.__name__)]
    assert opt(SCALE, *words).out == text


@pytest.mark.parametrize("name", script_names())
def test_every_pass_on_every_program_keeps_its_promise(opt, name):
    text = script(name)
    stages = {"_position": 1, "_loop": 2}
    first = next((at for end, at in stages.items() if name.endswith(end)), 0)
    steps = ["lower_iterations", "lower_buffers", "lower_to_flat"][first:]
    words = [word for step in steps for word in ("--pass", step)]
    plain, verified = opt(text, *words), opt(text, "--verify-each", *words)
    assert verified.status == plain.status
    assert verified.out == plain.out
    assert "InternalError" not in verified.err


def test_steps_are_done_in_order_those_of_the_trace_first(opt, tmp_path):
    path = tmp_path / "trace.json"
    step = {"op": "split", "args": {"loop": "i", "factors": [None, 8]}}
    path.write_text(json.dumps([step, {"op": "simplify", "args": {}}]))
    output = opt(
        SCALE, "--trace", str(path), "--pass", 'vectorize(loop="i_1")', "--pass", "lower_to_flat"
    )
    assert (output.status, output.err) == (0, "")
    assert "T.ramp" in output.out
    assert parse_module(output.out).stage == "flat"


def test_a_file_is_read(opt, tmp_path):
    path = tmp_path / "scale.py"
    path.write_text(SCALE)
    assert opt("", str(path)).out == opt(SCALE).out


def test_every_pass_and_primitive_is_listed_and_has_a_name_of_its_own(opt):
    listed = opt("", "--list").out
    assert not PASSES.keys() & PRIMITIVES.keys()
    for name in (*PASSES, *PRIMITIVES):
        assert f"  {name}" in listed
    stages = dict(line.split(maxsplit=1) for line in listed.splitlines() if " " in line.strip())
    assert stages["extract_inspector"] == stages["use_inspector_results"] == "position or loop"
    assert stages["lower_blocks"] == "loop to loop"
    assert stages["simplify"] == "any stage"


TEXTS = {
    "no Python": ("x = (", (), "parse.syntax", "^"),
    "no language": (SCALE.replace("X[vi] * 2.0", "X[vi] ** 2.0"), (), "parse.", "X[vi] ** 2.0\n"),
    "wrong": (SCALE.replace("X[vi] *", "X[vi, 0] *"), (), "verify.index.count", "^^^^^^^^"),
    "no JSON": ("{", (), "wire.syntax", ""),
    "no module": ("{}", (), "wire.version", ""),
    "no text": (b"\xff\xfe", (), "option.file", ""),
    "a race": (SUM, ("--pass", 'parallel(loop="i")'), "[schedule.parallel.", "^^^^^"),
    "no step": (SCALE, ("--pass", "unknown"), "option.pass", ""),
    "no plugin": (SCALE, ("--pass", "no-plugin.f"), "the plugin 'no-plugin' is not installed", ""),
    "no step of a plugin": (SCALE, ("--pass", "generic-cpu.f"), "option.pass", ""),
    "no target": (
        SCALE,
        ("--target", "no", "--pass", 'tensorize(loop="i", intrinsic="f")'),
        "backend.unknown",
        "",
    ),
    "no name": (SCALE, ("--pass", "split(i, 8)"), "option.pass", ""),
    "code": (SCALE, ("--pass", "split(loop=open('x'))"), "option.pass", ""),
    "wrong arguments": (SCALE, ("--pass", "split(loop=3)"), "schedule.replay.arguments", ""),
    "of another stage": (SCALE, ("--pass", "lower_iterations"), "pass.stage", ""),
    "too early": (SCALE, ("--pass", "unroll_loops"), "pass.order", ""),
}


@pytest.mark.parametrize(("text", "words", "code", "shown"), TEXTS.values(), ids=TEXTS)
def test_bad_input_is_exit_code_2_with_carets_where_there_is_text(text, words, code, shown, opt):
    output = opt(text, *words)
    assert (output.status, output.out) == (2, "")
    first, _, rest = output.err.partition("\n")
    assert first.startswith("error: ")
    assert code in first
    assert shown in rest
    assert bool(shown) == bool(rest)


def test_a_file_or_trace_that_cannot_be_read_is_named(opt, tmp_path):
    missing = opt("", str(tmp_path / "none.py"))
    assert missing.status == 2
    assert "none.py' cannot be read: No such file or directory" in missing.err
    path = tmp_path / "trace.json"
    path.write_text('[{"op": 3}]')
    output = opt(SCALE, "--trace", str(path))
    assert (output.status, output.out) == (2, "")
    assert "schedule.trace.json" in output.err
    path.write_text("[" * 100_000)
    assert "schedule.trace.json" in opt(SCALE, "--trace", str(path)).err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.b.c",
        "f-g",
        "f(1)",
        "f(**x)",
        "f(a=b)",
        "f(a=" + "(" * 500,
        "f" * 20_000,
        "f\0",
        "1 + 1",
    ],
)
def test_a_step_that_is_none_is_refused(text):
    with pytest.raises(ArgumentError) as caught:
        to_step(text)
    assert caught.value.code == "option.pass"
