"""How a program is checked: interpreted or as machine code, as written or scheduled."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.execution.compilers import COMPILERS, TOO_LARGE, Scheduler, unscheduled
from tests.fuzzing.programs.program import Program
from tests.fuzzing.schedules.draw_schedule import (
    REFUSED_SCHEDULES,
    TARGETS,
    by_rules,
    random_schedule,
)
from tests.fuzzing.schedules.native_lanes import with_native_lanes

ScheduleKind: TypeAlias = Literal["none", "rules", "random"]
VSCALES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Settings:
    """`native` is the share of programs that become machine code, half of these as the default rules
    schedule them; `scheduled` the share that is scheduled at random. All are in scalable vectors if
    `scalable` is a backend for these."""

    seed: str
    native: float
    scheduled: float
    scalable: str | None = None


@dataclass(frozen=True)
class Way:
    """How a program is judged; a random schedule is made from its `seed`. With a `vscale`, loops are in
    scalable vectors: that many units are interpreted, and machine code of the backend `scalable` is emulated
    at every length."""

    native: bool
    schedule: ScheduleKind
    seed: str
    vscale: int | None = None
    scalable: str | None = None

    def refusals(self) -> frozenset[str]:
        """The reasons for which a program may be refused."""
        is_free = self.schedule == "random" or self.vscale is not None
        # A program may be too large whatever the schedule is.
        return REFUSED_SCHEDULES if is_free else frozenset({TOO_LARGE})

    def verdict(self, program: Program) -> Verdict:
        scheduler = self._scheduler(program)
        if self.scalable is None:
            return verdict_of(program, native=self.native, schedule=scheduler)
        return verdict_of(
            program,
            COMPILERS[self.scalable],
            native=self.native,
            schedule=with_native_lanes(scheduler),
            vscale=self.vscale,
        )

    def _scheduler(self, program: Program) -> Scheduler:
        targets = TARGETS if self.scalable is None else (self.scalable,)
        match self.schedule:
            case "rules":
                return by_rules(program.module, targets[0])
            case "random":
                return random_schedule(Random(self.seed), program.module, targets=targets)
            case "none":
                return unscheduled

    def is_wrong(self, verdict: Verdict) -> bool:
        """Return whether something disagrees, or the program should not have been refused."""
        return bool(verdict.disagreement) or verdict.refusal not in (None, *self.refusals())


def draw_way(rng: Random, settings: Settings, *, seed: str) -> Way:
    """A way for one program."""
    is_native = rng.random() < settings.native
    schedule: ScheduleKind = "random"
    if rng.random() >= settings.scheduled:
        schedule = "rules" if is_native and rng.random() < 0.5 else "none"
    vscale = rng.choice(VSCALES) if settings.scalable else None
    return Way(is_native, schedule, seed, vscale, settings.scalable)
