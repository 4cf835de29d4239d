"""Random schedules that stage operands in shared memory, pipeline the copies and bind reductions to threads.
The interpreter of the language runs the kernels with their barriers, and the interpreter of PTX what LLVM
makes of them. `nox -s fuzz -- --staged` runs more.
"""

from __future__ import annotations

import json

import pytest

from tests.fuzzing.commands import on_target
from tests.fuzzing.commands.staged_schedules import StagedKernels, judge

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


def test_staged_schedules_change_no_meaning():
    tally = StagedKernels()
    for number in range(36):
        judge(number, tally, seed="", native=0.3)
    assert tally.failures == []
    assert tally.native >= 2
    assert tally.met["Barrier"] >= 3, tally.met
    assert tally.met["AsyncCopy"] >= 2, tally.met
    assert tally.met["Shuffle"] >= 1, tally.met


def test_every_second_program_of_a_target_has_a_staged_schedule(capsys):
    on_target.main("cuda-mma-sp:driver=interpreter", 1, 1, "1")
    row = json.loads(capsys.readouterr().out)
    assert row == {"name": "1 (staged)", "wrong": None, "skipped": None}
