"""Each planted defect replaces one line of the source: a renaming that misses it shows here at once."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.fuzzing.defects import (
    broken_code,
    broken_compilers,
    broken_lowered_steps,
    broken_passes,
    broken_primitives,
)

PACKAGES = {
    broken_code: "gossamer_llvm",
    broken_compilers: "gossamer_lower",
    broken_lowered_steps: "gossamer_schedule",
    broken_passes: "gossamer_lower",
    broken_primitives: "gossamer_schedule",
}
LINES = [
    (f"{package}.{defect.home}", defect.line)
    for module, package in PACKAGES.items()
    for defect in module.DEFECTS
]


@pytest.mark.parametrize(("home", "line"), LINES)
def test_a_planted_defect_replaces_one_line_of_the_source(home, line):
    found = importlib.util.find_spec(home)
    assert found is not None, home
    assert Path(found.origin).read_text(encoding="utf-8").count(line) == 1
