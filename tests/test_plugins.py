"""An external plugin through the public API: its backend, rules and passes."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest

import gossamer as gs
from gossamer import kernel_cache, resolve_target
from gossamer.operators.spmv import SCRIPT
from gossamer_backend import Registry
from gossamer_ir.errors import PluginError, UserError

PLUGIN = """
from gossamer_backend.registry.hookspecs import Pass, hookimpl
from gossamer_ir.interchange.records import Decision, Schedule, ScheduleReport, Step
from gossamer_ir.nodes import Module
from gossamer_tiny import TinyInterpreter

ASKED = []


@hookimpl
def gossamer_backends():
    return [TinyInterpreter()]


def silent(module, target, stats):
    ASKED.append(f"rules at {{module.stage}}")


@hookimpl
def gossamer_schedules():
    return [silent, lambda module, target, stats: {schedule}]


def see(module):
    ASKED.append(f"pass at {{module.stage}}")
    return {result}


@hookimpl
def gossamer_passes():
    return [Pass("see", stage, see) for stage in ("coordinate", "loop", "flat")]
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
    monkeypatch.setattr(
        kernel_cache, "_kernels_by_key", {}
    )  # the versions of these plugins do not differ

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
    y = np.empty(2, np.float32)
    indptr, indices = np.array([0, 2, 3], np.int32), np.array([0, 1, 1], np.int32)
    kernel(
        a=np.array([1, 2, 3], np.float32),
        x=np.array([1, 10], np.float32),
        y=y,
        indptr=indptr,
        indices=indices,
    )
    assert y.tolist() == [21, 30]


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
    found = gs.explain(SCRIPT, target="tiny-interpreter")
    assert (found.rule, [decision.why for decision in found.decisions]) == (rule, [why])
    assert [step.op for step in found.schedule.loop] == ["split"]


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


def test_the_plugin_is_listed(install):
    install(schedule="None")
    found = {backend.name: backend for backend in resolve_target.registry.backend_infos()}
    assert found["tiny-interpreter"].usable
    with pytest.raises(
        UserError, match=r"There is no backend 'other'\. Installed: generic-cpu, tiny"
    ):
        gs.compile(SCRIPT, target="other")
