"""Every pass and every primitive has a planted defect, or a reason to have none. Each defect replaces one
line of the source, and has the number of an item that reveals it.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from gossamer_lower.passes_by_name import PASSES
from gossamer_schedule.trace.primitive_table import PRIMITIVES
from tests.conftest import SHOWN
from tests.fuzzing.defects import (
    broken_code,
    broken_compilers,
    broken_lowered_steps,
    broken_passes,
    broken_primitives,
    no_defect,
)

LISTS = {
    "test_fuzzer": broken_compilers.DEFECTS,
    "test_broken_primitives": broken_primitives.DEFECTS,
    "test_lowered_defects": (
        *broken_passes.DEFECTS,
        *broken_lowered_steps.DEFECTS,
        *broken_code.DEFECTS,
    ),
}
"""The defects by the module of the test that detects them."""
OF_PASSES = (*broken_compilers.DEFECTS, *broken_passes.DEFECTS)
OF_PRIMITIVES = (*broken_primitives.DEFECTS, *broken_lowered_steps.DEFECTS)
LINES = [(defect.module, defect.line) for defects in LISTS.values() for defect in defects]


@pytest.mark.parametrize(
    ("names", "defects", "without", "files"),
    [
        (PASSES, OF_PASSES, no_defect.PASSES, "broken_passes.py or broken_compilers.py"),
        (
            PRIMITIVES,
            OF_PRIMITIVES,
            no_defect.PRIMITIVES,
            "broken_primitives.py or broken_lowered_steps.py",
        ),
    ],
    ids=["passes", "primitives"],
)
def test_each_has_a_planted_defect_or_a_reason_to_have_none(names, defects, without, files):
    broken = {defect.of for defect in defects}
    missing = sorted(set(names) - broken - without.keys())
    assert not missing, (
        f"no planted defect of {', '.join(missing)}: add a plausible one, such as a dropped check, to "
        f"tests/fuzzing/defects/{files}; or, if no random program can reveal any, the reason to "
        "tests/fuzzing/defects/no_defect.py"
    )
    assert broken | without.keys() == set(names), "names that nothing has"
    assert not broken & without.keys(), "these have a defect, and a reason to have none"
    assert all(reason.endswith(".") for reason in without.values())


@pytest.mark.parametrize(("home", "line"), LINES)
def test_a_planted_defect_replaces_one_line_of_the_source(home, line):
    """A renaming that misses a defect shows here at once."""
    spec = importlib.util.find_spec(home)
    assert spec is not None, home
    assert Path(spec.origin).read_text(encoding="utf-8").count(line) == 1


def test_the_known_numbers_are_those_of_the_defects():
    names = [f"{test}[{defect.says}]" for test, defects in LISTS.items() for defect in defects]
    assert len(names) == len(set(names)), "two defects with one description"
    assert set(json.loads(SHOWN.read_text())) == set(names), (
        "`python -m pytest -n 0 --update-golden tests/fuzzing` finds missing numbers; remove those of "
        "defects that are gone"
    )
