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
from tests.fuzzing.commands.processes import MAX_FAILURES, Failure, Tally, Task
from tests.fuzzing.findings.reports import plain, show_program, write
from tests.fuzzing.findings.shrinking import shrunk
from tests.fuzzing.loop_nests.chains import draw_chain
from tests.fuzzing.loop_nests.nests import draw_nest
from tests.fuzzing.lowered.features import NATIVELY, REQUIRED, features
from tests.fuzzing.lowered.judging import MACHINE_CODE, Finding, finding_of
from tests.fuzzing.lowered.native_process import NativeProcess
from tests.fuzzing.lowered.programs.draw_lowered import draw_lowered
from tests.fuzzing.lowered.programs.lowered_program import Lowered
from tests.fuzzing.lowered.step_drawing import Steps, replayed
from tests.fuzzing.oracle.coordinate_tables import Undecided
from tests.fuzzing.schedules.argument_generators import GENERATORS
from tests.fuzzing.schedules.sequences import Traces, shortest

FULL_RUN_PROGRAMS = 20_000
"""The number of programs for which `REQUIRED` gives the counts of features."""
MANY_NATIVE, ENOUGH_ACCEPTED = 2_000, 20
"""The number of programs for `NATIVELY`, and how often each primitive must be accepted in as many scheduled
programs."""
OF_COORDINATES = frozenset({"sparse_reorder", "sparse_fuse", "sparse_unfuse", "sparse_compute_at"})
"""Primitives that no program of the later stages accepts."""
MAX_SHRUNK = 1500
SCHEDULED = ("position", "loop", "loop")
"""The stages of programs that are scheduled."""
FITTED = 0.1
"""The share of programs for primitives that few other programs accept."""
FITTING = {
    "rolling_buffer": 60,
    "fuse_reduction_epilogue": 60,
    "decompose_padding": 30,
    "reverse_compute_inline": 30,
}
"""The weights of these primitives in such programs."""
IN_BLOCKS = 0.7
"""The share of scheduled programs that consist mostly of blocks."""


@dataclass
class Programs(Tally):
    """The results of a batch: the features of the programs that were not scheduled, and of those that ran as
    machine code; the numbers of programs without an oracle and of scheduled programs; and how often each
    primitive was tried and accepted."""

    met: Counter[str] = field(default_factory=Counter)
    met_natively: Counter[str] = field(default_factory=Counter)
    native_unscheduled: int = 0
    unevaluated: int = 0
    scheduled: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)


@cache
def native_process() -> NativeProcess:
    """The process that runs machine code for this one."""
    return NativeProcess()


@dataclass(frozen=True)
class Case:
    """A program, whether it runs as machine code, and its schedule."""

    program: Lowered
    is_native: bool
    steps: Steps | None

    def finding(self) -> Finding | None:
        """Check the program; draws the steps of the schedule as well."""
        on = native_process() if self.is_native else None
        return finding_of(self.program, process=on, schedule=self.steps)


def drawn(number: int, *, seed: str, native: float, scheduled: float) -> Case:
    """The program of a number."""
    rng = Random(f"{seed}/lowered/{number}")
    is_native, is_scheduled = rng.random() < native, rng.random() < scheduled
    if not is_scheduled:
        return Case(draw_lowered(rng), is_native, None)
    if rng.random() < FITTED:
        return Case(_fitted(rng), is_native, Steps(rng, weights=FITTING))
    program = draw_lowered(rng, rng.choice(SCHEDULED), has_blocks=rng.random() < IN_BLOCKS)
    return Case(program, is_native, Steps(rng))


def _fitted(rng: Random) -> Lowered:
    """A program for primitives that few others fit: a chain of two blocks, or a copy with padding in a
    nest."""
    while True:
        nest = rng.choice((draw_chain, draw_nest))(rng)
        program = Lowered(nest.module, nest.arrays, nest.sizes)
        if program.has_meaning:
            return program


def judge(number: int, tally: Programs, **how: Any) -> None:
    """Adds the results of a program."""
    case = drawn(number, **how)
    program, finding = case.program, case.finding()
    tally.judged += 1
    tally.native += case.is_native
    if case.steps is None:
        met = features(program)
        tally.met.update(met)
        tally.native_unscheduled += case.is_native
        tally.met_natively.update(met if case.is_native else ())
    else:
        tally.scheduled += 1
        tally.tried.update(case.steps.tried)
        tally.accepted.update(step.op for step in case.steps.steps)
    tally.unevaluated += not program.is_evaluated
    if finding is not None and finding.is_refusal:
        tally.refused[finding.what] += 1
    elif finding is not None:
        tally.failures.append(Failure(number, f"{finding.where}: {finding.what}"))


def main(options: Namespace, console: Console) -> int:
    """Runs the session; returns 1 if it found a failure."""
    how = {"seed": options.seed, "native": options.native, "scheduled": options.scheduled}
    if options.only is not None:
        report(options.only, how, console)
        return 0
    start = time.monotonic()
    total = Task("programs", partial(judge, **how), Programs).run(
        range(options.lowered), processes=options.processes, seconds=60 * options.minutes
    )
    seconds = time.monotonic() - start
    for failure in total.failures[:MAX_FAILURES]:
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
    """The features that occurred, and the primitives that were accepted, less often than the number of
    programs demands."""
    accepted = dict.fromkeys(sorted(GENERATORS.keys() - OF_COORDINATES), ENOUGH_ACCEPTED)
    natively = _fewer(total.met_natively, NATIVELY, total.native_unscheduled / MANY_NATIVE)
    return [
        *_fewer(total.met, REQUIRED, (total.judged - total.scheduled) / FULL_RUN_PROGRAMS),
        *[f"{name} as machine code" for name in natively],
        *_fewer(total.accepted, accepted, total.scheduled / FULL_RUN_PROGRAMS),
    ]


def _fewer(counts: Counter[str], wanted: Mapping[str, int], share: float) -> list[str]:
    return [name for name, count in wanted.items() if counts[name] < int(count * min(share, 1))]


def table(total: Programs) -> Table:
    table = Table("met", "programs", "met", "programs", "met", "programs", title="What was met")
    cells = [text for name in sorted(total.met) for text in (name, str(total.met[name]))]
    for at in range(0, len(cells), 6):
        table.add_row(*cells[at : at + 6])
    return table


def report(number: int, how: Mapping[str, Any], console: Console) -> None:
    """Prints a program; a failing one is shrunk first."""
    case = drawn(number, **how)
    console.rule(f"program {number} of seed {how['seed']}")
    finding, program = case.finding(), case.program
    traces = {} if case.steps is None else case.steps.traces
    if finding is not None and not finding.is_refusal:
        on = native_process() if finding.where == MACHINE_CODE else None
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
    program: Lowered, traces: Traces, finding: Finding, on: NativeProcess | None
) -> tuple[Lowered, Traces, Finding]:
    """The fewest steps and the smallest program that fail after the same pass, with the failure."""

    def wrong(candidate: Lowered, steps: Traces) -> Finding | None:
        schedule = replayed(steps) if any(steps.values()) else None
        try:
            reason = finding_of(candidate, process=on, schedule=schedule)
        except Undecided:
            return None
        is_same = reason is not None and not reason.is_refusal and reason.where == finding.where
        return reason if is_same else None

    if wrong(program, traces) is None:
        return program, traces, finding
    traces = shortest(traces, lambda steps: wrong(program, steps) is not None)
    smaller = shrunk(
        program, lambda candidate: wrong(candidate, traces) is not None, most=MAX_SHRUNK
    )
    return smaller, traces, wrong(smaller, traces) or finding
