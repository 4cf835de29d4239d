"""Backends compile or refuse what they are given, and never end the process. `nox -s fuzz -- --compiled`
compiles more modules."""

from __future__ import annotations

import os
from functools import partial

import pytest

from tests.fuzzing.commands.compiled_modules import Modules, judge
from tests.fuzzing.commands.processes import Task

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


def run(judge, count: int) -> Modules:
    return Task("modules", judge, Modules).run(range(count), processes=1, seconds=600)


def test_no_module_ends_the_process():
    tally = run(partial(judge, seed="tests"), 60)
    assert not tally.failures
    assert tally.judged == 60
    assert tally.compiled.total() >= 40
    assert tally.scalable.total() >= 6


def test_an_end_of_the_process_is_a_failure_with_its_number():
    tally = run(_end_at_3, 8)
    (failure,) = tally.failures
    assert failure.number == 3
    assert "crashed" in failure.what
    assert tally.judged == 7


def _end_at_3(number: int, tally: Modules) -> None:
    if number == 3:
        os._exit(1)
    tally.judged += 1
