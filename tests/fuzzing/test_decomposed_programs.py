"""Random programs whose matrices are stored in random parts mean the same as before, at each stage, after
random schedules, and as machine code.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.fuzzing.checks.disagreements import verdict_of
from tests.fuzzing.programs.decomposed import draw_decomposed
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.programs.handwritten import draw_written
from tests.fuzzing.schedules.draw_schedule import random_schedule
from tests.fuzzing.schedules.sequences import Sequence

pytestmark = pytest.mark.unserialized


def test_parts_change_no_meaning():
    formats: Counter[str] = Counter()
    failures: list[str] = []
    judged = 0
    for number in range(400):
        rng = Random(f"tests/decomposed/{number}")
        program = draw_written(rng)[1] if rng.random() < 0.7 else draw_program(rng)
        decomposed = draw_decomposed(rng, program)
        if decomposed is None:
            continue
        judged += 1
        formats.update(decomposed.formats)
        by_rules = rng.random() < 0.5
        schedule = random_schedule(rng, decomposed.module, rules=1) if by_rules else Sequence(rng)
        verdict = verdict_of(decomposed, native=rng.random() < 0.3, schedule=schedule)
        if verdict.disagreement is not None:
            failures.append(
                f"{number}: {verdict.disagreement}\n{decomposed.original.text}\n{decomposed.formats}"
            )
    assert failures == []
    assert judged > 15
    assert len(formats) > 4
