"""Elements of later rows are prefetched if they exceed the caches, at both sides of the limit."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gossamer_ir.interchange.records import Stats
from gossamer_machine import Machine
from gossamer_schedule.rules.analysis.fiber_elements import FiberElements
from gossamer_schedule.rules.decisions.prefetching.element_prefetching import (
    element_prefetching_verdict,
)

MACHINE = Machine(private_cache=1 << 20, gathers="fast")


def matrix(count):
    return Stats(rows=count, columns=10, nnz=count, longest_row=1, empty_rows=0)


ELEMENTS = FiberElements(("A_data", "J_indices"), 8)
"""With 8 bytes for each element, 3 MiB are 393,216 elements."""


@pytest.mark.parametrize(
    ("stored", "machine", "stats", "pays", "reason"),
    [
        (ELEMENTS, MACHINE, matrix(393_216), True, "3 MiB (prefetching pays"),
        (ELEMENTS, MACHINE, matrix(393_215), False, "pays from 3 MiB"),
        (ELEMENTS, replace(MACHINE, gathers="moderate"), matrix(10**6), False, "fast"),
        (FiberElements((), 0), MACHINE, matrix(10**6), False, "unknown"),
        (ELEMENTS, MACHINE, None, False, "unknown"),
    ],
)
def test_elements_are_prefetched_from_three_private_caches(stored, machine, stats, pays, reason):
    verdict = element_prefetching_verdict(stored, machine, stats=stats)
    assert verdict.is_profitable == pays
    assert reason in verdict.why
