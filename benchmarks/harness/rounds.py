"""Interleaved rounds: every contender is timed once per round, under the same conditions.

A round in which other processes used the processors is discarded and repeated. If the machine does not
become quiet within the time limits, disturbed rounds are used and the cell is marked as disturbed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.harness.meter import Clock, is_disturbed, read_meter, wait_for_quiet

WARM_SHARE = 3
"""Before a sample, a third as many calls run untimed, because caches and branch predictors hold the
state of the previous contender."""


@dataclass(frozen=True)
class Timed:
    """A contender. `seconds` makes that many calls in a row and returns the seconds per call;
    `activate` prepares it before each sample (its number of threads). A contender in a process of
    its own has the `clock` of that process, whose work then does not count as foreign."""

    seconds: Callable[[int], float]
    activate: Callable[[], object] = lambda: None
    clock: Clock | None = None


def timed_call(call: Callable[[], object], activate: Callable[[], object] = lambda: None) -> Timed:
    """Returns a contender that makes calls in this process."""
    return Timed(lambda calls: seconds_of(call, calls), activate)


def seconds_of(call: Callable[[], object], calls: int) -> float:
    """Returns seconds per call over `calls` calls in a row; 0 for none."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / max(calls, 1)


@dataclass(frozen=True)
class Plan:
    """Durations and numbers of measurements."""

    rounds: int = 9
    sample_seconds: float = 0.02
    settle_seconds: float = 0.005
    budget_seconds: float = 30.0
    quiet_seconds: float = 20.0
    most_calls: int = 5000


@dataclass
class Samples:
    """Seconds per call of each contender in each round, the number of discarded rounds, and
    whether disturbed rounds had to be used."""

    seconds: dict[str, list[float]]
    thrown_away: int = 0
    is_disturbed: bool = False
    disturbed: list[dict[str, float]] = field(default_factory=list)


def calls_per_sample(seconds_per_call: float, plan: Plan) -> int:
    """Returns the number of calls that fill a sample.

    >>> calls_per_sample(0.004, Plan(sample_seconds=0.02))
    5
    >>> calls_per_sample(3.0, Plan(sample_seconds=0.02))
    1
    """
    wanted = round(plan.sample_seconds / max(seconds_per_call, 1e-9))
    return max(1, min(plan.most_calls, wanted))


def rotated(names: Sequence[str], by: int) -> list[str]:
    """Rotates the names, so that a contender does not always follow the same neighbour.

    >>> rotated(["a", "b", "c"], 1)
    ['b', 'c', 'a']
    """
    start = by % len(names)
    return [*names[start:], *names[:start]]


def warm_up(timed: Timed, plan: Plan) -> int:
    """Warms up code, threads and caches. Returns the calls per sample."""
    timed.activate()
    timed.seconds(1)
    first = timed.seconds(1)
    return calls_per_sample(timed.seconds(min(5, calls_per_sample(first, plan))), plan)


def run_round(
    contenders: Mapping[str, Timed], calls: Mapping[str, int], order: Sequence[str], plan: Plan
) -> dict[str, float]:
    """Takes one sample of each. Before each sample, threads of the previous contender get time to sleep."""
    sample = {}
    for name in order:
        timed = contenders[name]
        timed.activate()
        time.sleep(plan.settle_seconds)
        timed.seconds(calls[name] // WARM_SHARE)
        sample[name] = timed.seconds(calls[name])
    return sample


def our_clocks(contenders: Mapping[str, Timed]) -> tuple[Clock, ...]:
    """Returns the clocks of this process and of the processes of contenders, each once."""
    others = [timed.clock for timed in contenders.values() if timed.clock is not None]
    return (time.process_time, *dict.fromkeys(others))


def measure(contenders: Mapping[str, Timed], plan: Plan) -> Samples:
    """Samples every contender in `plan.rounds` undisturbed rounds."""
    samples = Samples({name: [] for name in contenders})
    if not contenders:
        return samples
    calls = {name: warm_up(timed, plan) for name, timed in contenders.items()}
    end = time.perf_counter() + plan.budget_seconds
    names, done, clocks = list(contenders), 0, our_clocks(contenders)
    while done < plan.rounds and (done < 3 or time.perf_counter() < end):
        before = read_meter(clocks)
        sample = run_round(contenders, calls, rotated(names, done), plan)
        if is_disturbed(before, read_meter(clocks)):
            samples.thrown_away += 1
            samples.disturbed.append(sample)
            if len(samples.disturbed) >= 2 * plan.rounds or time.perf_counter() > end:
                break
            wait_for_quiet(min(plan.quiet_seconds, end - time.perf_counter()))
            continue
        keep(samples, sample)
        done += 1
    fall_back(samples, at_least=min(3, plan.rounds))
    return samples


def keep(samples: Samples, sample: Mapping[str, float]) -> None:
    """Adds a round's sample."""
    for name, seconds in sample.items():
        samples.seconds[name].append(seconds)


def fall_back(samples: Samples, at_least: int) -> None:
    """Uses disturbed rounds, and marks the samples, if there are too few quiet rounds."""
    have = min(len(seconds) for seconds in samples.seconds.values())
    if have < at_least:
        samples.is_disturbed = True
        for sample in samples.disturbed:
            keep(samples, sample)
