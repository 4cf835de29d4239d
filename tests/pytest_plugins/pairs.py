"""A pytest plugin that runs of a test with many parameters the fewest cases that have all pairs of values.

    python -m pytest -p tests.pytest_plugins.pairs packages/gossamer/tests

A test with three or more parameters has a case for each combination of their values. Of these, cases are kept
until each two values that occur in one case occur in one that is kept. A defect that shows with one value of
a parameter, or with two values of two parameters, is found all the same; one that needs three is found by a
run without this plugin, which has all cases.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import pytest

Case: TypeAlias = tuple[Hashable, ...]
"""The value of each parameter."""


def pairs_of(case: Case) -> frozenset[tuple[int, int, Hashable, Hashable]]:
    """Return the pairs of values in a case, each with the numbers of its parameters."""
    return frozenset(
        (first, second, case[first], case[second])
        for first, second in combinations(range(len(case)), 2)
    )


def cover_pairs(cases: Sequence[Case]) -> list[int]:
    """Return the numbers of cases that have all pairs of all cases. The next one is always a case with the
    most new pairs, the first of several.

    >>> cover_pairs([(a, b, c) for a in "xy" for b in "xy" for c in "xy"])
    [0, 3, 5, 6]
    """
    pairs = [pairs_of(case) for case in cases]
    missing = set().union(*pairs)
    kept = []
    while missing:
        best = max(range(len(cases)), key=lambda number: len(pairs[number] & missing))
        kept.append(best)
        missing -= pairs[best]
    return sorted(kept)


def parameters_of(item: pytest.Function) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of each parameter of a test: those of one mark have their values together."""
    names = set(item.callspec.params)
    for mark in item.iter_markers("parametrize"):
        arguments = mark.kwargs.get("argnames", next(iter(mark.args), ()))
        listed = arguments.split(",") if isinstance(arguments, str) else arguments
        together = tuple(name for argument in listed if (name := argument.strip()) in names)
        names -= {*together}
        yield from [together] if together else []
    yield from ((name,) for name in sorted(names))  # of fixtures


def case_of(item: pytest.Function) -> Case:
    """Return the case of a test. Values are equal if they are the same objects: arrays have no hash."""
    params = item.callspec.params
    return tuple(tuple(id(params[name]) for name in names) for names in parameters_of(item))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    groups: dict[object, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            groups[item.parent, item.originalname].append(item)
    left_out: set[pytest.Item] = set()
    for group in groups.values():
        cases = [case_of(item) for item in group]
        if len(cases[0]) > 2:  # with two parameters, each case is a pair of its own
            kept = {*cover_pairs(cases)}
            left_out.update(item for number, item in enumerate(group) if number not in kept)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
