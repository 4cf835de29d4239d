"""Compiles many flat modules with every backend: each is compiled or refused, and no process dies.

A module depends only on the seed and its number.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from random import Random

from rich.console import Console

from gossamer_ir.analysis.scalable_vectors import has_scalable_vectors
from gossamer_ir.script import print_module
from tests.fuzzing.checks.compiled_modules import COMPILED, Compilation, draw_compilation
from tests.fuzzing.commands.processes import MAX_FAILURES, Tally, Task
from tests.fuzzing.findings.reports import plain, write


@dataclass
class Modules(Tally):
    """The results of a batch: the numbers of compiled modules, by target, and of those among them with
    scalable vectors."""

    compiled: Counter[str] = field(default_factory=Counter)
    scalable: Counter[str] = field(default_factory=Counter)


def drawn(number: int, *, seed: str) -> Compilation:
    """The module of a number, and its target."""
    return draw_compilation(Random(f"{seed}/compiled/{number}"))


def judge(number: int, tally: Modules, *, seed: str) -> None:
    """Compiles a module. An exception other than an error of gossamer ends the run."""
    compilation = drawn(number, seed=seed)
    outcome = compilation.outcome()
    tally.judged += 1
    if outcome != COMPILED:
        tally.refused[outcome] += 1
        return
    tally.compiled[compilation.target] += 1
    tally.scalable[compilation.target] += has_scalable_vectors(compilation.module)


def main(options: Namespace, console: Console) -> int:
    """Runs the session; returns 1 if a process died."""
    seed = options.seed
    if options.only is not None:
        show(options.only, seed, console)
        judge(options.only, Modules(), seed=seed)
        return 0
    start = time.monotonic()
    total = Task("modules", partial(judge, seed=seed), Modules).run(
        range(options.compiled), processes=options.processes, seconds=60 * options.minutes
    )
    seconds = time.monotonic() - start
    for failure in total.failures[:MAX_FAILURES]:
        show(failure.number, seed, console)
        plain(console, failure.what)
    plain(
        console,
        f"{total.judged} modules in {seconds:.0f} s: compiled {dict(total.compiled)}, with scalable vectors "
        f"{dict(total.scalable)}; refused {dict(total.refused)}; {len(total.failures)} wrong",
    )
    write(options.out, vars(total) | {"seed": seed, "seconds": round(seconds, 1)})
    return int(bool(total.failures or total.judged < options.compiled))


def show(number: int, seed: str, console: Console) -> None:
    """Prints a module."""
    compilation = drawn(number, seed=seed)
    console.rule(f"module {number} of seed {seed}, for {compilation.target}")
    plain(console, print_module(compilation.module))
    plain(console, f"repeat: nox -s fuzz -- --compiled 1 --seed {seed} --only {number}")
