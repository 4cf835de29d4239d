"""Sorted arrays, and values to search for in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gossamer_testkit.corpus.case import Case, Options

_SORTED = {
    "nothing to search": [],
    "one element": [5],
    "different elements": [-3, 0, 1, 4, 9, 10, 25],
    "equal elements": [2, 2, 2, 7, 7, 9, 9, 9, 9],
    "many elements": list(range(0, 400, 3)),
}


def search_cases(options: Options) -> Iterator[Case]:
    """Yield cases in which KEYS is sorted; V has values before, between, equal to and after its elements."""
    for name, keys in _SORTED.items():
        around = sorted({value + step for value in (*keys, 5) for step in (-1, 0, 1)})
        values = {
            "keys": np.array(keys, options["dtype"]),
            "v": np.array(around, options["dtype"]),
            "y": np.full(len(around), -7, np.int64),
            "n": len(keys),
            "m": len(around),
        }
        yield Case(name, values)
