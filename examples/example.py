"""The record of an example: inputs, an oracle, programs of gossamer, and what a user would do without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np

from gossamer_support.arrays import Array

Call: TypeAlias = Callable[[], Array]
"""Computes the result. Formats were built and kernels compiled before, so it only runs kernels."""


class UnavailableError(Exception):
    """A data set or a library is missing on this machine; the message says which."""


class Example(msgspec.Struct, frozen=True):
    """A program with everything that tests and benchmarks need.

    `cases` make small inputs by name, and `datasets` real ones; these raise `UnavailableError` if a file is
    missing. `oracle` computes the result in float64 with NumPy and SciPy, and `magnitude` the sums of the
    absolute values of terms, to which errors are relative. `terms` is the most roundings of an element.
    `programs` and `baselines` prepare calls.
    """

    name: str
    cases: Mapping[str, Callable[[], Any]]
    datasets: Mapping[str, Callable[[], Any]]
    oracle: Callable[[Any], Array]
    magnitude: Callable[[Any], Array]
    terms: Callable[[Any], int]
    programs: Mapping[str, Callable[[Any], Call]]
    baselines: Mapping[str, Callable[[Any], Call]]

    def relative_error(self, inputs: Any, result: Array) -> float:
        """Return the largest error of an element, relative to the allowed one; at most 1 is right."""
        exact, size = self.oracle(inputs), self.magnitude(inputs)
        allowed = (self.terms(inputs) + 2) * float(np.finfo(np.float32).eps) * size
        difference = np.abs(result.astype(np.float64) - exact)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(difference == 0, 0.0, difference / allowed)
        return float(relative.max(initial=0.0))


def random_array(*shape: int, seed: int) -> Array:
    """Return float32 values of a normal distribution."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
