"""Weights with several distributions for a parallel loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gossamer_testkit.corpus.case import Case, Options

WEIGHT_SIZES = (0, 1, 2, 16, 17, 1000)

_WEIGHTS: dict[str, Callable[[int], list[int]]] = {
    "even": lambda size: list(range(size + 1)),
    "none": lambda size: [5] * (size + 1),
    "all in the first": lambda size: [0] + [100] * size,
    "all in the last": lambda size: [0] * size + [100],
    "growing": lambda size: [number * number for number in range(size + 1)],
    "large": lambda size: [number * (2**62 // max(size, 1)) for number in range(size + 1)],
}


def weight_cases(options: Options) -> Iterator[Case]:
    """Yield arguments for OUT[i] += i + 1 over `start` <= i < `start` + n; with `weighted`, W has the
    cumulative weight before each i."""
    start = options["start"]
    for size in WEIGHT_SIZES:
        for name, weigh in _WEIGHTS.items():
            values: dict[str, Any] = {"out": np.zeros(start + size + 1, np.int64), "n": size}
            if options["weighted"]:
                values["w"] = np.array([0] * start + weigh(size), np.int64)
            yield Case(f"{size} iterations, weight: {name}", values)
            if not options["weighted"]:
                break
