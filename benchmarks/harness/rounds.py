"""Interleaved rounds: every contender is timed once per round, so that all see the same machine.

A round in which other processes used the processors is thrown away and repeated. When quiet does
not come within the bounds, disturbed rounds are kept and counted as such.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.harness.meter import Clock, is_disturbed, read_meter, wait_for_quiet

WARM_SHARE = 3
"""One third of a sample's calls comes before it, unmeasured: caches and branch predictors hold what
the contender before has left in them."""


@dataclass(frozen=True)
class Timed:
    """What is timed. `seconds` makes so many calls in a row and tells the seconds per call;
    `activate` makes it ready (its number of threads) before each sample. What runs in a process of
    its own has a clock of its own, which its work is not foreign to."""

    seconds: Callable[[int], float]
    activate: Callable[[], object] = lambda: None
    clock: Clock | None = None


def timed_call(call: Callable[[], object], activate: Callable[[], object] = lambda: None) -> Timed:
    """A call in this process."""
    return Timed(lambda calls: seconds_of(call, calls), activate)


def seconds_of(call: Callable[[], object], calls: int) -> float:
    """Seconds per call over `calls` calls in a row; 0 for none."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / max(calls, 1)


@dataclass(frozen=True)
class Plan:
    """How long and how often to measure."""

    rounds: int = 9
    sample_seconds: float = 0.02
    settle_seconds: float = 0.005
    budget_seconds: float = 30.0
    quiet_seconds: float = 20.0
    most_calls: int = 5000


@dataclass
class Samples:
    """Seconds per call of each contender, round by round; how many rounds were thrown away, and
    whether the rest had to be taken from disturbed rounds."""

    seconds: dict[str, list[float]]
    thrown_away: int = 0
    is_disturbed: bool = False
    disturbed: list[dict[str, float]] = field(default_factory=list)


def calls_per_sample(seconds_per_call: float, plan: Plan) -> int:
    """How many calls fill a sample.

    >>> calls_per_sample(0.004, Plan(sample_seconds=0.02))
    5
    >>> calls_per_sample(3.0, Plan(sample_seconds=0.02))
    1
    """
    wanted = round(plan.sample_seconds / max(seconds_per_call, 1e-9))
    return max(1, min(plan.most_calls, wanted))


def rotated(names: Sequence[str], by: int) -> list[str]:
    """The names from another start, so that nobody always follows the same neighbour.

    >>> rotated(["a", "b", "c"], 1)
    ['b', 'c', 'a']
    """
    start = by % len(names)
    return [*names[start:], *names[:start]]


def warm_up(timed: Timed, plan: Plan) -> int:
    """Runs until code, threads and caches are warm; returns the calls per sample."""
    timed.activate()
    timed.seconds(1)
    first = timed.seconds(1)
    return calls_per_sample(timed.seconds(min(5, calls_per_sample(first, plan))), plan)


def run_round(
    contenders: Mapping[str, Timed], calls: Mapping[str, int], order: Sequence[str], plan: Plan
) -> dict[str, float]:
    """One sample of each; between two of them the other's threads get time to go to sleep."""
    sample = {}
    for name in order:
        timed = contenders[name]
        timed.activate()
        time.sleep(plan.settle_seconds)
        timed.seconds(calls[name] // WARM_SHARE)
        sample[name] = timed.seconds(calls[name])
    return sample


def our_clocks(contenders: Mapping[str, Timed]) -> tuple[Clock, ...]:
    """The clocks of this process and of those that contenders run in, each once."""
    others = [timed.clock for timed in contenders.values() if timed.clock is not None]
    return (time.process_time, *dict.fromkeys(others))


def measure(contenders: Mapping[str, Timed], plan: Plan) -> Samples:
    """Samples of every contender over `plan.rounds` undisturbed rounds."""
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
    """Too few quiet rounds: the disturbed ones are better than nothing, and marked."""
    have = min(len(seconds) for seconds in samples.seconds.values())
    if have < at_least:
        samples.is_disturbed = True
        for sample in samples.disturbed:
            keep(samples, sample)
