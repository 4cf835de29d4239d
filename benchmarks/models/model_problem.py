"""A model on data, with the results that all contenders must give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from benchmarks.models.model_case import TRAINING, ModelCase
from gossamer_support.arrays import Array

MODEL_STEPS = ("inference", TRAINING)
ALLOWED_MODEL_ERROR = 2e-4
"""The error of an array in float32, relative to its norm: thousands of terms are added, in several layers."""

Arrays: TypeAlias = dict[str, Array]
ModelOracle: TypeAlias = Callable[[Mapping[str, Array]], Arrays]
"""Returns the output and the gradients of the leaves, by name, from arrays in float64."""


class ModelProblem(msgspec.Struct, frozen=True):
    """A model on data of a name. `detail` says more about it, such as the number of channels; `arrays`
    include the `seed`, the gradient of the output."""

    model: str
    data: str
    arrays: Arrays
    leaves: tuple[str, ...]
    oracle: ModelOracle
    detail: str | None = None
    sizes: dict[str, int] = {}
    steps: tuple[str, ...] = MODEL_STEPS

    def case(self, step: str) -> ModelCase:
        """Return the arrays for contenders."""
        return ModelCase(self.model, step, self.arrays, self.leaves, self.sizes)

    def expected_outputs(self) -> tuple[Array, ...]:
        """Return the output in float64, and the gradients of the leaves."""
        exact = {
            name: array.astype(np.float64) if array.dtype == np.float32 else array
            for name, array in self.arrays.items()
        }
        results = self.oracle(exact)
        return (results["output"], *(results[name] for name in self.leaves))


def relative_error(result: Array, expected: Sequence[Array]) -> float:
    """Return the largest error of an array relative to its norm; the result has all arrays in a row, or only
    the first one. NaN if one is NaN or sizes differ."""
    sizes = [array.size for array in expected]
    if result.size not in (sizes[0], sum(sizes)):
        return float("nan")
    errors = []
    for start, array in zip(np.cumsum([0, *sizes[:-1]]), expected, strict=True):
        if start < result.size:
            actual = result[start : start + array.size].astype(np.float64)
            errors.append(np.linalg.norm(actual - array.ravel()) / np.linalg.norm(array))
    return float(np.max(errors))


def random_arrays(start: int, /, **shapes: tuple[int, ...]) -> Arrays:
    """Return normally distributed arrays in float32, divided by the square root of their rows if
    they are weights (their names begin with w)."""
    generator = np.random.default_rng(start)
    arrays = {}
    for name, shape in shapes.items():
        scale = shape[-2] ** -0.5 if name.startswith("w") else 1.0
        arrays[name] = (scale * generator.standard_normal(shape)).astype(np.float32)
    return arrays
