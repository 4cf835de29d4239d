"""Which blocks of a matrix are stored, among them extreme cases."""

from __future__ import annotations

import numpy as np

GRIDS = {
    "0 block rows": np.zeros((0, 3), bool),
    "0 block columns": np.zeros((3, 0), bool),
    "0 blocks": np.zeros((3, 4), bool),
    "one block": np.ones((1, 1), bool),
    "empty block rows at both ends": (np.arange(35).reshape(7, 5) % 3 == 0)
    & (np.arange(7) % 6 > 0)[:, None],
    "one dense block row": (np.arange(5) == 2)[:, None] & np.ones(9, bool),
    "one dense block column": np.ones(9, bool)[:, None] & (np.arange(5) == 2),
}
"""A mask for each case: true where a block is stored."""
