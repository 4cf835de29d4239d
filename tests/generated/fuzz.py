"""Many random programs, each judged at every stage and some of them as machine code.

    nox -s fuzz -- --programs 20000 --seed 0 --native 0.3 --scheduled 0.15 --processes 2
    nox -s fuzz -- --schedules 20000

A program is made from the seed and its number alone, so that `--only NUMBER` repeats one. What
disagrees is made smaller and printed as a script with its arrays. The run fails where anything
disagrees, where a program is refused for another reason than the listed ones, and where one of what
`census.required` lists was met too seldom. `--schedules` judges sequences of primitives instead
(`fuzz_schedules`).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal

from rich.console import Console
from rich.table import Table

from tests.generated import fuzz_schedules
from tests.generated.census import census, required
from tests.generated.compilers import unscheduled
from tests.generated.disagreements import Verdict, judged
from tests.generated.drawing import draw_program
from tests.generated.many import MOST_FAILURES, Failure, Tally, Task
from tests.generated.program import Program
from tests.generated.reports import show_program, write
from tests.generated.schedules import REFUSED_SCHEDULES, by_rules, random_schedule
from tests.generated.shrinking import shrunk

ENOUGH = 200
MANY = 20_000
"""How many programs have to meet everything that is required `ENOUGH` times; fewer in proportion."""
OUT = Path(".nox/fuzz.json")


@dataclass(frozen=True)
class Settings:
    """`native` is the share of programs that become machine code, half of these as the default rules
    schedule them; `scheduled` the share that is scheduled at random."""

    seed: str
    native: float
    scheduled: float


@dataclass
class Programs(Tally):
    """What a number of programs came to: how many met what."""

    scheduled: int = 0
    met: Counter[str] = field(default_factory=Counter)


# --- one program


@dataclass(frozen=True)
class Way:
    """How a program is judged."""

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
        return judged(program, native=self.native, schedule=scheduler)


def drawn(number: int, settings: Settings) -> tuple[Program, Way]:
    """A program by its number, and how it is judged."""
    seed = f"{settings.seed}/{number}"
    rng = Random(seed)
    program, is_native = draw_program(rng), rng.random() < settings.native
    if rng.random() < settings.scheduled:
        return program, Way(is_native, "random", seed)
    return program, Way(is_native, "rules" if is_native and rng.random() < 0.5 else "none", seed)


def judge(number: int, found: Programs, settings: Settings) -> None:
    """Adds what a program comes to."""
    program, way = drawn(number, settings)
    verdict = way.verdict(program)
    found.judged += 1
    found.native += way.native
    found.scheduled += way.schedule != "none"
    found.met.update(census(program))
    if verdict.refusal:
        found.refused[verdict.refusal] += 1
    if verdict.disagreement or verdict.refusal not in (None, *way.refusals()):
        found.failures.append(Failure(number, str(verdict.disagreement or verdict.refusal)))


def report(failure: Failure, settings: Settings, console: Console) -> None:
    """Prints a program; one that disagrees is made as small as it goes."""
    number = failure.number
    smaller, way = drawn(number, settings)
    if failure.is_verdict:
        smaller = shrunk(smaller, lambda candidate: bool(way.verdict(candidate).disagreement))
    console.rule(f"program {number} of seed {settings.seed}")
    console.print(failure.what, markup=False)
    show_program(smaller, console)
    console.print(f"{way}", markup=False, highlight=False)
    shares = f"--native {settings.native} --scheduled {settings.scheduled}"
    again = f"nox -s fuzz -- --seed {settings.seed} {shares} --only {number}"
    console.print(f"repeat: {again}", markup=False, highlight=False)


# --- the result


def too_seldom(total: Programs) -> list[str]:
    """What is required and was met less often than the number of programs lets expect."""
    enough = ENOUGH * min(total.judged / MANY, 1)
    return [name for name in required() if total.met[name] < enough]


def table(total: Programs) -> Table:
    found = Table("met", "programs", "met", "programs", "met", "programs", title="What was met")
    names = [*required(), *sorted(set(total.met) - set(required()))]
    cells = [text for name in names for text in (name, str(total.met[name]))]
    for at in range(0, len(cells), 6):
        found.add_row(*cells[at : at + 6])
    return found


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s fuzz --", description=__doc__)
    parser.add_argument("--programs", type=int, default=MANY, help="how many")
    parser.add_argument(
        "--schedules", type=int, metavar="N", help="instead: how many sequences of primitives"
    )
    parser.add_argument("--seed", default="0", help="any text")
    parser.add_argument("--native", type=float, default=0.3, help="the share as machine code")
    parser.add_argument(
        "--scheduled", type=float, default=0.15, help="the share scheduled at random"
    )
    parser.add_argument("--minutes", type=float, default=60, help="after which no more begin")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=OUT, help="the result as JSON")
    parser.add_argument("--only", type=int, help="the number of the one program to judge")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Runs the fuzzer; 1 where something is wrong."""
    options, console = arguments(given), Console()
    if options.schedules is not None:
        return fuzz_schedules.main(options, console)
    settings = Settings(options.seed, options.native, options.scheduled)
    if options.only is not None:
        program, way = drawn(options.only, settings)
        verdict = way.verdict(program)
        report(Failure(options.only, str(verdict)), settings, console)
        return int(verdict != Verdict())
    start = time.monotonic()
    total = Task("programs", partial(judge, settings=settings), Programs).run(
        range(options.programs), processes=options.processes, seconds=60 * options.minutes
    )
    seconds = time.monotonic() - start
    write(options.out, vars(total) | {"seed": settings.seed, "seconds": round(seconds, 1)})
    for failure in total.failures[:MOST_FAILURES]:
        report(failure, settings, console)
    console.print(table(total))
    seldom = too_seldom(total)
    console.print(
        f"{total.judged} programs in {seconds:.0f} s, {total.native} of them as machine code, "
        f"{total.scheduled} scheduled, "
        f"{total.refused.total()} refused {dict(total.refused)}, {len(total.failures)} wrong; "
        f"met too seldom: {', '.join(seldom) or 'nothing'}; data in {options.out}",
        markup=False,
    )
    return int(bool(total.failures or seldom or total.judged < options.programs))


if __name__ == "__main__":
    sys.exit(main())
