"""The baseline of `spmv`: SciPy's product."""

from __future__ import annotations

from gossamer.cli.comparison.baselines.baseline import Baseline
from gossamer.cli.comparison.baselines.spmm import prepare_product, product_bound

BASELINE = Baseline(
    "SciPy's A @ x", prepare_product, product_bound, operands=("columns",), is_of_vectors=True
)
