"""Runs random contractions with random schedules for GPUs: interpreted as kernels, and some of them as PTX.

A contraction and its schedule depend only on the seed and their number.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from random import Random

from rich.console import Console

from gossamer_ir.nodes import AsyncCopy, Barrier, Module, Shuffle
from gossamer_ir.traversal.walk import contains
from tests.fuzzing.checks.disagreements import Verdict
from tests.fuzzing.checks.staged_kernels import REFUSED, launches_once, staged_verdict
from tests.fuzzing.commands.processes import MAX_FAILURES, Failure, Tally, Task
from tests.fuzzing.findings.reports import plain, write

KINDS = (Barrier, Shuffle, AsyncCopy)


@dataclass
class StagedKernels(Tally):
    """The results of a batch; `met` are the kernels with each of `KINDS`."""

    met: Counter[str] = field(default_factory=Counter)


def judge(number: int, tally: StagedKernels, *, seed: str, native: float) -> None:
    """Judge a schedule: by the interpreter of the language, a share also by that of PTX."""
    text = f"{seed}/staged/{number}"
    modules = list[Module]()
    verdict = staged_verdict(text, modules, native=False)
    is_native = Random(f"{text}/native").random() < native
    if verdict == Verdict() and is_native and launches_once(modules[-1]):
        verdict = staged_verdict(text, modules, native=True)
        tally.native += verdict == Verdict()
    tally.judged += 1
    if verdict.refusal is not None:
        tally.refused[verdict.refusal] += 1
    if verdict.disagreement is not None or verdict.refusal not in {None, *REFUSED}:
        tally.failures.append(Failure(number, str(verdict)))
    tally.met.update(kind.__name__ for kind in KINDS if contains(kind, *_kernels(modules)))


def _kernels(modules: list[Module]) -> tuple[object, ...]:
    return modules[-1].functions if modules else ()


def main(options: Namespace, console: Console) -> int:
    """Run the session; return 1 if a kernel is wrong, or a kind of statement was met too seldom."""
    task = partial(judge, seed=options.seed, native=options.native)
    if options.only is not None:
        tally = StagedKernels()
        task(options.only, tally)
        plain(console, tally.failures[0].what if tally.failures else "nothing is wrong")
        return int(bool(tally.failures))
    start = time.monotonic()
    total = Task("schedules", task, StagedKernels).run(
        range(options.staged), processes=options.processes, seconds=60 * options.minutes
    )
    seconds = time.monotonic() - start
    for failure in total.failures[:MAX_FAILURES]:
        plain(console, failure.what)
        again = (
            f"--staged 1 --seed {options.seed} --native {options.native} --only {failure.number}"
        )
        plain(console, f"repeat: nox -s fuzz -- {again}")
    seldom = [kind.__name__ for kind in KINDS if total.met[kind.__name__] * 50 < total.judged]
    plain(
        console,
        f"{total.judged} schedules in {seconds:.0f} s, {total.native} of them as PTX; kernels with "
        f"{dict(total.met)}; refused {dict(total.refused)}; {len(total.failures)} wrong; met too seldom: "
        f"{', '.join(seldom) or 'nothing'}",
    )
    write(options.out, vars(total) | {"seed": options.seed, "seconds": round(seconds, 1)})
    return int(bool(total.failures or seldom or total.judged < options.staged))
