"""Runs many random sequences of primitives, each interpreted at every stage, some of them as machine code.

A sequence and its program depend only on the seed and its number. If the results disagree, the shortest
failing sequence is printed, with the shrunk program and its arrays. The run fails if results disagree, if a
scheduled program cannot be lowered for a reason that is not listed, or if a primitive was accepted too
seldom, or on too few programs.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import median

from rich.console import Console
from rich.table import Table

from gossamer_ir.interchange.records import Step
from gossamer_schedule.primitives.loops.vectorize import NATIVE_LANES
from gossamer_schedule.trace.codec import trace_to_python
from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.checks.ways import VSCALES
from tests.fuzzing.commands.processes import MAX_FAILURES, Failure, Tally, Task
from tests.fuzzing.execution.compilers import COMPILER, COMPILERS, Scheduler
from tests.fuzzing.findings.reports import plain, show_program, write
from tests.fuzzing.findings.shrinking import shrunk
from tests.fuzzing.loop_nests.chains import draw_chain
from tests.fuzzing.loop_nests.nests import draw_nest
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.programs.handwritten import Written, draw_written
from tests.fuzzing.programs.program import Program
from tests.fuzzing.schedules.argument_generators import GENERATORS
from tests.fuzzing.schedules.draw_schedule import REFUSED_SCHEDULES
from tests.fuzzing.schedules.sequences import SCALABLE_WEIGHTS, Sequence, Traces, kept, shortest

FULL_RUN_SEQUENCES, ENOUGH, ENOUGH_PROGRAMS, ENOUGH_STEPS = 20_000, 200, 3, 5
"""For so many sequences: how often each primitive must be accepted, on how many programs, and the minimum
median of accepted steps."""
FOR_THREADS = 0.06
"""The share of sequences that bind loops to threads, which no CPU runs."""
WRITTEN = 0.2
"""The share of sequences on scripts of the testkit."""
NESTS = 0.1
"""The share of sequences on loops around reductions with conditions between them."""
CHAINS = 0.15
"""The share of sequences on reductions with epilogues and on sliding windows."""
SCALABLE = 0.3
"""The minimum share of sequences with scalable vectors, if these are drawn."""
MAX_SHRUNK = 200


@dataclass(frozen=True)
class Drawn:
    """A program with a sequence of steps for it; `name` is that of the program. With a `vscale`, steps make
    scalable vectors: that many units are interpreted, and machine code of the backend `scalable` is emulated
    at every length."""

    name: str
    program: Program
    sequence: Sequence
    native: bool
    vscale: int | None = None
    scalable: str | None = None

    def verdict(self) -> Verdict:
        return self.verdict_for(self.program, self.sequence)

    def verdict_for(self, program: Program, schedule: Scheduler) -> Verdict:
        """The verdict on another program or another schedule."""
        compiler = COMPILER if self.scalable is None else COMPILERS[self.scalable]
        vscale = self.vscale or 1
        return verdict_of(program, compiler, native=self.native, schedule=schedule, vscale=vscale)


def drawn(number: int, *, seed: str, native: float, scalable: str | None = None) -> Drawn:
    """The sequence of a number; `scalable` is a backend for scalable vectors."""
    rng = Random(f"{seed}/schedules/{number}")
    name, program = f"{number}", draw_program(rng)
    kind = rng.random()
    if kind < WRITTEN:
        name, program = draw_written(rng)
    elif kind < WRITTEN + NESTS:
        program = draw_nest(rng)
    elif kind < WRITTEN + NESTS + CHAINS:
        program = draw_chain(rng)
    for_threads, is_native = rng.random() < FOR_THREADS, rng.random() < native
    if scalable:
        vscale = rng.choice(VSCALES)
        sequence = Sequence(rng, weights=SCALABLE_WEIGHTS, is_scalable=True)
        return Drawn(name, program, sequence, is_native, vscale, scalable)
    return Drawn(name, program, Sequence(rng, for_threads=for_threads), is_native)


@dataclass
class Sequences(Tally):
    """The results of a batch: the number of sequences for each number of accepted steps; how often each
    primitive was tried and accepted; on which programs; how many sequences made scalable vectors; and how
    often vscale was an argument."""

    lengths: Counter[int] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    programs: set[tuple[str, str]] = field(default_factory=set)
    scalable: int = 0
    forms: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> Counter[str]:
        """The number of programs on which each primitive was accepted."""
        return Counter(op for op, _ in self.programs)

    @property
    def steps(self) -> float:
        """The median number of accepted steps."""
        return median(self.lengths.elements()) if self.lengths else 0


def judge(
    number: int, tally: Sequences, *, seed: str, native: float, scalable: str | None = None
) -> None:
    """Adds the results of a sequence."""
    case = drawn(number, seed=seed, native=native, scalable=scalable)
    verdict = case.verdict()
    steps = case.sequence.steps
    tally.judged += 1
    tally.native += case.native and verdict == Verdict()
    tally.lengths[len(steps)] += 1
    tally.tried.update(case.sequence.tried)
    tally.accepted.update(step.op for step in steps)
    tally.programs |= {(step.op, case.name) for step in steps}
    tally.scalable += verdict.is_scalable
    tally.forms.update(form for step in steps for form in scalable_forms(step))
    if verdict.refusal:
        tally.refused[verdict.refusal] += 1
    if verdict.disagreement or verdict.refusal not in (None, *REFUSED_SCHEDULES):
        tally.failures.append(Failure(number, str(verdict.disagreement or verdict.refusal)))


def main(options: Namespace, console: Console) -> int:
    """Runs the session; returns 1 if it found a failure."""
    how = {"seed": options.seed, "native": options.native, "scalable": options.scalable}
    if options.only is not None:
        verdict = drawn(options.only, **how).verdict()
        report(Failure(options.only, str(verdict)), how, console)
        return int(verdict.disagreement is not None)
    start = time.monotonic()
    total = Task("sequences", partial(judge, **how), Sequences).run(
        range(options.schedules), processes=options.processes, seconds=60 * options.minutes
    )
    seconds = time.monotonic() - start
    for failure in total.failures[:MAX_FAILURES]:
        report(failure, how, console)
    console.print(table(total))
    lacks = scalable_shortcomings if options.scalable else shortcomings
    wrong = [*lacks(total), *(["too few sequences"] * (total.judged < options.schedules))]
    plain(
        console,
        f"{total.judged} sequences in {seconds:.0f} s, {total.native} of them as machine code, "
        f"{total.scalable} in scalable vectors {dict(total.forms)}, half of them with at least "
        f"{total.steps:.0f} steps; not lowered: {total.refused.total()} {dict(total.refused)}; "
        f"{len(total.failures)} wrong; {'; '.join(wrong) or 'all is enough'}; "
        f"data in {options.out}",
    )
    write(
        options.out,
        vars(total)
        | {"programs": total.counts}
        | how
        | {"seconds": round(seconds, 1), "wrong": wrong},
    )
    return int(bool(total.failures or wrong))


def shortcomings(total: Sequences) -> list[str]:
    """The requirements that the run does not meet, given its number of sequences."""
    share = min(total.judged / FULL_RUN_SEQUENCES, 1)
    lacks = [] if total.steps >= ENOUGH_STEPS else ["too short sequences"]
    for op in GENERATORS:
        times, programs = total.accepted[op], total.counts[op]
        if times < ENOUGH * share or programs < min(ENOUGH_PROGRAMS, total.judged):
            lacks.append(f"{op} accepted {times} times on {programs} programs")
    return lacks


def scalable_forms(step: Step) -> Iterator[str]:
    """The forms in which a step makes lanes scalable, or fixed again."""
    lanes = step.args.get("lanes")
    if step.op == "split" and any("vscale" in str(factor) for factor in step.args["factors"]):
        yield "split by vscale"
    if step.op == "vectorize" and lanes == NATIVE_LANES:
        yield "native lanes"
    if step.op == "vectorize" and isinstance(lanes, str):
        yield f"remainder {step.args.get('remainder', 'scalar')}"
    if step.op == "convert_lanes":
        yield "to scalable lanes" if isinstance(lanes, str) else "to fixed lanes"


SCALABLE_FORMS = (
    "split by vscale", "native lanes", "remainder masked", "remainder scalar", "to scalable lanes",
    "to fixed lanes",
)  # fmt: skip


def scalable_shortcomings(total: Sequences) -> list[str]:
    """The requirements on scalable vectors that the run does not meet, given its number of sequences."""
    share = min(total.judged / FULL_RUN_SEQUENCES, 1)
    lacks = [] if total.scalable >= SCALABLE * total.judged else ["too few scalable vectors"]
    return lacks + [
        f"{form} {total.forms[form]} times"
        for form in SCALABLE_FORMS
        if total.forms[form] < ENOUGH * share
    ]


def table(total: Sequences) -> Table:
    table = Table("primitive", "tried", "accepted", "programs", title="What was applied")
    for op in sorted(GENERATORS):
        counts = total.tried[op], total.accepted[op], total.counts[op]
        table.add_row(op, *map(str, counts))
    return table


def report(failure: Failure, how: Mapping[str, object], console: Console) -> None:
    """Prints a sequence; a failing one is shortened, and its program is shrunk."""
    case = drawn(failure.number, **how)
    console.rule(f"sequence {failure.number} of seed {how['seed']}")
    plain(console, failure.what)
    if failure.is_verdict:
        case.verdict()
        program, traces = smallest(case)
        show_program(program, console)
        for stage, trace in traces.items():
            if trace:
                plain(console, f"# {stage} stage\n{trace_to_python(trace)}")
    again = f"--schedules 1 --seed {how['seed']} --native {how['native']} --only {failure.number}"
    if how["scalable"]:
        again += f" --scalable {how['scalable']}"
    plain(console, f"repeat: nox -s fuzz -- {again}")


def smallest(case: Drawn) -> tuple[Program, Traces]:
    """The fewest steps that fail, then the smallest program for them."""
    program, traces = case.program, case.sequence.traces

    def is_wrong(program: Program, traces: Traces) -> bool:
        verdict = case.verdict_for(program, partial(kept, traces))
        return verdict.disagreement is not None

    if not is_wrong(program, traces):
        return program, traces
    traces = shortest(traces, lambda candidate: is_wrong(program, candidate))
    if isinstance(program, Written):
        return program, traces
    smaller = shrunk(program, lambda candidate: is_wrong(candidate, traces), most=MAX_SHRUNK)
    return smaller, traces
