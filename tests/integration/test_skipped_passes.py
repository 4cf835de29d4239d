"""A pipeline skips only passes that would change nothing: a module lacks the construct that they act on."""

from __future__ import annotations

from gossamer.compilation.pipeline import lower_by_stage
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.records import Schedule
from gossamer_ir.script import parse_module
from gossamer_lower.constructs import has_construct
from gossamer_lower.lowering_pass import listed_records
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES
from gossamer_machine import Machine
from gossamer_schedule.rules import default_schedule
from gossamer_testkit import script, script_names

MACHINES = {"AVX-512": Machine(), "scalable": Machine(is_scalable=True)}


def loop_modules(name):
    """Yield the module of a script at the loop stage, as written and as scheduled for each machine."""
    module = parse_module(script(name))
    schedules = [default_schedule(module, machine) for machine in MACHINES.values()]
    for schedule in (Schedule(), *schedules):
        for current in lower_by_stage(module, schedule):
            if current.stage == "loop":
                yield current
                break


def skipped_passes(module):
    """Yield the names of the passes that a pipeline skips; each must return its argument."""
    for record in listed_records(FLAT_PASSES):
        try:
            result = record.function(module)
        except UnsupportedError:
            assert record.acts_on is None or has_construct(module, record.acts_on), record.name
            return
        if record.acts_on is not None and not has_construct(module, record.acts_on):
            assert result == module, record.name
            yield record.name
        module = result


def test_a_pass_returns_a_module_without_its_construct_as_it_is():
    skipped = set()
    for name in script_names():
        for module in loop_modules(name):
            skipped.update(skipped_passes(module))
    assert skipped == {record.name for record in listed_records(FLAT_PASSES) if record.acts_on}
