"""Positions that are in bounds, and some that are out of bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gossamer_testkit.corpus.case import Case, Options

ELEMENTS = 50


def guard_cases(options: Options) -> Iterator[Case]:
    """Yield arguments for Y[i] = X[P[i]] with guards: the call fails if one P[i] is out of bounds."""
    yield _case("all hold", np.arange(ELEMENTS)[::-1])
    yield _case("nothing to guard", np.arange(0))
    for name, at, position in (
        ("the first fails", 0, ELEMENTS),
        ("the last fails", ELEMENTS - 1, -1),
        ("one in the middle fails", 20, 2**62),
        ("one fails below zero", 33, -(2**62)),
    ):
        positions = np.arange(ELEMENTS)
        positions[at] = position
        yield _case(name, positions, raises="kernel.out_of_bounds", names=options["buffer"])


def _case(
    name: str, positions: Any, *, raises: str | None = None, names: str | None = None
) -> Case:
    x = np.arange(ELEMENTS, dtype=np.float32)
    p = np.ascontiguousarray(positions, np.int64)
    values = {"x": x, "p": p, "y": np.zeros(p.size, np.float32), "n": x.size, "m": p.size}
    return Case(name, values, raises=raises, names=names)
