"""The hooks a plugin may implement. They only register: they return objects and do nothing else.

A plugin is a module (or object) named by an entry point of the group `gossamer.plugins`; the entry
point's name is the name of its backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
import pluggy

from gossamer_backend.registry.protocol import Backend
from gossamer_ir.interchange.records import Intrinsic, Schedule, Stats, Target
from gossamer_ir.nodes import Module, StageName

PROJECT = "gossamer"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

ScheduleRules: TypeAlias = Callable[[Module, Target, Stats | None], Schedule | None]
"""Rules choose a schedule for a module, or None where they have nothing to say; stats may be unknown."""


class Pass(msgspec.Struct, frozen=True):
    """A rewrite that a backend wants run on modules of one stage, after the schedule's steps there
    and before they are lowered (flat: before they are compiled). What it returns is verified."""

    name: str
    stage: StageName
    run: Callable[[Module], Module]


@hookspec
def gossamer_backends() -> Sequence[Backend]:
    """The plugin's backend, named like its entry point."""
    raise NotImplementedError


@hookspec
def gossamer_intrinsics() -> Sequence[Intrinsic]:
    """What `tensorize` may put in the place of loops in modules that the plugin compiles."""
    raise NotImplementedError


@hookspec
def gossamer_passes() -> Sequence[Pass]:
    """Passes for modules that this plugin compiles."""
    raise NotImplementedError


@hookspec
def gossamer_schedules() -> Sequence[ScheduleRules]:
    """Rules for schedules, asked in order; where none answers, those of gossamer do."""
    raise NotImplementedError
