"""The rounds of a benchmark: turns, disturbed samples, and when to stop."""

from __future__ import annotations

import io
import os

import pytest
from rich.console import Console

from benchmarks.contenders.contender import UnavailableError
from benchmarks.harness import rounds
from benchmarks.harness.progress import progress_bar
from benchmarks.harness.rounds import Sample, Samples
from benchmarks.machine import meter
from benchmarks.machine.meter import Reading
from tests.benchmarks.benchmark_cases import QUICK

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]


@pytest.mark.parametrize(
    ("busy", "stolen", "used", "disturbed"),
    [
        (1.0, 0.0, 1.0, False),  # all ours
        (1.5, 0.0, 1.0, True),  # another process used half a processor
        (1.0, 0.5, 1.0, True),  # the host took half a processor
        (1.05, 0.0, 1.0, False),  # five percent are tolerated
        (0.9, 0.0, 1.0, False),  # ticks are coarse: never negative
    ],
)
def test_foreign_work_disturbs(busy, stolen, used, disturbed):
    after = Reading(wall=1.0, busy=busy, stolen=stolen, own=used)
    assert meter.is_disturbed(Reading(0.0, 0.0, 0.0, 0.0), after) == disturbed


def test_the_work_of_our_other_processes_is_not_foreign():
    assert meter.read_meter([lambda: 1.0, lambda: 2.5]).own == 3.5
    assert 0 < meter.cpu_seconds_of(os.getpid()) < 10_000
    assert meter.cpu_seconds_of(2**30) == 0.0


class Contestant:
    """Answers with a constant, and notes what it is asked for."""

    def __init__(self, log, name, *, fails_after=99):
        self.log, self.name, self.fails_after = log, name, fails_after

    def time(self, samples):
        self.log.append((self.name, samples))
        if sum(name == self.name for name, _ in self.log) > self.fails_after:
            raise UnavailableError("it ended")
        return [1e-5 * threads for _, threads, _, _ in samples]

    def cpu_seconds(self):
        return 0.0


ENTRIES = [("0", 1), ("0", 2), ("1", 1)]


def test_each_contender_has_a_turn_with_all_cases_in_every_round():
    log = []
    contestants = {name: Contestant(log, name) for name in ("a", "b")}
    samples = rounds.measure_rounds(contestants, dict.fromkeys(contestants, ENTRIES), QUICK)
    turns = [name for name, _ in log]
    assert turns[:4] == ["a", "a", "b", "b"]  # they warm up
    assert turns[4:8] == ["a", "b", "b", "a"]  # the order rotates
    assert [(key, threads, warm, calls) for key, threads, warm, calls in log[4][1]] == [
        ("0", 1, 3, 10),
        ("0", 2, 1, 5),
        ("1", 1, 3, 10),
    ]
    for name in contestants:
        for entry in ENTRIES:
            seconds, _ = samples.choose_samples(name, entry)
            assert len(samples.by_name[name][entry]) >= QUICK.rounds
            assert set(seconds) == {1e-5 * entry[1]}


def test_a_contender_whose_process_ends_is_given_up_and_the_others_go_on():
    log = []
    contestants = {"a": Contestant(log, "a"), "b": Contestant(log, "b", fails_after=3)}
    samples = rounds.measure_rounds(contestants, dict.fromkeys(contestants, ENTRIES), QUICK)
    assert samples.ended == {"b": "it ended"}
    assert list(samples.by_name) == ["a"]
    assert len(samples.by_name["a"]["0", 1]) >= QUICK.rounds


def test_some_entries_are_measured_again_by_all_that_have_them():
    log = []
    contestants = {name: Contestant(log, name) for name in ("a", "b", "c")}
    entries = {"a": ENTRIES, "b": ENTRIES, "c": ENTRIES[:1]}
    samples = rounds.measure_rounds(contestants, entries, QUICK)
    before = {name: len(samples.by_name[name]["0", 2]) for name in ("a", "b")}
    log.clear()
    rounds.measure_again(contestants, samples, [("0", 2)], QUICK)
    assert log[:2] == [(name, [("0", 2, 1, 5)]) for name in ("a", "b")]
    assert len(log) == 2 * rounds.AGAIN * QUICK.rounds
    for name, count in before.items():
        assert len(samples.by_name[name]["0", 2]) == count + rounds.AGAIN * QUICK.rounds
    assert len(samples.by_name["c"]["0", 1]) == QUICK.rounds


def test_a_run_without_contenders_has_no_cells():
    assert rounds.measure_rounds({}, {}, QUICK).by_name == {}


def test_disturbed_samples_count_only_where_quiet_ones_are_missing():
    quiet, disturbed = Sample(1.0), Sample(5.0, foreign=0.5)
    entry = ("0", 1)
    few = Samples({"a": {entry: [quiet, disturbed, quiet, disturbed]}})
    assert few.choose_samples("a", entry) == ([1.0, 5.0, 1.0, 5.0], True)
    assert few.needs_more_rounds()
    enough = Samples({"a": {entry: [quiet, disturbed, quiet, quiet]}})
    assert enough.choose_samples("a", entry) == ([1.0, 1.0, 1.0], False)
    assert not enough.needs_more_rounds()


def test_rounds_go_on_beside_a_busy_process_but_not_for_ever():
    busy = Samples({"a": {("0", 1): [Sample(1.0, foreign=1.0)]}})
    quiet = Samples({"a": {("0", 1): [Sample(1.0)]}})
    later, passed = rounds.time.perf_counter() + 60, 0.0
    assert rounds.is_wanted(busy, 4, later, QUICK)
    assert not rounds.is_wanted(busy, 4 + rounds.FURTHER, later, QUICK)
    assert not rounds.is_wanted(quiet, 4, later, QUICK)
    assert not rounds.is_wanted(busy, 3, passed, QUICK)
    assert rounds.is_wanted(busy, 2, passed, QUICK)


def test_progress_is_printed_without_a_terminal():
    out = io.StringIO()
    with progress_bar(Console(file=out, width=80), 10.0) as bar:
        bar.advance(5.0)
        bar.describe("spmm cora")
        bar.details("round 1")
    assert "50 %: spmm cora" in out.getvalue()
