"""Products of BSR with a dense matrix: arguments, and results in float64."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gossamer_ir.core.dtypes import SUM_DTYPES, stored_operand_dtype
from tests.integration.math_oracle import tf32

EPSILON = 2.0**-24
"""The relative error of one operation in float32."""


class BlockProblem(NamedTuple):
    """The arguments of a product, its result, and a bound of the error of each element."""

    arguments: dict[str, Any]
    expected: np.ndarray[Any, Any]
    bound: np.ndarray[Any, Any]

    def require(self, kernel: Any, *, sizes: Mapping[str, int] | None = None) -> None:
        """Call a kernel, in which some sizes are constants, and compare its result."""
        arguments = {
            name: value for name, value in self.arguments.items() if name not in (sizes or {})
        }
        kernel(**arguments)
        error = np.abs(arguments["c"] - self.expected)
        assert (error <= self.bound).all(), (
            f"an error of {error.max()}, {self.bound.max()} expected"
        )


def block_problem(
    height: int,
    width: int,
    features: int,
    *,
    dtype: str = "float32",
    lengths: Any = (2, 0, 3, 1, 0),
) -> BlockProblem:
    """Return a product with random numbers, or with small integers for a dtype of integers; `lengths` are the
    numbers of blocks of block rows."""
    random = np.random.default_rng(height * width + features)
    columns = max(lengths, default=0) + 1
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    chosen = [np.sort(random.choice(columns, count, replace=False)) for count in lengths]
    indices = np.concatenate([*chosen, []]).astype(np.int32)
    stored = stored_operand_dtype(dtype)
    a = _numbers(random, (len(indices), height, width), stored)
    b = _numbers(random, (columns, width, features), stored)
    left, right = (tf32(a), tf32(b)) if dtype == "tfloat32" else (a, b)
    expected, sums = np.zeros((2, len(lengths), height, features))
    for row, (begin, end) in enumerate(pairwise(indptr)):
        for block, column in zip(left[begin:end], indices[begin:end], strict=True):
            expected[row] += block.astype(np.float64) @ right[column].astype(np.float64)
            sums[row] += np.abs(block).astype(np.float64) @ np.abs(b[column]).astype(np.float64)
    sum_dtype = SUM_DTYPES[stored]
    unwritten = np.full(expected.shape, np.nan if sum_dtype.startswith("float") else -1, sum_dtype)
    arguments = {
        "a": a, "b": b, "c": unwritten, "indptr": indptr,
        "indices": indices, "mb": len(lengths), "nb": columns, "nnzb": len(indices), "bh": height,
        "bw": width, "feat": features,
    }  # fmt: skip
    # Sums of integers are exact.
    epsilon = EPSILON if a.dtype.kind == "f" else 0.0
    return BlockProblem(arguments, expected, sums * (2 * columns * width + 2) * epsilon)


def _numbers(
    random: np.random.Generator, shape: tuple[int, ...], dtype: str
) -> np.ndarray[Any, Any]:
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0 if dtype.startswith("uint") else -8, 9, shape).astype(dtype)
