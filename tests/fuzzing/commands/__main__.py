"""Runs many random programs: each is checked at every stage, some of them as machine code.

    nox -s fuzz -- --programs 20000 --seed 0 --native 0.3 --scheduled 0.15 --processes 2
    nox -s fuzz -- --programs 20000 --engine hypothesis
    nox -s fuzz -- --programs 2000 --native 1 --scheduled 0.5 --scalable llvm-rvv
    nox -s fuzz -- --schedules 20000
    nox -s fuzz -- --schedules 2000 --native 1 --scalable
    nox -s fuzz -- --lowered 50000 --native 0.1
    nox -s fuzz -- --typed 20000
    nox -s fuzz -- --compiled 3000
    nox -s fuzz -- --staged 3000 --native 0.1

A program depends only on the seed and its number, so `--only NUMBER` repeats one; Hypothesis makes some
hundreds for each number. A failing program is shrunk and printed as a script with its arrays. The run fails
if results disagree, if a program is rejected for a reason that is not listed, or if a feature that
`census.required` lists occurred too seldom. `--schedules` tests sequences of primitives instead
(`step_sequences`), `--lowered` programs of the later stages (`lowered_programs`), `--typed` calls of the
public API with wrong arguments (`wrong_arguments`), `--compiled` only compiles (`compiled_modules`), and
`--staged` tests schedules for GPUs (`staged_schedules`).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.fuzzing.checks.census import required
from tests.fuzzing.checks.ways import Settings
from tests.fuzzing.commands import (
    compiled_modules,
    lowered_programs,
    staged_schedules,
    step_sequences,
    wrong_arguments,
)
from tests.fuzzing.commands.engines import ENGINES, Case, Engine, Programs
from tests.fuzzing.commands.processes import MAX_FAILURES, Failure, Task
from tests.fuzzing.execution.compilers import COMPILERS
from tests.fuzzing.findings.reports import show_program, write
from tests.fuzzing.findings.shrinking import shrunk

ENOUGH = 200
FULL_RUN_PROGRAMS = 20_000
"""The number of programs in which each required feature must occur `ENOUGH` times; proportionally fewer for
shorter runs."""
OUT = Path(".nox/fuzz.json")


def report(failure: Failure, settings: Settings, engine: Engine, console: Console) -> None:
    """Prints a program; a failing one is shrunk first."""
    console.rule(f"program {failure.number} of seed {settings.seed}")
    console.print(failure.what, markup=False)
    case = engine.suspect(failure.number, settings)
    if case is not None:
        program, way = case
        if failure.is_verdict:
            program = shrunk(program, lambda candidate: Case(candidate, way).is_wrong())
        show_program(program, console)
        console.print(f"{way}", markup=False, highlight=False)
    shares = f"--native {settings.native} --scheduled {settings.scheduled} --engine {engine.name}"
    if settings.scalable:
        shares += f" --scalable {settings.scalable}"
    again = f"nox -s fuzz -- --seed {settings.seed} {shares} --only {failure.number}"
    console.print(f"repeat: {again}", markup=False, highlight=False)


# --- the result


def too_seldom(total: Programs) -> list[str]:
    """The required features that occurred less often than the number of programs demands."""
    enough = ENOUGH * min(total.judged / FULL_RUN_PROGRAMS, 1)
    return [name for name in required() if total.met[name] < enough]


def table(total: Programs) -> Table:
    table = Table("met", "programs", "met", "programs", "met", "programs", title="What was met")
    names = [*required(), *sorted(set(total.met) - set(required()))]
    cells = [text for name in names for text in (name, str(total.met[name]))]
    for at in range(0, len(cells), 6):
        table.add_row(*cells[at : at + 6])
    return table


def arguments(args: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nox -s fuzz --", description=__doc__)
    parser.add_argument("--programs", type=int, default=FULL_RUN_PROGRAMS, help="how many")
    parser.add_argument(
        "--schedules", type=int, metavar="N", help="instead: how many sequences of primitives"
    )
    parser.add_argument(
        "--lowered", type=int, metavar="N", help="instead: how many programs of the later stages"
    )
    parser.add_argument(
        "--typed", type=int, metavar="N", help="instead: how many calls with wrong arguments"
    )
    parser.add_argument(
        "--compiled", type=int, metavar="N", help="instead: how many modules to compile"
    )
    parser.add_argument(
        "--staged", type=int, metavar="N", help="instead: how many schedules for GPUs"
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="random",
        help="who draws programs, and makes them smaller",
    )
    parser.add_argument("--seed", default="0", help="any text")
    parser.add_argument("--native", type=float, default=0.3, help="the share as machine code")
    parser.add_argument(
        "--scheduled", type=float, default=0.15, help="the share scheduled at random"
    )
    parser.add_argument(
        "--scalable",
        nargs="?",
        const="llvm-sve",
        choices=COMPILERS,
        metavar="BACKEND",
        help="in scalable vectors, emulated at every vector length of a backend (llvm-sve by default)",
    )
    parser.add_argument("--minutes", type=float, default=60, help="after which no more begin")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=OUT, help="the result as JSON")
    parser.add_argument("--only", type=int, help="the one number to judge")
    return parser.parse_args(args)


def main(args: Sequence[str] | None = None) -> int:
    """Runs the fuzzer; returns 1 if it found a failure."""
    options, console = arguments(args), Console()
    if options.schedules is not None:
        return step_sequences.main(options, console)
    if options.lowered is not None:
        return lowered_programs.main(options, console)
    if options.typed is not None:
        return wrong_arguments.main(options, console)
    if options.compiled is not None:
        return compiled_modules.main(options, console)
    if options.staged is not None:
        return staged_schedules.main(options, console)
    settings = Settings(options.seed, options.native, options.scheduled, options.scalable)
    engine = ENGINES[options.engine]
    judge = partial(engine.judge, settings=settings)
    if options.only is not None:
        tally = Programs()
        judge(options.only, tally)
        for failure in tally.failures[:1] or [Failure(options.only, "nothing is wrong")]:
            report(failure, settings, engine, console)
        return int(bool(tally.failures))
    start = time.monotonic()
    total = Task("programs", judge, Programs, engine.each).run(
        range(-(-options.programs // engine.each)),
        processes=options.processes,
        seconds=60 * options.minutes,
    )
    seconds = time.monotonic() - start
    write(options.out, vars(total) | {"seed": settings.seed, "seconds": round(seconds, 1)})
    for failure in total.failures[:MAX_FAILURES]:
        report(failure, settings, engine, console)
    console.print(table(total))
    seldom = too_seldom(total)
    console.print(
        f"{total.judged} programs in {seconds:.0f} s, {total.native} of them as machine code, "
        f"{total.scheduled} scheduled, {total.scalable} in scalable vectors, "
        f"{total.refused.total()} refused {dict(total.refused)}, {len(total.failures)} wrong; "
        f"met too seldom: {', '.join(seldom) or 'nothing'}; data in {options.out}",
        markup=False,
    )
    return int(bool(total.failures or seldom or total.judged < options.programs))


if __name__ == "__main__":
    sys.exit(main())
