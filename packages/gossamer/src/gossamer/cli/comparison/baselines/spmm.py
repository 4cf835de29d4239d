"""The baseline of `spmm`: SciPy's product."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gossamer.cli.comparison.baselines.baseline import Baseline, Calculation, RoundingBound
from gossamer_formats import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def prepare_product(matrix: csr_array, dense: Array) -> Calculation:
    """Return a function that computes A @ B; B may be a vector."""
    return lambda: matrix @ dense


def product_bound(matrix: csr_array, dense: Array) -> RoundingBound:
    """Return |A| |B| and the lengths of the rows."""
    lengths = np.diff(matrix.indptr).reshape(-1, *(1,) * (dense.ndim - 1))
    return RoundingBound(abs(matrix) @ np.abs(dense), lengths)


BASELINE = Baseline("SciPy's A @ B", prepare_product, product_bound, operands=("columns",))
