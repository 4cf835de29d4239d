"""How a program is checked: interpreted or as machine code, as written or scheduled."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.execution.compilers import unscheduled
from tests.fuzzing.programs.program import Program
from tests.fuzzing.schedules.draw_schedule import REFUSED_SCHEDULES, by_rules, random_schedule


@dataclass(frozen=True)
class Settings:
    """`native` is the share of programs that become machine code, half of these as the default rules
    schedule them; `scheduled` the share that is scheduled at random."""

    seed: str
    native: float
    scheduled: float


@dataclass(frozen=True)
class Way:
    """How a program is judged; a random schedule is made from its `seed`."""

    native: bool
    schedule: Literal["none", "rules", "random"]
    seed: str

    def refusals(self) -> frozenset[str]:
        """The reasons for which a program may be refused."""
        return REFUSED_SCHEDULES if self.schedule == "random" else frozenset()

    def verdict(self, program: Program) -> Verdict:
        scheduler = unscheduled
        if self.schedule == "rules":
            scheduler = by_rules(program.module)
        elif self.schedule == "random":
            scheduler = random_schedule(Random(self.seed), program.module)
        return verdict_of(program, native=self.native, schedule=scheduler)

    def is_wrong(self, verdict: Verdict) -> bool:
        """Return whether something disagrees, or the program should not have been refused."""
        return bool(verdict.disagreement) or verdict.refusal not in (None, *self.refusals())


def draw_way(rng: Random, settings: Settings, *, seed: str) -> Way:
    """A way for one program."""
    is_native = rng.random() < settings.native
    if rng.random() < settings.scheduled:
        return Way(is_native, "random", seed)
    return Way(is_native, "rules" if is_native and rng.random() < 0.5 else "none", seed)
