"""Each pipeline has a list of its own, so that a process imports only the passes of those that it runs."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from gossamer_lower.buffers.lower_buffers import lower_buffers
from gossamer_lower.constructs import CONSTRUCTS
from gossamer_lower.iterations.lower_iterations import lower_iterations
from gossamer_lower.lowering_pass import listed_records
from gossamer_lower.passes import PASS_RECORDS
from gossamer_lower.pipelines.device_passes import DEVICE_PASSES
from gossamer_lower.pipelines.device_steps import DEVICE_STEPS
from gossamer_lower.pipelines.flat_pipeline import FLAT_PIPELINE
from gossamer_lower.pipelines.flat_steps import FLAT_STEPS

PIPELINES = {"flat": (lower_iterations, lower_buffers, *FLAT_PIPELINE), "device": DEVICE_PASSES}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_list_of_a_pipeline_has_the_passes_that_declare_it(name):
    assert [record.function for record in PASS_RECORDS if record.pipeline == name] == [
        *PIPELINES[name]
    ]


def test_lowering_to_the_flat_stage_imports_no_pass_for_devices_or_on_request():
    program = (
        "import sys; from gossamer_lower import lower_to_flat; "
        "print([name for name in sys.modules if name.startswith('gossamer_lower.')])"
    )
    command = (sys.executable, "-c", program)
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "gossamer_lower.pipelines.lower_to_flat" in imported
    for other in ("device", "inspector", "passes", "vector.lower_vscale", "math.lower_math"):
        assert f"gossamer_lower.{other}" not in imported


STEPS = {"flat": (FLAT_STEPS, FLAT_PIPELINE), "device": (DEVICE_STEPS, DEVICE_PASSES)}


@pytest.mark.parametrize("name", STEPS)
def test_the_steps_of_a_pipeline_are_its_passes_with_their_constructs(name):
    steps, passes = STEPS[name]
    records = listed_records(passes)
    assert [step.record for step in steps] == [*records]
    assert [step.acts_on for step in steps] == [record.acts_on for record in records]
    assert [[step.argument] if step.argument else [] for step in steps] == [
        needed_arguments(record.function) for record in records
    ]


def needed_arguments(function):
    """The arguments of a pass besides the module that have no default."""
    _, *parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.default is parameter.empty]


def test_each_construct_is_one_that_a_pass_acts_on_or_removes():
    declared = {
        name for record in PASS_RECORDS for name in (record.acts_on, *record.removes) if name
    }
    assert declared == CONSTRUCTS.keys()


def test_lowering_imports_only_the_passes_that_a_module_needs():
    program = (
        "import sys; from gossamer_lower import lower_to_flat; "
        "from gossamer_testkit.examples import SCALE; lower_to_flat(SCALE); "
        "print([name for name in sys.modules if name.startswith('gossamer_lower.')])"
    )
    command = (sys.executable, "-c", program)
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "gossamer_lower.vector.vectorize_loops" in imported
    for other in ("search.hoist_searches", "loops.scan_bits", "host.lower_atomics"):
        assert f"gossamer_lower.{other}" not in imported
