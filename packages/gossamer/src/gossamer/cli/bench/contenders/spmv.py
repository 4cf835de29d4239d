"""The contender of `spmv`: SciPy's product."""

from __future__ import annotations

from gossamer.cli.bench.contenders.contender import Contender
from gossamer.cli.bench.contenders.spmm import prepare_product, product_bound

CONTENDER = Contender(
    "SciPy's A @ x", prepare_product, product_bound, operands=("columns",), of_vectors=True
)
