"""`gossamer show`: the stages of an operator."""

from __future__ import annotations

import pytest

from gossamer.cli.commands.show import SHOWN_STAGES
from gossamer.operators import NAMES


@pytest.mark.parametrize("op", NAMES)
@pytest.mark.parametrize("stage", SHOWN_STAGES)
def test_show_prints_a_stage(op, stage, command):
    marks = {
        "coordinate": "T.sp.iteration",
        "position": "T.block(",
        "loop": "T.block(",
        "flat": "def ",
        "llvm": "define",
        "asm": "ret",
    }
    output = command("show", op, "--stage", stage, "--features", "16")
    assert (output.status, output.err) == (0, "")
    assert marks[stage] in output.out


@pytest.mark.parametrize("option", ["--target", "--backend"])
def test_the_target_has_two_spellings(option, command):
    output = command("show", "spmm", "--stage", "asm", option, "generic-cpu:arch=aarch64")
    assert (output.status, output.err) == (0, "")
    assert "fmla" in output.out
