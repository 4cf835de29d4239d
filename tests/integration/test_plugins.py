"""An external plugin through the public API: its backend, rules, passes and primitives."""

from __future__ import annotations

import importlib
import re
import sys

import numpy as np
import pytest

import gossamer as gs
from gossamer.cli import main
from gossamer.compilation.build_kernels import KERNELS
from gossamer.operators.spmv import SCRIPT
from gossamer.targets import resolve_target
from gossamer_backend import Registry
from gossamer_ir.errors import PluginError, ScheduleError, UserError
from gossamer_ir.script import print_module
from gossamer_testkit.examples import MATMUL
from tests.doctests.documents import PYTHON

PLUGIN = """
from gossamer_backend.plugin_api import Pass, hookimpl
from gossamer_ir.interchange.records import (
    RuleChoice, Decision, Schedule, ScheduleReport, ScheduleSpace, Step
)
from gossamer_ir.nodes import Module
from gossamer_schedule import split, unroll
from gossamer_schedule.plugin_api import (
    LOOP_STAGES, Change, apply_rule, change_of, enumerate_schedules, plugin_primitive, schedule_report
)
from gossamer_tiny import TinyInterpreter

ASKED = []


@hookimpl
def gossamer_backends():
    return [TinyInterpreter()]


def silent(module, machine, stats):
    ASKED.append(f"rules at {{module.stage}}")


@hookimpl
def gossamer_schedules():
    return [silent, lambda module, machine, stats: {schedule}]


def see(module):
    ASKED.append(f"pass at {{module.stage}}")
    return {result}


@hookimpl
def gossamer_passes():
    return [Pass("see", stage, see) for stage in ("coordinate", "loop", "flat")]


@plugin_primitive("tiny-interpreter", stages=LOOP_STAGES)
def unroll_by(root, loop: str, *, factor: int = 4, function: str | None = None):
    halves = split(root.module, loop, factors=(None, factor), function=function)
    unrolled = unroll(halves.module, halves.names[1], function=function)
    return Change(change_of(unrolled, root).root, halves.names, halves.forwards)


@hookimpl
def gossamer_primitives():
    return [unroll_by]
"""
INFO = {
    "METADATA": "Metadata-Version: 2.1\nName: front-door-plugin\nVersion: 1.0\n",
    "entry_points.txt": "[gossamer.plugins]\ntiny-interpreter = front_door_plugin\n",
}


