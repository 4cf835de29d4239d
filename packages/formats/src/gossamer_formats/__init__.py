"""Sparse tensors at run time: descriptions, storage, checks, input and output.

`python -m tools.generate formats` writes the import of the formats, and `__all__`.
"""

from gossamer_formats.arrays.borrowed_matrices import borrow_scipy
from gossamer_formats.checks.storage_checks import (
    check_indices,
    check_indptr,
    check_storage,
)
from gossamer_formats.descriptions import (
    DESCRIPTIONS,
    csr,
    dia,
    sell,
)
from gossamer_formats.installed_formats import Format
from gossamer_formats.io.plain_arrays import from_arrays
from gossamer_formats.io.reading import read
from gossamer_formats.io.scipy_conversion import from_scipy, to_scipy
from gossamer_formats.stats import storage_stats
from gossamer_formats.storage import Array, Storage
from gossamer_formats.tensor import SparseTensor, stats_of
from gossamer_ir.support.index_arrays import FactChecker

__all__ = [
    "Array",
    "DESCRIPTIONS",
    "FactChecker",
    "Format",
    "SparseTensor",
    "Storage",
    "borrow_scipy",
    "check_indices",
    "check_indptr",
    "check_storage",
    "csr",
    "dia",
    "from_arrays",
    "from_scipy",
    "read",
    "sell",
    "stats_of",
    "storage_stats",
    "to_scipy",
]
