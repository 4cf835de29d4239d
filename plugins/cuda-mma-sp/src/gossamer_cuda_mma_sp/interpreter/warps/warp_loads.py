"""`ldmatrix` for the warps of a grid: matrices of 8 by 8 elements of 16 bits, of which lanes address rows."""

from __future__ import annotations

import numpy as np

from gossamer_cuda_mma_sp.interpreter.memory import LaneNumbers
from gossamer_ir.core.limits import WARP_LANES
from gossamer_support.arrays import Array

_ROWS = 8
ROW_BYTES = 16
"""The bytes of a row, to a multiple of which it is aligned."""


def addressing_lanes(lanes: LaneNumbers, count: int) -> LaneNumbers:
    """Return the lanes of whole warps that address the rows of `count` matrices.

    >>> addressing_lanes(np.arange(64), 1).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35, 36, 37, 38, 39]
    """
    return lanes.reshape(-1, WARP_LANES)[:, : _ROWS * count].ravel()


def bank_conflicts(addresses: LaneNumbers) -> int:
    """Return how many rows of matrices are loaded after others that are in the same banks.

    >>> bank_conflicts(np.arange(8) * 16), bank_conflicts(np.arange(8) * 64)
    (0, 3)
    """
    banks = addresses.reshape(-1, _ROWS, 1) // ROW_BYTES % _ROWS == np.arange(_ROWS)
    return int((banks.sum(axis=1).max(axis=1) - 1).sum())


def loaded_registers(rows: Array, count: int, *, is_transposed: bool) -> list[Array]:
    """Return the registers that the lanes of warps get: two elements of each matrix.

    `rows` are the bytes that `addressing_lanes` address. Lane 4 * g + t gets the elements 2 * t and 2 * t + 1
    of row g, or of column g.

    >>> row = np.arange(8, dtype=np.uint16)
    >>> rows = np.stack([row + 8 * number for number in range(8)]).view(np.uint8)
    >>> [hex(loaded_registers(rows, 1, is_transposed=way)[0][5]) for way in (False, True)]
    ['0xb000a', '0x190011']
    """
    halves = np.ascontiguousarray(rows).view(np.uint16)
    matrices = halves.reshape(-1, count, _ROWS, ROW_BYTES // 2)
    if is_transposed:
        matrices = matrices.swapaxes(2, 3)
    pairs = np.ascontiguousarray(matrices).view(np.uint32)
    return [pairs[:, number].ravel() for number in range(count)]
