"""The hooks that a plugin may implement. Hooks only register: they return objects and do nothing else.

A plugin is a module (or object) named by an entry point. One of the group `gossamer.plugins` has a backend,
whose name is that of the entry point. One of the group `gossamer.extensions` has none: it extends the backend
of another plugin, and the name of the entry point is `<backend>.<extension>`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec
import pluggy

from gossamer_backend.registry.protocol import Backend
from gossamer_ir.interchange.records import (
    Intrinsic,
    Schedule,
    ScheduleReport,
    ScheduleSpace,
    Stats,
)
from gossamer_ir.nodes import Module, StageName
from gossamer_machine.machine import Machine

PROJECT = "gossamer"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

ScheduleRule: TypeAlias = Callable[
    [Module, Machine, Stats | None], ScheduleSpace | ScheduleReport | Schedule | None
]
"""A function that returns a schedule for a module on a machine, in a report if it gives reasons for its
decisions, or None if it does not apply; stats may be unknown. If there are several good schedules, it returns
all of them as a `ScheduleSpace`: programs are compiled with the first, and tuners measure the others.

It can use the rules of gossamer, which have the same signature, by `schedule_report` and `apply_rule` of
`gossamer_schedule.plugin_api`."""


class Pass(msgspec.Struct, frozen=True):
    """A pass of a plugin on modules of one stage. It runs once: after the schedule's steps for this stage and
    before the module is lowered (or, if flat, compiled), or at the extension point `at`, such as
    "before vectorize_loops". Its result is verified."""

    name: str
    stage: StageName
    run: Callable[[Module], Module]
    at: str | None = None


@hookspec
def gossamer_backends() -> Sequence[Backend]:
    """Return the plugin's backend, which has the name of its entry point. Extensions have none."""
    raise NotImplementedError


@hookspec
def gossamer_intrinsics() -> Sequence[Intrinsic]:
    """Return the intrinsics that `tensorize` may use in modules for the backend."""
    raise NotImplementedError


@hookspec
def gossamer_passes() -> Sequence[Pass]:
    """Return the passes for modules that the backend compiles."""
    raise NotImplementedError


@hookspec
def gossamer_primitives() -> Sequence[Callable[..., Any]]:
    """Return the primitives that schedules for the backend's targets may use, made with the decorator
    `gossamer_schedule.plugin_api.plugin_primitive`."""
    raise NotImplementedError


@hookspec
def gossamer_schedules() -> Sequence[ScheduleRule]:
    """Return rules for schedules, in order; if none of them applies, those of gossamer follow."""
    raise NotImplementedError
