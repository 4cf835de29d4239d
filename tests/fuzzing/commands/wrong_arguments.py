"""Calls the public API many times with wrong arguments: any error that is not of gossamer is a defect.

A call depends only on the seed and its number.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from random import Random

from rich.console import Console

from tests.fuzzing.checks.wrong_calls import draw_call
from tests.fuzzing.commands.processes import MAX_FAILURES, Failure, Tally, Task
from tests.fuzzing.findings.reports import plain, write


@dataclass
class Calls(Tally):
    """The results of a batch: the number of calls of each kind."""

    kinds: Counter[str] = field(default_factory=Counter)


def judge(number: int, tally: Calls, *, seed: str) -> None:
    """Adds the results of a call."""
    call = draw_call(Random(f"{seed}/typed/{number}"))
    wrong = call.wrong()
    tally.judged += 1
    tally.kinds[call.kind] += 1
    if wrong is not None:
        tally.failures.append(Failure(number, f"{call.kind}: {wrong}"))


def main(options: Namespace, console: Console) -> int:
    """Runs the session; returns 1 if it found a failure."""
    seed = options.seed
    if options.only is not None:
        report(options.only, seed, console)
        return 0
    start = time.monotonic()
    total = Task("calls", partial(judge, seed=seed), Calls).run(
        range(options.typed), processes=options.processes, seconds=60 * options.minutes
    )
    seconds = time.monotonic() - start
    for failure in total.failures[:MAX_FAILURES]:
        report(failure.number, seed, console)
    plain(
        console,
        f"{total.judged} calls in {seconds:.0f} s {dict(total.kinds)}, {len(total.failures)} wrong",
    )
    write(options.out, vars(total) | {"seed": seed, "seconds": round(seconds, 1)})
    return int(bool(total.failures or total.judged < options.typed))


def report(number: int, seed: str, console: Console) -> None:
    """Prints a call and its outcome."""
    call = draw_call(Random(f"{seed}/typed/{number}"))
    console.rule(f"call {number} of seed {seed}")
    plain(console, f"{call.says}\n{call.wrong() or 'nothing is wrong'}")
    plain(console, f"repeat: nox -s fuzz -- --typed 1 --seed {seed} --only {number}")
