"""The table lists every primitive of the folder, with its documentation."""

from __future__ import annotations

import inspect
from pathlib import Path

import gossamer_schedule
from gossamer_schedule import PRIMITIVES, ScheduleBuilder
from gossamer_testkit import examples

FOLDER = Path(gossamer_schedule.__file__).parent / "primitives"
TESTS = Path(__file__).parents[1] / "primitives"
TESTED_TOGETHER = {
    "sparse_tensorize": "tensorize",
    "unsafe_parallel": "unsafe_marks",
    "unsafe_reorder": "unsafe_marks",
    "unsafe_vectorize": "unsafe_marks",
}
"""Primitives whose tests are in a file of another name."""


def test_every_primitive_is_a_documented_method():
    for name, primitive in PRIMITIVES.items():
        assert getattr(ScheduleBuilder, name).__doc__ == primitive.__doc__ is not None


def test_every_module_of_primitives_is_in_the_table():
    assert {path.stem for path in FOLDER.rglob("*.py")} - {"__init__"} == PRIMITIVES.keys()


def test_every_primitive_has_a_file_of_tests_in_the_folder_of_its_kind():
    for path in FOLDER.glob("*/[!_]*.py"):
        name = TESTED_TOGETHER.get(path.stem, path.stem)
        assert (TESTS / path.parent.name / f"test_{name}.py").exists(), path.stem


def test_a_primitive_is_shown_with_the_module_that_it_takes():
    shown = inspect.signature(PRIMITIVES["unroll"])
    assert list(shown.parameters) == ["module", "loop", "function"]
    assert (shown.parameters["module"].annotation, shown.return_annotation) == (
        "Module",
        "PrimitiveResult",
    )


def test_a_step_records_the_decision_and_no_defaults():
    drawn = PRIMITIVES["sample_categorical"](
        examples.SCALE, "t", candidates=[2, 4], seed=5, function=None
    )
    assert list(drawn.step.args) == ["name", "candidates", "decision"]
    assert drawn.step.args["candidates"] == (2, 4)
