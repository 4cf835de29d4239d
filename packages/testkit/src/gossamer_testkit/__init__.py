"""What a backend author runs: corpus, data strategies, oracles."""

from gossamer_testkit.cases import csr_cases
from gossamer_testkit.csr import Csr, from_mask, from_rows
from gossamer_testkit.oracles import (
    max_relative_error,
    spmm,
    spmm_magnitude,
    spmv,
    spmv_magnitude,
    tolerance,
)
from gossamer_testkit.strategies import csr_matrices, dense_operands

__all__ = [
    "Csr",
    "csr_cases",
    "csr_matrices",
    "dense_operands",
    "from_mask",
    "from_rows",
    "max_relative_error",
    "spmm",
    "spmm_magnitude",
    "spmv",
    "spmv_magnitude",
    "tolerance",
]
