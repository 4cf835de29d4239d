"""Whole tiles of features: when they have a nest of their own."""

from __future__ import annotations

import pytest
from rule_programs import CSR, PRODUCT, module_of

from gossamer_machine import Machine
from gossamer_schedule.rules.decisions.scalable_vectors.whole_tiles import whole_tiles_verdict
from gossamer_schedule.rules.default_schedule import schedule_report
from gossamer_schedule.rules.patterns.row_reduction import row_reduction

SCALABLE = Machine(min_vector_bits=128, is_scalable=True, fixed_vscale=None)


def verdict(**sizes):
    pattern = row_reduction(module_of(CSR + PRODUCT, **sizes))
    assert pattern is not None
    return whole_tiles_verdict(pattern, SCALABLE)


@pytest.mark.parametrize(
    ("sizes", "pays", "reason"),
    [
        ({}, False, "unknown"),
        ({"f": 31}, False, "31 features do not fill 8 vectors"),
        ({"f": 32}, True, "32 features fill tiles of 8 vectors"),
        ({"f": 33}, True, "those left over"),
    ],
)
def test_features_that_fill_a_tile_have_a_nest_of_their_own(sizes, pays, reason):
    whole_tiles = verdict(**sizes)
    assert whole_tiles.is_profitable == pays
    assert reason in whole_tiles.why


@pytest.mark.parametrize(("features", "parts"), [(128, 1), (20, 0)])
def test_the_schedule_has_a_part_for_whole_tiles(features, parts):
    report = schedule_report(module_of(CSR + PRODUCT, f=features), SCALABLE)
    ops = [step.op for step in report.schedule.loop]
    assert ops.count("loop_partition") == parts
    assert (
        "features in whole tiles, and those left over" in {each.what for each in report.decisions}
    ) == bool(parts)
