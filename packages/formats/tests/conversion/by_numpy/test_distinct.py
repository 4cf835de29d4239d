"""Distinct tuples, their order and their ranks, compared with sets and sorted lists of Python."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_formats.conversion.by_numpy.distinct import (
    distinct,
    occurrences,
    ranks_within,
    sorting_order,
)

RANDOM = np.random.default_rng(5)
COLUMNS = {
    "one element": [[4]],
    "no element": [[], []],
    "sorted": [[0, 0, 1, 1], [3, 3, 0, 2]],
    "unsorted": [[2, 0, 2, 1], [1, 9, 1, -4]],
    "sorted at the end only": [[3, 1, 2], [0, 1, 2]],
    "wide": [[1 << 40, 5, -(1 << 40), 5], [0, 1 << 17, 3, 1 << 17]],
    "random": RANDOM.integers(0, 4, (3, 200)).tolist(),
}


@pytest.fixture(params=COLUMNS.values(), ids=COLUMNS)
def columns(request):
    return [np.array(column, np.int64) for column in request.param]


def tuples_of(columns):
    return [*zip(*(column.tolist() for column in columns), strict=True)]


def test_the_order_sorts_the_tuples_stably(columns):
    tuples, order = tuples_of(columns), sorting_order(columns)
    expected = sorted(range(len(tuples)), key=tuples.__getitem__)
    assert (order is None) == (tuples == sorted(tuples))
    assert order is None or order.tolist() == expected


def test_ranks_are_those_in_the_sorted_set(columns):
    tuples, (ranks, firsts) = tuples_of(columns), distinct(columns)
    in_order = sorted(set(tuples))
    assert ranks.tolist() == [in_order.index(each) for each in tuples]
    assert [tuples[at] for at in firsts] == in_order
    assert firsts.tolist() == [tuples.index(each) for each in in_order], "not the first of its kind"


def test_occurrences_count_equal_tuples_before(columns):
    tuples = tuples_of(columns)
    assert occurrences(columns).tolist() == [
        tuples[:number].count(each) for number, each in enumerate(tuples)
    ]


def test_ranks_within_groups_begin_at_0_in_each():
    groups, values = RANDOM.integers(0, 5, 60), RANDOM.integers(0, 9, 60)
    for group, value, rank in zip(groups, values, ranks_within([groups], [values]), strict=True):
        assert rank == sorted(set(values[groups == group])).index(value)
    assert ranks_within([], [values]).tolist() == distinct([values]).ranks.tolist()
