"""Many random programs, each judged at every stage and some of them as machine code.

    nox -s fuzz -- --programs 20000 --seed 0 --native 0.3 --scheduled 0.15 --processes 2

A program is made from the seed and its number alone, so that `--only NUMBER` repeats one. What
disagrees is made smaller and printed as a script with its arrays. The run fails where anything
disagrees, where a program is refused for another reason than the listed ones, and where one of what
`census.required` lists was met too seldom.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tests.generated.census import census, required
from tests.generated.compilers import unscheduled
from tests.generated.disagreements import Verdict, judged
from tests.generated.drawing import draw_program
from tests.generated.program import Program
from tests.generated.schedules import REFUSED_SCHEDULES, by_rules, random_schedule
from tests.generated.shrinking import shrunk

BATCH, ENOUGH, MOST_FAILURES = 40, 200, 10
MANY = 20_000
"""How many programs have to meet everything that is required `ENOUGH` times; fewer in proportion."""


@dataclass(frozen=True)
class Settings:
    """`native` is the share of programs that become machine code, half of these as the default rules
    schedule them; `scheduled` the share that is scheduled at random."""

    seed: str
    native: float
    scheduled: float
    trail: str


class Failure(NamedTuple):
    """A program by its number, what is wrong with it, and whether that is a verdict; else the process
    that judged it raised an error or died."""

    number: int
    what: str
    is_verdict: bool = True


@dataclass
class Tally:
    """What a number of programs came to."""

    programs: int = 0
    native: int = 0
    scheduled: int = 0
    met: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.programs += other.programs
        self.native += other.native
        self.scheduled += other.scheduled
        self.met.update(other.met)
        self.refused.update(other.refused)
        self.failures += other.failures


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


def batch(numbers: range, settings: Settings) -> Tally:
    """Judges programs in a process of its own, which leaves a trail of what it is at."""
    found = Tally()
    trail = trail_of(numbers, settings)
    for number in numbers:
        trail.write_text(str(number))
        program, way = drawn(number, settings)
        verdict = way.verdict(program)
        found.programs += 1
        found.native += way.native
        found.scheduled += way.schedule != "none"
        found.met.update(census(program))
        if verdict.refusal:
            found.refused[verdict.refusal] += 1
        if verdict.disagreement or verdict.refusal not in (None, *way.refusals()):
            what = str(verdict.disagreement or verdict.refusal)
            found.failures.append(Failure(number, what))
    trail.unlink()
    return found


def trail_of(numbers: range, settings: Settings) -> Path:
    """Where a batch says which program it is at."""
    return Path(settings.trail, str(numbers.start))


def report(failure: Failure, settings: Settings, console: Console) -> None:
    """Prints a program; one that disagrees is made as small as it goes."""
    number = failure.number
    smaller, way = drawn(number, settings)
    if failure.is_verdict:
        smaller = shrunk(smaller, lambda candidate: bool(way.verdict(candidate).disagreement))
    console.rule(f"program {number} of seed {settings.seed}")
    console.print(failure.what, markup=False)
    console.print(smaller.text, markup=False, highlight=False)
    for name, value in (*smaller.sizes.items(), *smaller.arrays.items()):
        console.print(f"{name} = {value!r}", markup=False, highlight=False)
    console.print(f"{way}", markup=False, highlight=False)
    shares = f"--native {settings.native} --scheduled {settings.scheduled}"
    again = f"nox -s fuzz -- --seed {settings.seed} {shares} --only {number}"
    console.print(f"repeat: {again}", markup=False, highlight=False)


# --- many programs


def run(wanted: range, settings: Settings, *, processes: int, seconds: float) -> Tally:
    """Judges programs in several processes until all are, time is up, or enough have failed."""
    total, end = Tally(), time.monotonic() + seconds
    batches = iter(wanted[at : at + BATCH] for at in range(0, len(wanted), BATCH))
    with _progress() as progress, ProcessPoolExecutor(processes) as pool:
        task = progress.add_task("programs", total=len(wanted), said="")
        waiting: dict[Future[Tally], range] = {}
        is_going_on = True
        while is_going_on or waiting:
            room = 2 * processes - len(waiting) if is_going_on else 0
            parts = list(islice(batches, room))
            waiting |= {pool.submit(batch, part, settings): part for part in parts}
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for found in done:
                total.add(_outcome(found, waiting.pop(found), settings))
            progress.update(task, completed=total.programs, said=_said(total))
            is_broken = any(isinstance(found.exception(), BrokenProcessPool) for found in done)
            is_in_time = time.monotonic() < end and len(total.failures) < MOST_FAILURES
            is_going_on = bool(parts) and is_in_time and not is_broken
    return total


def _outcome(found: Future[Tally], numbers: range, settings: Settings) -> Tally:
    """What a batch found; where it ended with an error or its process died, at which program."""
    error = found.exception()
    if error is None:
        return found.result()
    trail = trail_of(numbers, settings)
    if not trail.exists():
        return Tally()
    what = f"{type(error).__name__}: {error}"
    return Tally(failures=[Failure(int(trail.read_text()), what, is_verdict=False)])


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(),
    )


def _said(total: Tally) -> str:
    return f"{total.native} native, {total.refused.total()} refused, {len(total.failures)} wrong"


# --- the result


def too_seldom(total: Tally) -> list[str]:
    """What is required and was met less often than the number of programs lets expect."""
    enough = ENOUGH * min(total.programs / MANY, 1)
    return [name for name in required() if total.met[name] < enough]


def table(total: Tally) -> Table:
    found = Table("met", "programs", "met", "programs", "met", "programs", title="What was met")
    names = [*required(), *sorted(set(total.met) - set(required()))]
    cells = [text for name in names for text in (name, str(total.met[name]))]
    for at in range(0, len(cells), 6):
        found.add_row(*cells[at : at + 6])
    return found


def write(path: Path, total: Tally, settings: Settings, seconds: float) -> None:
    data = vars(total) | {"seed": settings.seed, "seconds": round(seconds, 1)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, sort_keys=True))


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s fuzz --", description=__doc__)
    parser.add_argument("--programs", type=int, default=MANY, help="how many")
    parser.add_argument("--seed", default="0", help="any text")
    parser.add_argument("--native", type=float, default=0.3, help="the share as machine code")
    parser.add_argument(
        "--scheduled", type=float, default=0.15, help="the share scheduled at random"
    )
    parser.add_argument("--minutes", type=float, default=60, help="after which no more begin")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--out", type=Path, default=Path(".nox/fuzz.json"), help="the result as JSON"
    )
    parser.add_argument("--only", type=int, help="the number of the one program to judge")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Runs the fuzzer; 1 where something is wrong."""
    options, console, start = arguments(given), Console(), time.monotonic()
    with TemporaryDirectory() as trail:
        settings = Settings(options.seed, options.native, options.scheduled, trail)
        if options.only is not None:
            program, way = drawn(options.only, settings)
            verdict = way.verdict(program)
            report(Failure(options.only, str(verdict)), settings, console)
            return int(verdict != Verdict())
        total = run(
            range(options.programs),
            settings,
            processes=options.processes,
            seconds=60 * options.minutes,
        )
    seconds = time.monotonic() - start
    write(options.out, total, settings, seconds)
    for failure in total.failures[:MOST_FAILURES]:
        report(failure, settings, console)
    console.print(table(total))
    seldom = too_seldom(total)
    console.print(
        f"{total.programs} programs in {seconds:.0f} s, {total.native} of them as machine code, "
        f"{total.scheduled} scheduled, "
        f"{total.refused.total()} refused {dict(total.refused)}, {len(total.failures)} wrong; "
        f"met too seldom: {', '.join(seldom) or 'nothing'}; data in {options.out}",
        markup=False,
    )
    return int(bool(total.failures or seldom or total.programs < options.programs))


if __name__ == "__main__":
    sys.exit(main())
