"""Many random programs of the position, loop and flat stage, each interpreted before and after every pass, and
some of them as machine code in a process that may die.

A program is made from the seed and its number alone. What disagrees is printed as a script, made smaller, with
its arrays and the pass after which it does. The run fails where anything disagrees, and where one of what
`features.REQUIRED` lists was drawn too seldom.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random

from rich.console import Console
from rich.table import Table

from tests.generated.elements import Undecided
from tests.generated.lowered.drawing import draw_lowered
from tests.generated.lowered.features import REQUIRED, features
from tests.generated.lowered.judging import Finding, judged
from tests.generated.lowered.machines import Machine
from tests.generated.lowered.program import Lowered
from tests.generated.many import MOST_FAILURES, Failure, Tally, Task
from tests.generated.reports import plain, show_program, write
from tests.generated.shrinking import shrunk

MANY = 20_000
"""In so many programs everything in `REQUIRED` has to be met as often as it says."""
MOST_SHRUNK = 1500


@dataclass
class Programs(Tally):
    """What a number of programs came to; `passes` counts those that changed a program."""

    met: Counter[str] = field(default_factory=Counter)
    unevaluated: int = 0


@cache
def machine() -> Machine:
    """The process that runs the machine code of this one."""
    return Machine()


def drawn(number: int, *, seed: str, native: float) -> tuple[Lowered, bool]:
    """A program by its number, and whether it runs as machine code."""
    rng = Random(f"{seed}/lowered/{number}")
    is_native = rng.random() < native
    return draw_lowered(rng), is_native


def judge(number: int, found: Programs, *, seed: str, native: float) -> None:
    """Adds what a program comes to."""
    program, is_native = drawn(number, seed=seed, native=native)
    finding = judged(program, machine=machine() if is_native else None)
    found.judged += 1
    found.native += is_native
    found.met.update(features(program))
    found.unevaluated += not program.is_evaluated
    if finding is not None and finding.is_refusal:
        found.refused[finding.what] += 1
    elif finding is not None:
        found.failures.append(Failure(number, f"{finding.where}: {finding.what}"))


def main(options: Namespace, console: Console) -> int:
    """Runs the session; 1 where something is wrong."""
    how = {"seed": options.seed, "native": options.native}
    if options.only is not None:
        report(options.only, how, console)
        return 0
    start = time.monotonic()
    total = Task("programs", partial(judge, **how), Programs).run(
        range(options.lowered), processes=options.processes, seconds=60 * options.minutes
    )
    seconds = time.monotonic() - start
    for failure in total.failures[:MOST_FAILURES]:
        report(failure.number, how, console)
    console.print(table(total))
    seldom = too_seldom(total)
    plain(
        console,
        f"{total.judged} programs in {seconds:.0f} s, {total.native} of them as machine code, "
        f"{total.unevaluated} without an oracle; refused: {total.refused.total()} "
        f"{dict(total.refused)}; {len(total.failures)} wrong; met too seldom: "
        f"{', '.join(seldom) or 'nothing'}; data in {options.out}",
    )
    write(options.out, vars(total) | how | {"seconds": round(seconds, 1)})
    return int(bool(total.failures or seldom or total.judged < options.lowered))


def too_seldom(total: Programs) -> list[str]:
    """What was met less often than the number of programs lets expect."""
    share = min(total.judged / MANY, 1)
    return [name for name, count in REQUIRED.items() if total.met[name] < int(count * share)]


def table(total: Programs) -> Table:
    found = Table("met", "programs", "met", "programs", "met", "programs", title="What was met")
    cells = [text for name in sorted(total.met) for text in (name, str(total.met[name]))]
    for at in range(0, len(cells), 6):
        found.add_row(*cells[at : at + 6])
    return found


def report(number: int, how: Mapping[str, object], console: Console) -> None:
    """Prints a program; one that is wrong is made as small as it goes."""
    program, is_native = drawn(number, **how)  # type: ignore[arg-type]  # its two options
    console.rule(f"program {number} of seed {how['seed']}")
    on = machine() if is_native else None
    finding = judged(program, machine=on)
    if finding is not None and not finding.is_refusal:
        program, finding = smallest(program, finding, on)
    show_program(program, console)
    if finding is None:
        return plain(console, "nothing is wrong")
    plain(console, f"# after {finding.where}:\n{finding.made}\n{finding.where}: {finding.what}")
    again = f"--lowered 1 --seed {how['seed']} --native {how['native']} --only {number}"
    return plain(console, f"repeat: nox -s fuzz -- {again}")


def smallest(program: Lowered, finding: Finding, on: Machine | None) -> tuple[Lowered, Finding]:
    """The smallest program that is wrong after the same pass, and what is."""
    on = on if finding.where == "machine code" else None

    def wrong(candidate: Lowered) -> Finding | None:
        try:
            found = judged(candidate, machine=on)
        except Undecided:
            return None
        return found if found is not None and found.where == finding.where else None

    smaller = shrunk(
        program,
        lambda candidate: bool((found := wrong(candidate)) and not found.is_refusal),
        most=MOST_SHRUNK,
    )
    return smaller, wrong(smaller) or finding
