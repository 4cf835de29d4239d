"""Sparse tensors at run time: descriptions, storage, checks, input and output."""

from gossamer_formats.arrays import from_arrays
from gossamer_formats.checks import FactCheck, check_indices, check_indptr, check_storage
from gossamer_formats.descriptions import DESCRIPTIONS, csr, dia, sell
from gossamer_formats.reading import read
from gossamer_formats.scipy_matrices import borrow_scipy, from_scipy, to_scipy
from gossamer_formats.stats import storage_stats
from gossamer_formats.storage import Array, Storage
from gossamer_formats.tensor import SparseTensor, stats_of

__all__ = [
    "Array", "DESCRIPTIONS", "FactCheck", "SparseTensor", "Storage", "borrow_scipy", "check_indices",
    "check_indptr", "check_storage", "csr", "dia", "from_arrays", "from_scipy", "read", "sell", "stats_of",
    "storage_stats", "to_scipy",
]  # fmt: skip
