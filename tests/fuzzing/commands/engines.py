"""Sources of random choices: a random number generator for many programs, or Hypothesis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, NamedTuple

import hypothesis
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.fuzzing.checks.census import census
from tests.fuzzing.checks.ways import Settings, Way, draw_way
from tests.fuzzing.commands.processes import Failure, Tally
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.programs.program import Program
from tests.fuzzing.programs.strategies import draws, programs


class Case(NamedTuple):
    """A program, and how it is checked."""

    program: Program
    way: Way

    def is_wrong(self) -> bool:
        return self.way.is_wrong(self.way.verdict(self.program))


@dataclass
class Programs(Tally):
    """The results of a batch: the numbers of programs that were scheduled, in scalable vectors, and with each
    feature."""

    scheduled: int = 0
    scalable: int = 0
    met: Counter[str] = field(default_factory=Counter)

    def judge(self, case: Case, number: int) -> None:
        """Adds the results of a program."""
        program, way = case
        verdict = way.verdict(program)
        self.judged += 1
        self.native += way.native
        self.scheduled += way.schedule != "none"
        self.scalable += verdict.is_scalable
        self.met.update(census(program))
        if verdict.refusal:
            self.refused[verdict.refusal] += 1
        if way.is_wrong(verdict):
            self.failures.append(Failure(number, str(verdict.disagreement or verdict.refusal)))


class Engine(ABC):
    """Draws `each` programs for a number, which depend only on the seed and that number."""

    name: ClassVar[str]
    each: int

    @abstractmethod
    def judge(self, number: int, tally: Programs, *, settings: Settings) -> None:
        """Adds the results of the programs of a number."""

    @abstractmethod
    def suspect(self, number: int, settings: Settings) -> Case | None:
        """The program of a number; if there are several, a failing one, as small as it was found."""


class ByRandom(Engine):
    """A program for each number."""

    name, each = "random", 1

    def judge(self, number: int, tally: Programs, *, settings: Settings) -> None:
        tally.judge(self.suspect(number, settings), number)

    def suspect(self, number: int, settings: Settings) -> Case:
        seed = f"{settings.seed}/{number}"
        rng = Random(seed)
        return Case(draw_program(rng), draw_way(rng, settings, seed=seed))


@dataclass(frozen=True)
class ByHypothesis(Engine):
    """Runs of Hypothesis, one for each number, independent of each other."""

    name: ClassVar[str] = "hypothesis"
    each: int = 500

    def judge(self, number: int, tally: Programs, *, settings: Settings) -> None:
        @hypothesis.seed(_random(number, settings).getrandbits(64))
        @self._how(Phase.generate)
        @hypothesis.given(cases(settings))
        def run(case: Case) -> None:
            tally.judge(case, number)

        run()

    def suspect(self, number: int, settings: Settings) -> Case | None:
        how = self._how(Phase.generate, Phase.shrink)
        try:
            return hypothesis.find(
                cases(settings), Case.is_wrong, settings=how, random=_random(number, settings)
            )
        except hypothesis.errors.NoSuchExample:
            return None

    def _how(self, *phases: Phase) -> hypothesis.settings:
        return hypothesis.settings(
            max_examples=self.each,
            phases=phases,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )


def _random(number: int, settings: Settings) -> Random:
    return Random(f"{settings.seed}/{number}")


@st.composite
def cases(draw: Callable[[SearchStrategy], object], settings: Settings) -> Case:
    """Programs with a meaning, each with a way to check it."""
    rng = draw(draws())
    return Case(draw(programs()), draw_way(rng, settings, seed=str(rng.randrange(2**16))))


ENGINES: dict[str, Engine] = {engine.name: engine for engine in (ByRandom(), ByHypothesis())}
