"""Sparse tensors at run time: descriptions, storage, checks, input and output."""

from gossamer_formats.checks.storage_checks import (
    check_indices,
    check_indptr,
    check_storage,
)
from gossamer_formats.decomposition.decompose import decompose
from gossamer_formats.decomposition.decomposition import Decomposition
from gossamer_formats.decomposition.part import Part
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.format import Format
from gossamer_formats.io.array_conversion import from_arrays
from gossamer_formats.io.reading import read
from gossamer_formats.io.scipy_conversion import from_scipy, to_scipy
from gossamer_formats.io.torch_conversion import from_torch, to_torch
from gossamer_formats.io.writing import write
from gossamer_formats.registry.installed_formats import format_named, format_names
from gossamer_formats.scipy_matrices.csr_of_scipy import borrow_scipy
from gossamer_formats.stats import storage_stats
from gossamer_formats.storage import Array, Storage
from gossamer_formats.tensor import Conversion, SparseTensor, convert, stats_of
from gossamer_ir.support.index_arrays import FactChecker

__all__ = [
    "Array",
    "Conversion",
    "Decomposition",
    "FactChecker",
    "Format",
    "Part",
    "SparseTensor",
    "Storage",
    "borrow_scipy",
    "check_indices",
    "check_indptr",
    "check_storage",
    "convert",
    "csr",
    "decompose",
    "from_arrays",
    "format_named",
    "format_names",
    "from_scipy",
    "from_torch",
    "read",
    "stats_of",
    "storage_stats",
    "to_scipy",
    "to_torch",
    "write",
]
