"""Each pipeline has a list of its own, so that a process imports only the passes of those that it runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gossamer_lower.buffers.lower_buffers import lower_buffers
from gossamer_lower.iterations.lower_iterations import lower_iterations
from gossamer_lower.passes import LISTED
from gossamer_lower.pipelines.device_passes import DEVICE_PASSES
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES

PIPELINES = {"main": (lower_iterations, lower_buffers, *FLAT_PASSES), "device": DEVICE_PASSES}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_list_of_a_pipeline_has_the_passes_that_declare_it(name):
    assert [record.function for record in LISTED if record.pipeline == name] == [*PIPELINES[name]]


def test_lowering_to_the_flat_stage_imports_no_pass_for_devices_or_on_request():
    program = (
        "import sys; from gossamer_lower import lower_to_flat; "
        "print([name for name in sys.modules if name.startswith('gossamer_lower.')])"
    )
    command = (sys.executable, "-c", program)
    imported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "gossamer_lower.pipelines.lower_to_flat" in imported
    for other in ("device", "inspector", "passes", "vector.lower_vscale"):
        assert f"gossamer_lower.{other}" not in imported
