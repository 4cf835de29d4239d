"""Arrays of several lengths, for programs with one size `n`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount
from gossamer_testkit.corpus.case import Case, Options

VECTOR_SIZES = (0, 1, 3, 15, 16, 17, 64, 100)

_ROWS_OF_FLAGS = np.array([[0] * 8, [1] * 8, [0, 0, 0, 1] * 2, [1] * 7 + [0], [0] * 7 + [1]])
"""Rows of eight flags: none set, all set, some set, or only the last one different."""

_RECIPES: dict[str, Callable[[int], Array]] = {
    "counting": lambda size: np.arange(size) % 100,
    "small": lambda size: np.arange(size) * 5 % 17 - 8,
    "natural": lambda size: np.arange(size) * 5 % 17 + 1,
    "untouched": lambda size: np.full(size, 77),
    "zeros": lambda size: np.zeros(size),
    "positive": lambda size: (np.arange(size) % 23 + 1) / 8,
    "fractions": lambda size: (np.arange(size) % 11 - 5) / 4,
    "permutation": lambda size: np.random.default_rng(size).permutation(size),
    "flags": lambda size: np.arange(size) % 3 != 1,
    "rows of flags": lambda size: np.resize(_ROWS_OF_FLAGS, size),
    "above one": lambda size: 1 + (np.arange(size) % 7 + 1) * 2.0**-13,
    "just above one": lambda size: 1 + (np.arange(size) % 7 + 1) * 2.0**-30,
    "far": lambda size: np.where(np.arange(size) % 3 == 1, 2**50, np.arange(size)[::-1]),
}


def vectors(options: Options) -> Iterator[Case]:
    """Yield a case for each n in `sizes`.

    `arrays` gives for each parameter a key of `_RECIPES`, a dtype and optionally a shape, as pairs
    (factor, addend) that stand for the extents factor * n + addend. The default shape is (n,).
    """
    for size in options.get("sizes", VECTOR_SIZES):
        values: dict[str, Any] = {
            name: _array(*recipe, size=size) for name, recipe in options["arrays"].items()
        }
        yield Case(amount(size, "element"), {**values, "n": size})


def _array(recipe: str, dtype: str, *shape: list[int], size: int) -> Array:
    extents = [factor * size + addend for factor, addend in shape] or [size]
    return _RECIPES[recipe](int(np.prod(extents))).astype(dtype).reshape(extents)
