"""`gossamer opt` with the passes and primitives of plugins.

`tests/integration/test_plugins.py` installs a plugin.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer.cli.plugin_passes import extension_points_of, pass_records
from gossamer.cli.single_steps import apply_steps, steps_text, to_step
from gossamer.targets import resolve_target
from gossamer_backend.plugin_api import Pass
from gossamer_ir.errors import ArgumentError, PluginError
from gossamer_lower.passes_by_name import apply_record
from gossamer_schedule import unroll
from gossamer_schedule.plugin_api import LOOP_STAGES, change_of, plugin_primitive
from gossamer_testkit.examples import SCALE


@plugin_primitive("generic-cpu", stages=LOOP_STAGES)
def unroll_it(root, loop: str, *, function: str | None = None):
    return change_of(unroll(root.module, loop, function=function), root)


def renamed(module):
    """The module with loop `i` called `j`."""
    (function,) = module.functions
    (loop,) = function.body
    changed = replace(function, body=(replace(loop, var="j"),))
    return replace(module, functions=(changed,))


@pytest.fixture
def extension(monkeypatch):
    """The extension of the default plugin, with two passes and a primitive."""
    registry = resolve_target.registry
    plugin = registry.plugin("generic-cpu")
    passes = (Pass("keep", "loop", lambda module: module), Pass("keep", "flat", renamed))
    extension = replace(
        plugin.backend_extension,
        passes=(*passes, Pass("invalid", "loop", renamed)),
        primitives={"generic-cpu.unroll_it": unroll_it},
    )
    extended = replace(plugin, extensions=(extension,))
    monkeypatch.setattr(registry, "plugin", lambda name: extended)
    monkeypatch.setattr(registry, "working_extensions", lambda name: iter([extension]))
    return extension


def test_passes_of_one_name_are_one_pass_for_several_stages(extension):
    records = pass_records(extension)
    assert [*records] == ["generic-cpu.keep", "generic-cpu.invalid"]
    assert records["generic-cpu.keep"].takes == ("loop", "flat")
    assert apply_record(records["generic-cpu.keep"], SCALE) == SCALE
    with pytest.raises(
        ArgumentError, match=r"'generic-cpu\.invalid' takes a module of the loop"
    ) as caught:
        apply_record(records["generic-cpu.invalid"], replace(SCALE, stage="position"))
    assert caught.value.code == "pass.stage"


def test_the_extension_points_of_a_pass_are_its_own(extension):
    later = Pass("keep", "flat", renamed, at="before vectorize_loops")
    other = Pass("other", "loop", renamed, at="before lower_blocks")
    pointed = replace(extension, passes=(*extension.passes, later, other))
    assert extension_points_of(pointed, "generic-cpu.keep") == ("before vectorize_loops",)
    assert extension_points_of(pointed, "generic-cpu.invalid") == ()


@pytest.mark.usefixtures("extension")
def test_plugin_passes_are_listed_after_those_of_gossamer():
    passes, _, primitives = steps_text().partition("\nprimitives\n")
    assert passes.splitlines()[-2:] == [
        "  generic-cpu.keep                  loop or flat",
        "  generic-cpu.invalid               loop",
    ]
    assert primitives.splitlines()[-1] == "  generic-cpu.unroll_it(loop, function=...)"


@pytest.mark.usefixtures("extension")
def test_plugin_passes_are_applied_by_name():
    steps = ["generic-cpu.keep", 'split(loop="i", factors=[None, 4])']
    unrolled = apply_steps(SCALE, map(to_step, [*steps, 'generic-cpu.unroll_it(loop="i_1")']))
    assert unrolled == apply_steps(SCALE, map(to_step, [*steps, 'unroll(loop="i_1")']))
    with pytest.raises(PluginError, match="cannot run its pass 'invalid': VerifyError"):
        apply_steps(SCALE, [to_step("generic-cpu.invalid")])
