"""Which neighboring buckets one launch can compute, and the threads that features get."""

from __future__ import annotations

import pytest

from gossamer_ir.nodes import Function, Relation
from gossamer_machine import Grid
from gossamer_schedule.rules.decisions.grids.grid_buckets import joint_runs
from gossamer_schedule.rules.decisions.grids.grid_threads import feature_threads
from gossamer_schedule.rules.patterns.bucket_reduction import BucketReduction


def bucket(name, *, has_init=False, output="C_data"):
    return BucketReduction(
        block=name,
        row=f"i_{name}",
        row_axis=f"I_{name}",
        position=f"j_{name}",
        feature=None,
        features=None,
        width=2,
        output=output,
        has_init=has_init,
        has_distinct_rows=True,
    )


def runs(*buckets, disjoint=()):
    relations = tuple(Relation("disjoint", f"I_{a}", f"I_{b}") for a, b in disjoint)
    function = Function("f", (), (), relations=relations)
    return [[each.block for each in run] for run in joint_runs(function, buckets)]


P, Q = bucket("p"), bucket("q")
FIRST, SECOND = bucket("p", has_init=True), bucket("q", has_init=True)


@pytest.mark.parametrize(
    ("buckets", "disjoint", "expected"),
    [
        ((P, Q), (), [["p", "q"]]),
        ((FIRST, Q), (), [["p"], ["q"]]),
        ((FIRST, Q), ["pq"], [["p", "q"]]),
        ((FIRST, SECOND), ["qp"], [["p", "q"]]),
        ((P, None, Q), ["pq"], [["p"], ["q"]]),
        ((FIRST, bucket("q", output="D_data")), (), [["p", "q"]]),
        ((None,), (), []),
    ],
)
def test_buckets_that_initialize_rows_of_others_run_before_them(buckets, disjoint, expected):
    assert runs(*buckets, disjoint=disjoint) == expected


@pytest.mark.parametrize(("features", "threads"), [(None, 32), (1, 1), (5, 8), (16, 16), (100, 32)])
def test_few_features_have_few_threads(features, threads):
    grid = Grid(warp=32, block_threads=1024, shared_memory=49152, multiprocessors=108)
    assert feature_threads(features, grid) == threads
