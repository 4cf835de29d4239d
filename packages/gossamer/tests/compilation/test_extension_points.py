"""Passes of plugins between those of gossamer; `tests/integration/test_extensions.py` installs plugins."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer.compilation.pipeline import lower_by_stage
from gossamer.targets.resolve_target import extension_points, registry
from gossamer_backend.plugin_api import Pass
from gossamer_ir.errors import PluginError
from gossamer_ir.interchange.records import Schedule, Target
from gossamer_testkit.examples import SCALE


def flat_with(*passes):
    """The flat module of SCALE with these passes of the plugin of `generic-cpu`."""
    plugin = registry.plugin("generic-cpu")
    plugin = replace(plugin, extensions=(replace(plugin.backend_extension, passes=passes),))
    *_, flat = lower_by_stage(SCALE, Schedule(), plugin=plugin, target=Target("generic-cpu"))
    return flat


def test_a_pass_at_a_point_gets_the_module_of_this_point():
    seen = []

    def see(module):
        seen.append(module.stage)
        return module

    passes = [Pass("see", stage, see, at=point) for point, stage in extension_points().items()]
    assert flat_with(*passes) == flat_with()
    assert seen == [*extension_points().values()]


def test_contents_that_no_later_pass_removes_are_refused():
    with pytest.raises(PluginError, match=r"with blocks, which no pass removes after lower_blocks"):
        flat_with(Pass("again", "loop", lambda module: SCALE, at="after lower_blocks"))
    assert flat_with(Pass("again", "loop", lambda module: SCALE, at="before lower_blocks"))
