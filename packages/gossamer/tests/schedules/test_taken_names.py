"""The names that default schedules make: rules predict them as the primitives make them. If the program takes
one, the schedule has the same steps with other names, and applies to what lowering makes of the program."""

from __future__ import annotations

import re

import pytest

from gossamer.compilation.pipeline import flat_module, next_stage
from gossamer.targets.resolve_target import machine_for
from gossamer_ir.interchange.records import Stats
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.names import names_in
from gossamer_schedule import ScheduleBuilder
from gossamer_schedule.rules import schedule_report
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_testkit import script

pytestmark = pytest.mark.unserialized

TARGET = "generic-cpu:l2=2097152,l3=16777216,cores=2,gathers=fast"
LONG = Stats(rows=5000, columns=5000, nnz=5000 * 70, longest_row=70, empty_rows=0)
SHORT = Stats(rows=50_000, columns=5000, nnz=50_000 * 3, longest_row=6, empty_rows=0)
PROGRAMS = [
    ("csr_reduce", None, LONG),
    ("csr_spmm", 16, LONG),
    ("csr_spmm", 512, LONG),
    ("csr_spmm", 40, SHORT),
    ("bsr_spmm", 128, None),
    ("tiled_csr_spmm", 40, LONG),
    ("row_groups_spmm", 40, LONG),
    ("sell_spmv_of_distinct_rows", None, SHORT),
    ("sddmm", 40, LONG),
    ("csr_scaled", None, LONG),
    ("sparse_softmax", None, LONG),
    ("mixture_of_experts", None, LONG),
]
"""Programs that each have a rule, with the features and the stats."""
NO_NAMES = {"T", "int64", "local", "global", "masked", "last", "peel", "window"}
"""Words in the arguments of steps."""
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
LOWERED = re.compile(r"_(data|indptr|words)$")


def program(name, features):
    module = parse_module(script(name))
    return specialize(module, {"feat_size": features} if features else {})


def report(module, stats):
    return schedule_report(module, machine_for(TARGET), stats)


def made_names(module, stats):
    """The names that the steps address, but for those of the program and of lowering."""
    schedule = report(module, stats).schedule
    steps = (*schedule.coordinate, *schedule.loop)
    values = (value for step in steps for value in step.args.values())
    texts = (text for value in values for text in (value if isinstance(value, tuple) else [value]))
    named = {name for text in texts if isinstance(text, str) for name in IDENTIFIER.findall(text)}
    others = {*names_in(module.functions[0])} | NO_NAMES
    return sorted(name for name in named - others if not LOWERED.search(name))


def ops(chosen):
    return [step.op for step in chosen.schedule.loop]


@pytest.mark.parametrize(("name", "features", "stats"), PROGRAMS)
def test_names_that_are_taken_are_numbered(name, features, stats):
    module = program(name, features)
    plain, text = report(module, stats), print_module(module)
    assert plain.rule
    first = module.functions[0].params[0].name
    for made in made_names(module, stats):
        taken = parse_module(re.sub(rf"\b{first}\b", made, text))
        renamed = report(taken, stats)
        assert (renamed.rule, ops(renamed)) == (plain.rule, ops(plain))
        flat_module(taken, target=TARGET, stats=stats)


def test_a_name_of_lowering_that_a_step_addresses_leaves_the_program_as_written():
    module = program("csr_spmm", 40)
    taken = parse_module(re.sub(r"\bnnz\b", "C_data", print_module(module)))
    assert report(taken, LONG).rule is None
    flat_module(taken, target=TARGET, stats=LONG)


@pytest.fixture
def predicted(monkeypatch):
    """The names that trace builders expect of steps, as pairs of a step and a name."""
    pairs = []

    class Recorded(TraceBuilder):
        def _fresh(self, name):
            made = super()._fresh(name)
            pairs.append((self.steps[-1], made))
            return made

    monkeypatch.setattr("gossamer_schedule.rules.schedule_rule.TraceBuilder", Recorded)
    return pairs


@pytest.mark.parametrize(("name", "features", "stats"), PROGRAMS)
def test_a_step_makes_the_names_that_its_rule_expects(name, features, stats, predicted):
    module = program(name, features)
    schedule = report(module, stats).schedule
    builder = ScheduleBuilder(module).replay(schedule.coordinate)
    builder = ScheduleBuilder(next_stage(next_stage(builder.module)))
    expected = checked = 0
    for step in schedule.loop:
        before = {*names_in(builder.module.functions[0])}
        builder.replay((step,))
        made = {*names_in(builder.module.functions[0])} - before
        names = {made for recorded, made in predicted if recorded == step}
        assert names <= made | {*map(str, builder.names)}, step
        expected, checked = expected + len(names), checked + 1
    assert checked
    assert expected
