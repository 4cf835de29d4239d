"""Interleaved rounds: in each round, every contender has a turn, in which it takes a sample of each case.

Before a turn there is a pause, in which the threads of the previous contender go to sleep: those of Intel's
OpenMP spin for 200 ms after a call. One turn therefore has samples of several cases. Samples are marked if
other processes used the processors during the turn; nothing waits for a quiet machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeAlias

import msgspec

from benchmarks.contenders.contender import UnavailableError
from benchmarks.machine.meter import FOREIGN_LIMIT, foreign_share, read_meter

CaseAndThreads: TypeAlias = tuple[str, int]
"""A case and a number of threads."""

WARM_SHARE = 3
"""Before a sample, a third as many calls run untimed, because caches and branch predictors hold the
state of the previous case."""

MIN_QUIET_SAMPLES = 3
"""Samples of undisturbed turns that suffice; with fewer, all samples count."""

FURTHER = 2
"""Rounds that replace disturbed ones: a run has to end also beside a busy process."""

AGAIN = 2
"""Rounds of entries that are measured again, in proportion to those before. The clock of a shared machine may
change by half between turns, which the median of a few rounds does not even out."""

CALIBRATION_CALLS = 5


class Contestant(Protocol):
    """Interface of a contender for rounds; `Remote` is one."""

    def time(self, samples: Sequence[tuple[str, int, int, int]]) -> list[float]:
        """Return the seconds per call of samples: case, threads, untimed and timed calls."""

    def cpu_seconds(self) -> float:
        """Return the CPU time that it has used."""


class SamplingPlan(msgspec.Struct, frozen=True):
    """Durations and numbers of measurements. While samples were disturbed, a batch of cases has further
    rounds, at most `FURTHER`; after `budget_seconds` it has no more than `MIN_QUIET_SAMPLES`."""

    rounds: int = 5
    sample_seconds: float = 0.02
    pause_seconds: float = 0.25
    budget_seconds: float = 120.0
    max_calls: int = 5000


class Sample(msgspec.Struct, frozen=True):
    """Seconds per call, and the processors that others used during the turn."""

    seconds: float
    foreign: float = 0.0

    @property
    def is_disturbed(self) -> bool:
        return self.foreign > FOREIGN_LIMIT


class Samples(msgspec.Struct):
    """The samples of each contender and entry, in the order of rounds, the calls of a sample, and why
    contenders were given up."""

    by_name: dict[str, dict[CaseAndThreads, list[Sample]]]
    calls: dict[str, dict[CaseAndThreads, int]] = msgspec.field(default_factory=dict)
    ended: dict[str, str] = msgspec.field(default_factory=dict)

    def choose_samples(self, name: str, entry: CaseAndThreads) -> tuple[list[float], bool]:
        """Return the seconds of samples that count, and whether disturbed ones had to be used."""
        samples = self.by_name[name][entry]
        quiet = [sample.seconds for sample in samples if not sample.is_disturbed]
        if len(quiet) >= min(MIN_QUIET_SAMPLES, len(samples)):
            return quiet, False
        return [sample.seconds for sample in samples], True

    def needs_more_rounds(self) -> bool:
        """Return whether further rounds would help."""
        return any(
            self.choose_samples(name, entry)[1]
            for name in self.by_name
            for entry in self.by_name[name]
        )


def calls_per_sample(seconds_per_call: float, plan: SamplingPlan) -> int:
    """Return the number of calls that fill a sample.

    >>> calls_per_sample(0.004, SamplingPlan(sample_seconds=0.02))
    5
    >>> calls_per_sample(3.0, SamplingPlan(sample_seconds=0.02))
    1
    """
    wanted = round(plan.sample_seconds / max(seconds_per_call, 1e-9))
    return max(1, min(plan.max_calls, wanted))


def rotate_names(names: Sequence[str], by: int) -> list[str]:
    """Rotate the names, so that a contender does not always follow the same neighbor.

    >>> rotate_names(["a", "b", "c"], 1)
    ['b', 'c', 'a']
    """
    start = by % max(len(names), 1)
    return [*names[start:], *names[:start]]


def calibrate(
    contestant: Contestant, entries: Sequence[CaseAndThreads], plan: SamplingPlan
) -> dict[CaseAndThreads, int]:
    """Warm up code, threads and caches. Returns the calls per sample of each entry."""
    # One call may compile or start threads, so that its time says little about those that follow.
    first = contestant.time([(*entry, 1, 1) for entry in entries])
    few = [min(CALIBRATION_CALLS, calls_per_sample(seconds, plan)) for seconds in first]
    again = [(*entry, 0, calls) for entry, calls in zip(entries, few, strict=True)]
    seconds = contestant.time(again)
    return {entry: calls_per_sample(one, plan) for entry, one in zip(entries, seconds, strict=True)}


def measure_rounds(
    contestants: Mapping[str, Contestant],
    entries: Mapping[str, Sequence[CaseAndThreads]],
    plan: SamplingPlan,
    says: Callable[[str], None] = lambda text: None,
) -> Samples:
    """Take samples of the entries of every contender; a contender whose process ends is given up."""
    samples = Samples({name: {entry: [] for entry in entries[name]} for name in contestants})
    for name, contestant in contestants.items():
        says(f"{name} warms up")
        try:
            samples.calls[name] = calibrate(contestant, entries[name], plan)
        except UnavailableError as error:
            give_up(samples, name, error)
    end, number = time.perf_counter() + plan.budget_seconds, 0
    while samples.by_name and is_wanted(samples, number, end, plan):
        take_turns(contestants, samples, samples.calls, number, plan=plan, says=says)
        number += 1
    return samples


def measure_again(
    contestants: Mapping[str, Contestant],
    samples: Samples,
    entries: Collection[CaseAndThreads],
    plan: SamplingPlan,
    says: Callable[[str], None] = lambda text: None,
) -> None:
    """Add samples of some entries, of all contenders that have them, to those that were taken before."""
    chosen = {
        name: {entry: count for entry, count in calls.items() if entry in entries}
        for name, calls in samples.calls.items()
    }
    end = time.perf_counter() + plan.budget_seconds
    for number in range(AGAIN * plan.rounds):
        if time.perf_counter() > end:
            return
        take_turns(contestants, samples, chosen, number, plan=plan, says=says)


def take_turns(
    contestants: Mapping[str, Contestant],
    samples: Samples,
    calls: Mapping[str, Mapping[CaseAndThreads, int]],
    number: int,
    *,
    plan: SamplingPlan,
    says: Callable[[str], None],
) -> None:
    """Take the turns of a round, one of each contender that has calls."""
    # A list of the names, since a contender may be given up in the round.
    for name in rotate_names([name for name in samples.by_name if calls[name]], number):
        says(f"round {number + 1}, {name}")
        time.sleep(plan.pause_seconds)
        try:
            foreign = take_turn(contestants, name, calls[name], samples)
        except UnavailableError as error:
            give_up(samples, name, error)
            continue
        if foreign > FOREIGN_LIMIT:
            says(f"round {number + 1}; other processes use {foreign:.1f} processors")


def is_wanted(samples: Samples, done: int, end: float, plan: SamplingPlan) -> bool:
    """Return whether there should be a further round."""
    # Beyond its budget a batch keeps the rounds that a median needs.
    if done >= min(MIN_QUIET_SAMPLES, plan.rounds) and time.perf_counter() > end:
        return False
    return done < plan.rounds or (done < plan.rounds + FURTHER and samples.needs_more_rounds())


def give_up(samples: Samples, name: str, error: UnavailableError) -> None:
    """Drop a contender."""
    samples.ended[name] = str(error)
    del samples.by_name[name]


def take_turn(
    contestants: Mapping[str, Contestant],
    name: str,
    calls: Mapping[CaseAndThreads, int],
    samples: Samples,
) -> float:
    """Take one sample of each entry; returns the processors that others used meanwhile."""
    # The clocks of all contenders: threads of one that waits may still spin, and do not count as others.
    clocks = (time.process_time, *(one.cpu_seconds for one in contestants.values()))
    turn = [(*entry, count // WARM_SHARE, count) for entry, count in calls.items()]
    before = read_meter(clocks)
    seconds = contestants[name].time(turn)
    foreign = foreign_share(before, read_meter(clocks))
    for entry, one in zip(calls, seconds, strict=True):
        samples.by_name[name][entry].append(Sample(one, foreign))
    return foreign
