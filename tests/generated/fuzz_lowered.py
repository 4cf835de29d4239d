"""Runs many random programs of the position, loop and flat stage. Each is interpreted before and after
every pass; some are scheduled by random steps, and some run as machine code in a process that may crash.

A program depends only on the seed and its number. A failing one is shrunk and printed as a script, with its
arrays, the fewest steps and the pass that changes its results. The run fails if results disagree, or if a
feature that `features.REQUIRED` lists was drawn too seldom.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from typing import Any

from rich.console import Console
from rich.table import Table

from gossamer_schedule.trace.codec import trace_to_python
from tests.generated.chains import draw_chain
from tests.generated.drawers import DRAWERS
from tests.generated.elements import Undecided
from tests.generated.lowered.drawing import draw_lowered
from tests.generated.lowered.features import NATIVELY, REQUIRED, features
from tests.generated.lowered.judging import MACHINE_CODE, Finding, judged
from tests.generated.lowered.machines import Machine
from tests.generated.lowered.program import Lowered
from tests.generated.lowered.scheduling import Steps, replayed
from tests.generated.many import MOST_FAILURES, Failure, Tally, Task
from tests.generated.nests import draw_nest
from tests.generated.reports import plain, show_program, write
from tests.generated.sequences import Traces, shortest
from tests.generated.shrinking import shrunk

MANY = 20_000
"""In so many programs everything in `REQUIRED` has to be met as often as it says."""
MANY_NATIVE, ENOUGH_ACCEPTED = 2_000, 20
"""The same for `NATIVELY` and those that run as machine code; how often each primitive has to be accepted in
so many programs that are scheduled."""
OF_COORDINATES = frozenset({"sparse_reorder", "sparse_fuse", "sparse_unfuse", "sparse_compute_at"})
"""Primitives that no program of the later stages takes."""
MOST_SHRUNK = 1500
SCHEDULED = ("position", "loop", "loop")
"""The stages of programs that are scheduled."""
FITTED = 0.1
"""The share of those that steps fit which few other programs do."""
FITTING = {
    "rolling_buffer": 60, "fuse_reduction_epilogue": 60, "decompose_padding": 30,
    "reverse_compute_inline": 30,
}  # fmt: skip
"""How often such steps are tried on them."""
IN_BLOCKS = 0.7
"""The share of those that have blocks most of all."""


@dataclass
class Programs(Tally):
    """What a number of programs came to: what was met in those that were not scheduled, and in those of them
    that ran as machine code, how many have no oracle, how many were scheduled, and how often each
    primitive was tried and accepted."""

    met: Counter[str] = field(default_factory=Counter)
    met_natively: Counter[str] = field(default_factory=Counter)
    native_unscheduled: int = 0
    unevaluated: int = 0
    scheduled: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)


@cache
def machine() -> Machine:
    """The process that runs the machine code of this one."""
    return Machine()


@dataclass(frozen=True)
class Case:
    """A program, whether it runs as machine code, and its schedule."""

    program: Lowered
    is_native: bool
    steps: Steps | None

    def finding(self) -> Finding | None:
        """Draws the steps of the schedule, too."""
        on = machine() if self.is_native else None
        return judged(self.program, machine=on, schedule=self.steps)


def drawn(number: int, *, seed: str, native: float, scheduled: float) -> Case:
    """A program by its number."""
    rng = Random(f"{seed}/lowered/{number}")
    is_native, is_scheduled = rng.random() < native, rng.random() < scheduled
    if not is_scheduled:
        return Case(draw_lowered(rng), is_native, None)
    if rng.random() < FITTED:
        return Case(_fitted(rng), is_native, Steps(rng, weights=FITTING))
    program = draw_lowered(rng, rng.choice(SCHEDULED), has_blocks=rng.random() < IN_BLOCKS)
    return Case(program, is_native, Steps(rng))


def _fitted(rng: Random) -> Lowered:
    """A program for steps that few others fit: chains of two blocks, or copies with padding in nests."""
    while True:
        found = rng.choice((draw_chain, draw_nest))(rng)
        program = Lowered(found.module, found.arrays, found.sizes)
        if program.has_meaning:
            return program


def judge(number: int, found: Programs, **how: Any) -> None:
    """Adds what a program comes to."""
    case = drawn(number, **how)
    program, finding = case.program, case.finding()
    found.judged += 1
    found.native += case.is_native
    if case.steps is None:
        met = features(program)
        found.met.update(met)
        found.native_unscheduled += case.is_native
        found.met_natively.update(met if case.is_native else ())
    else:
        found.scheduled += 1
        found.tried.update(case.steps.tried)
        found.accepted.update(step.op for step in case.steps.steps)
    found.unevaluated += not program.is_evaluated
    if finding is not None and finding.is_refusal:
        found.refused[finding.what] += 1
    elif finding is not None:
        found.failures.append(Failure(number, f"{finding.where}: {finding.what}"))


def main(options: Namespace, console: Console) -> int:
    """Runs the session; 1 where something is wrong."""
    how = {"seed": options.seed, "native": options.native, "scheduled": options.scheduled}
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
        f"{total.scheduled} scheduled by {total.accepted.total()} steps, "
        f"{total.unevaluated} without an oracle; refused: {total.refused.total()} "
        f"{dict(total.refused)}; {len(total.failures)} wrong; met too seldom: "
        f"{', '.join(seldom) or 'nothing'}; data in {options.out}",
    )
    write(options.out, vars(total) | how | {"seconds": round(seconds, 1)})
    return int(bool(total.failures or seldom or total.judged < options.lowered))


def too_seldom(total: Programs) -> list[str]:
    """What was met, or accepted, less often than the number of programs lets expect."""
    accepted = dict.fromkeys(sorted(DRAWERS.keys() - OF_COORDINATES), ENOUGH_ACCEPTED)
    natively = _fewer(total.met_natively, NATIVELY, total.native_unscheduled / MANY_NATIVE)
    return [
        *_fewer(total.met, REQUIRED, (total.judged - total.scheduled) / MANY),
        *[f"{name} as machine code" for name in natively],
        *_fewer(total.accepted, accepted, total.scheduled / MANY),
    ]


def _fewer(found: Counter[str], wanted: Mapping[str, int], share: float) -> list[str]:
    return [name for name, count in wanted.items() if found[name] < int(count * min(share, 1))]


def table(total: Programs) -> Table:
    found = Table("met", "programs", "met", "programs", "met", "programs", title="What was met")
    cells = [text for name in sorted(total.met) for text in (name, str(total.met[name]))]
    for at in range(0, len(cells), 6):
        found.add_row(*cells[at : at + 6])
    return found


def report(number: int, how: Mapping[str, Any], console: Console) -> None:
    """Prints a program; one that is wrong is made as small as it goes."""
    case = drawn(number, **how)
    console.rule(f"program {number} of seed {how['seed']}")
    finding, program = case.finding(), case.program
    traces = {} if case.steps is None else case.steps.traces
    if finding is not None and not finding.is_refusal:
        on = machine() if finding.where == MACHINE_CODE else None
        program, traces, finding = smallest(program, traces, finding, on)
    show_program(program, console)
    for stage, trace in traces.items():
        if trace:
            plain(console, f"# {stage} stage\n{trace_to_python(trace)}")
    if finding is None:
        return plain(console, "nothing is wrong")
    plain(console, f"# after {finding.where}:\n{finding.made}\n{finding.where}: {finding.what}")
    again = " ".join(f"--{name} {value}" for name, value in how.items())
    return plain(console, f"repeat: nox -s fuzz -- --lowered 1 {again} --only {number}")


def smallest(
    program: Lowered, traces: Traces, finding: Finding, on: Machine | None
) -> tuple[Lowered, Traces, Finding]:
    """The fewest steps and the smallest program that are wrong after the same pass, and what is."""

    def wrong(candidate: Lowered, steps: Traces) -> Finding | None:
        schedule = replayed(steps) if any(steps.values()) else None
        try:
            found = judged(candidate, machine=on, schedule=schedule)
        except Undecided:
            return None
        is_same = found is not None and not found.is_refusal and found.where == finding.where
        return found if is_same else None

    if wrong(program, traces) is None:
        return program, traces, finding
    traces = shortest(traces, lambda steps: wrong(program, steps) is not None)
    smaller = shrunk(
        program, lambda candidate: wrong(candidate, traces) is not None, most=MOST_SHRUNK
    )
    return smaller, traces, wrong(smaller, traces) or finding
