"""Patterns of matrices in parts: in CSR, with the parts that products are computed in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from gossamer_formats import Decomposition
from gossamer_formats.internal_api import UNSTORED, MemoKey, SparsityPattern, with_fill
from gossamer_ir.support.arrays import Array
from gossamer_torch.patterns import CheckedPattern


class PatternInParts(NamedTuple):
    """The pattern of a matrix in parts, and for each element in CSR its place in the values of the matrix
    that was decomposed."""

    pattern: CheckedPattern
    order: Array


_PATTERN: MemoKey[PatternInParts] = MemoKey("the pattern for tensors of torch")


def pattern_in_parts(tensor: Decomposition) -> PatternInParts:
    """Return the pattern of a matrix in parts, which is made once for all that differ in values alone.

    >>> from gossamer_formats import decompose, from_arrays
    >>> arrays = {"indices_0": np.array([1, 0]), "indices_1": np.array([0, 0])}
    >>> tensor = decompose(from_arrays("coo", (2, 1), data=np.ones(2), **arrays), "hyb")
    >>> pattern_in_parts(tensor).order
    array([1, 0])
    """

    def make(_pattern: SparsityPattern) -> PatternInParts:
        return _make_pattern(tensor)

    return _PATTERN.get(tensor.pattern, make)


def _make_pattern(tensor: Decomposition) -> PatternInParts:
    # Numbers from 1 tell the elements from the zeros that fill slots of the parts.
    numbers = np.arange(1, tensor.value_count + 1, dtype=np.float64)
    numbered = tensor.astype("float64").with_values(numbers).asformat("csr", zeros="drop")
    crow, col = (torch.from_numpy(numbered.arrays[name].copy()) for name in ("indptr", "indices"))
    order = numbered.arrays["data"].astype(np.int64) - 1
    parts = _parts_in_order(tensor, order)
    return PatternInParts(CheckedPattern(crow, col, tensor.shape[1], parts=parts), order)


def _parts_in_order(tensor: Decomposition, order: Array) -> Decomposition:
    """Return the matrix in the same parts for values in another order."""
    places = np.full(tensor.value_count, UNSTORED)
    places[order] = np.arange(order.size)
    places = with_fill(places, UNSTORED)
    parts = [part._replace(permutation=places[part.permutation]) for part in tensor.parts]
    return Decomposition(tensor.name, tensor.shape, tensor.dtype, parts, value_count=order.size)