@pytest.fixture
def install(tmp_path, monkeypatch, root):
    """install(schedule, result) installs the plugin with these expressions and returns the calls that it
    receives."""
    monkeypatch.syspath_prepend(str(root / "packages/backend/tests/plugins"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("GOSSAMER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(resolve_target, "registry", Registry())
    KERNELS.forget()  # the versions of these plugins do not differ

    def add(schedule, result="module"):
        text = PLUGIN.format(schedule=schedule, result=result)
        (tmp_path / "front_door_plugin.py").write_text(text)
        info = tmp_path / "front_door_plugin-1.0.dist-info"
        info.mkdir()
        for name, content in INFO.items():
            (info / name).write_text(content)
        importlib.invalidate_caches()
        return importlib.import_module("front_door_plugin").ASKED

    yield add
    for name in ("front_door_plugin", "gossamer_tiny"):
        sys.modules.pop(name, None)


def test_its_rules_and_passes_are_asked_and_its_kernel_runs(install):
    asked = install(schedule="Schedule()")
    kernel = gs.compile(SCRIPT, target="tiny-interpreter")
    assert asked == [
        "rules at coordinate",
        "pass at coordinate",
        "pass at loop",
        "pass at flat",
    ]
    assert product(kernel) == [21, 30]


def product(kernel):
    """The product of [[1, 2], [0, 3]] and [1, 10] by a kernel for spmv."""
    y = np.empty(2, np.float32)
    indptr, indices = np.array([0, 2, 3], np.int32), np.array([0, 1, 1], np.int32)
    kernel(
        a=np.array([1, 2, 3], np.float32),
        x=np.array([1, 10], np.float32),
        y=y,
        indptr=indptr,
        indices=indices,
    )
    return y.tolist()


SPLIT = 'Step("split", {"loop": "j", "factors": (None, 4)})'
WITHOUT_REASONS = "its rules come before those of gossamer, and this one gives no reasons"


@pytest.mark.parametrize(
    ("schedule", "rule", "why"),
    [
        (
            f'ScheduleReport("groups", "a sum", (Decision("groups", "four at once", ({SPLIT},)),))',
            "groups",
            "four at once",
        ),
        (f"Schedule(loop=({SPLIT},))", "tiny-interpreter", WITHOUT_REASONS),
    ],
)
def test_reasons_of_its_rules_are_explained(schedule, rule, why, install):
    install(schedule=schedule)
    report = gs.explain(SCRIPT, target="tiny-interpreter")
    assert (report.rule, [decision.why for decision in report.decisions]) == (rule, [why])
    assert [step.op for step in report.schedule.loop] == ["split"]


SPACE = (
    "enumerate_schedules(lambda point: ScheduleReport('mine', 'a sum', choices=("
    "RuleChoice('width', point.get('width', 4), (4, 2)),)))"
)
OF_RULE = (
    "enumerate_schedules(lambda point: apply_rule('row_spmm', module, machine, stats, point=point))"
    " or enumerate_schedules(lambda point: apply_rule('row_spmv', module, machine, stats))"
)


@pytest.mark.parametrize(
    ("schedule", "points"), [(SPACE, [{"width": 4}, {"width": 2}]), (OF_RULE, [{}])]
)
def test_its_rule_returns_a_space(schedule, points, install):
    install(schedule=schedule)
    space = gs.schedule_space(SCRIPT, target="tiny-interpreter")
    assert [report.point for report in space.reports] == points
    assert gs.explain(SCRIPT, target="tiny-interpreter") == space.prior


def test_a_program_is_compiled_with_the_first_schedule_of_a_space(install):
    install(schedule=SPACE)
    assert product(gs.compile(SCRIPT, target="tiny-interpreter")) == [21, 30]


def test_without_an_answer_the_general_rules_choose(install):
    install(schedule="None")
    with pytest.raises(PluginError, match="parallel"):  # which the tiny backend does not declare
        gs.compile(SCRIPT, target="tiny-interpreter")


@pytest.mark.parametrize(
    ("schedule", "result", "message"),
    [
        (
            "5",
            "module",
            "'tiny-interpreter' cannot choose a schedule: TypeError: a rule returned 5;",
        ),
        ("1 / 0", "module", "'tiny-interpreter' cannot choose a schedule: ZeroDivisionError"),
        (
            "ScheduleSpace(())",
            "module",
            "ValueError: a rule returned a ScheduleSpace without points",
        ),
        (
            "ScheduleSpace((ScheduleReport('mine', 'a sum'),) * 2)",
            "module",
            "a ScheduleSpace without points, or with one twice",
        ),
        ("Schedule()", "1 / 0", "'tiny-interpreter' cannot run its pass 'see': ZeroDivisionError"),
        ("Schedule()", "None", "'tiny-interpreter' cannot run its pass 'see'"),
        (
            "Schedule()",
            'Module("flat", (), "f")',
            "it returned a module of the flat stage; expected a module of the coordinate stage",
        ),
    ],
)
def test_rules_and_passes_that_fail_are_blamed_on_the_plugin(schedule, result, message, install):
    install(schedule=schedule, result=result)
    with pytest.raises(PluginError, match=message):
        gs.compile(SCRIPT, target="tiny-interpreter")


UNROLLED = 'Step("tiny-interpreter.unroll_by", {"loop": "j", "factor": 2})'


def test_its_rule_plans_its_primitive(install):
    install(schedule=f"Schedule(loop=({UNROLLED},))")
    assert product(gs.compile(SCRIPT, target="tiny-interpreter")) == [21, 30]


def test_its_primitives_are_applied_by_name_and_replayed(install):
    install(schedule="None")
    builder = gs.schedule(SCRIPT, target="tiny-interpreter").lower().lower()
    builder.apply("tiny-interpreter.unroll_by", "j", factor=2)
    assert product(gs.compile(SCRIPT, target="tiny-interpreter", schedule=builder)) == [21, 30]
    again = gs.schedule(SCRIPT, target="tiny-interpreter").replay(builder.trace)
    assert again.module == builder.module


def test_without_the_plugin_its_steps_are_refused_by_its_name(install):
    install(schedule="None")
    builder = gs.schedule(SCRIPT, target="tiny-interpreter").lower().lower()
    steps = builder.apply("tiny-interpreter.unroll_by", "j").schedule
    with pytest.raises(ScheduleError, match="needs the plugin 'tiny-interpreter'"):
        gs.compile(SCRIPT, schedule=steps)


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [
        ("apply_rule('row_spmv', module, machine, stats)", "row_spmv"),
        ("schedule_report(module, machine, stats)", "row_spmv"),
        ("apply_rule('row_sddmm', module, machine, stats) or Schedule()", "tiny-interpreter"),
    ],
)
def test_its_rule_uses_those_of_gossamer(schedule, rule, install):
    install(schedule=schedule)
    assert gs.explain(SCRIPT, target="tiny-interpreter").rule == rule


def test_opt_lists_and_applies_its_passes_and_primitives(install, capsys, tmp_path):
    asked = install(schedule="None")
    assert main(["opt", "--list"]) == 0
    listed = capsys.readouterr().out
    assert "  tiny-interpreter.see              coordinate, loop or flat\n" in listed
    assert "  tiny-interpreter.unroll_by(loop, factor=..., function=...)" in listed
    program = tmp_path / "program.py"
    program.write_text(SCRIPT)
    steps = [
        "tiny-interpreter.see",
        "lower_iterations",
        "lower_buffers",
        'tiny-interpreter.unroll_by(loop="j")',
        "tiny-interpreter.see",
    ]
    assert main(["opt", str(program), *(f"--pass={step}" for step in steps)]) == 0
    assert "T.unroll(4)" in capsys.readouterr().out
    assert asked == ["pass at coordinate", "pass at loop"]
    wrong = [*steps[:2], "tiny-interpreter.see"]
    assert main(["opt", str(program), *(f"--pass={step}" for step in wrong)]) == 2
    assert "takes a module of the coordinate, loop or flat stage" in capsys.readouterr().err


def test_opt_names_the_intrinsics_of_a_target(install, capsys, tmp_path):
    install(schedule="None")
    program = tmp_path / "program.py"
    program.write_text(print_module(MATMUL))
    step = '--pass=tensorize(loop="l", intrinsic="none")'
    assert main(["opt", str(program), step]) == 2
    assert "outer_product_float32_1x16" in capsys.readouterr().err
    assert main(["opt", str(program), step, "--target", "tiny-interpreter"]) == 2
    assert "outer_product_float32_1x16" not in capsys.readouterr().err


def test_the_plugin_is_listed(install):
    install(schedule="None")
    infos = {backend.name: backend for backend in resolve_target.registry.backend_infos()}
    assert infos["tiny-interpreter"].is_usable
    with pytest.raises(
        UserError, match=r"There is no backend 'other'\. Installed: .*generic-cpu,.* tiny"
    ):
        gs.compile(SCRIPT, target="other")


IMPORT = re.compile(r"^ *(?:from|import) (gossamer_[\w.]+)", re.MULTILINE)


def test_plugins_import_only_declared_modules(root):
    """The table of `docs/plugins.md` has the modules, and `__all__` of each `plugin_api` the names."""
    backends, page = ((root / f"docs/{name}.md").read_text() for name in ("backends", "plugins"))
    table = page.partition("\n## Modules for plugins\n")[2].partition("\n## ")[0]
    declared = re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE)
    assert {"gossamer_backend.plugin_api", "gossamer_schedule.plugin_api"} < set(declared)
    plugin = [*(root / "plugins").glob("*/src/**/*.py")]
    tests = [*(root / "packages/backend/tests/plugins").glob("*.py")]
    tests += (root / "tests/plugins").rglob("*.py")
    texts = [path.read_text() for path in (*plugin, *tests)]
    texts += [PLUGIN, *PYTHON.findall(page)]
    texts += PYTHON.findall(backends.partition("\n## Conformance tests\n")[0])
    imported = {name for text in texts for name in IMPORT.findall(text)}
    plugins = ("gossamer_cuda_mma_sp", "gossamer_generic_cpu", "gossamer_llvm_sve", "gossamer_tiny")
    inside = (*plugins, "gossamer_testkit")
    assert {name for name in imported if not name.startswith(inside)} <= set(declared)
    for name in declared:
        module = importlib.import_module(name)
        assert module.__doc__
        if name.endswith(".plugin_api"):
            assert sorted(module.__all__) == [*module.__all__]
            assert [item for item in module.__all__ if not hasattr(module, item)] == []
            assert [item for item in module.__all__ if f"`{item}`" not in module.__doc__] == []
