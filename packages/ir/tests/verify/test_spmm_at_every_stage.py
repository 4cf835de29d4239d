"""The verifier on SpMM at every stage: results, places, carets, speed and the limit of nesting."""

import subprocess
import sys
import timeit
from pathlib import Path

import pytest

from gossamer_ir.errors import VerifyError
from gossamer_ir.interchange import serialization
from gossamer_ir.nodes import Const, Function, Let, Module, Unary, Var
from gossamer_ir.verify import MAX_DEPTH, diagnostics, verify

FOLDER = Path(__file__).parents[1] / "samples"
STAGES = ("coordinate", "position", "loop", "flat")


def sample(stage):
    return serialization.loads((FOLDER / f"0.1-spmm-{stage}.json").read_bytes())


@pytest.mark.parametrize("stage", STAGES)
def test_spmm_is_right(stage):
    assert diagnostics(sample(stage)) == ()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("other", STAGES)
def test_spmm_is_right_at_no_other_stage_but_plain_loops_are_at_that_of_positions(stage, other):
    module = sample(stage)
    reported = diagnostics(Module(other, module.functions, module.entry))
    is_right = stage == other or (stage, other) == ("loop", "position")
    assert ("verify.stage.node" in {one.code for one in reported}) == (not is_right)


@pytest.mark.parametrize("stage", STAGES)
def test_verifying_is_fast(stage):
    module = sample(stage)
    assert min(timeit.repeat(lambda: diagnostics(module), number=5, repeat=5)) / 5 < 0.002


def test_a_place_leads_to_the_node():
    text = serialization.dumps(sample("flat")).decode()
    module = serialization.loads(text.replace('"buffer":"acc"', '"buffer":"lost"'))
    reported = diagnostics(module)
    assert len(reported) == 4
    for one in reported:
        assert one.code == "verify.buffer.undefined"
        node = module
        for step in one.place:
            node = node[step] if isinstance(step, int) else getattr(node, step)
        assert node.buffer == "lost"


def test_an_error_shows_the_printed_lines_with_carets():
    text = serialization.dumps(sample("coordinate")).decode()
    wrong = serialization.loads(text.replace('"buffer":"B"', '"buffer":"lost"'))
    with pytest.raises(VerifyError) as caught:
        verify(wrong)
    lines = caught.value.text.splitlines()
    assert "lost[j, k_1]" in lines[1]
    assert lines[1][lines[2].index("^") : len(lines[2])] == "lost[j, k_1]"
    assert str(caught.value).startswith(
        "The buffer 'lost' is not defined here. Defined are: A, B, C."
    )


def test_the_printer_is_imported_for_errors_only():
    code = "import sys, gossamer_ir.verify; print('gossamer_ir.script' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_nesting_up_to_the_limit_is_right():
    def nested(count):
        value = Const("int64", "1")
        for _ in range(count - 1):
            value = Unary("neg", value)
        return Module("loop", (Function("f", (), (Let(Var("x", "int64"), value),)),), "f")

    assert diagnostics(nested(MAX_DEPTH - 3)) == ()
    assert [one.code for one in diagnostics(nested(MAX_DEPTH - 2))] == ["verify.depth"]
    assert serialization.loads(serialization.dumps(nested(MAX_DEPTH - 3))) == nested(MAX_DEPTH - 3)
