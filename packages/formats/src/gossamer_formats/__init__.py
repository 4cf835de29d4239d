"""Sparse tensors at run time: descriptions, storage, checks, input and output.

The names below are imported on first access: a program that calls operators on SciPy matrices needs few of
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_formats.checks.index_checks import require_valid_indices, require_valid_indptr
    from gossamer_formats.checks.storage_checks import require_valid_storage
    from gossamer_formats.decomposition.composable_format import ComposableFormat
    from gossamer_formats.decomposition.decompose import decompose
    from gossamer_formats.decomposition.decomposition import Decomposition
    from gossamer_formats.decomposition.format_list import chosen_parts
    from gossamer_formats.decomposition.part import Part
    from gossamer_formats.descriptions.csr import csr
    from gossamer_formats.format import Format
    from gossamer_formats.io.declared_sizes import DeclaredSizes
    from gossamer_formats.io.file_format import FileFormat
    from gossamer_formats.io.reading import read
    from gossamer_formats.io.writing import write
    from gossamer_formats.registry.formats import format_named, format_names
    from gossamer_formats.reordering.row_communities import community_order
    from gossamer_formats.stats import storage_stats
    from gossamer_formats.storage import Storage
    from gossamer_formats.tensors.convert import Conversion, convert
    from gossamer_formats.tensors.from_arrays import from_arrays
    from gossamer_formats.tensors.prune import prune
    from gossamer_formats.tensors.scipy_conversion import from_scipy, to_scipy
    from gossamer_formats.tensors.scipy_storage import borrow_scipy
    from gossamer_formats.tensors.sparse_tensor import SparseTensor
    from gossamer_formats.tensors.torch_conversion import from_torch, to_torch
    from gossamer_ir.facts.index_arrays import FactChecker
    from gossamer_support.arrays import Array

_HOMES = {
    "Array": "gossamer_support.arrays",
    "ComposableFormat": "gossamer_formats.decomposition.composable_format",
    "Conversion": "gossamer_formats.tensors.convert",
    "DeclaredSizes": "gossamer_formats.io.declared_sizes",
    "Decomposition": "gossamer_formats.decomposition.decomposition",
    "FactChecker": "gossamer_ir.facts.index_arrays",
    "FileFormat": "gossamer_formats.io.file_format",
    "Format": "gossamer_formats.format",
    "Part": "gossamer_formats.decomposition.part",
    "SparseTensor": "gossamer_formats.tensors.sparse_tensor",
    "Storage": "gossamer_formats.storage",
    "borrow_scipy": "gossamer_formats.tensors.scipy_storage",
    "chosen_parts": "gossamer_formats.decomposition.format_list",
    "community_order": "gossamer_formats.reordering.row_communities",
    "convert": "gossamer_formats.tensors.convert",
    "csr": "gossamer_formats.descriptions.csr",
    "decompose": "gossamer_formats.decomposition.decompose",
    "format_named": "gossamer_formats.registry.formats",
    "format_names": "gossamer_formats.registry.formats",
    "from_arrays": "gossamer_formats.tensors.from_arrays",
    "from_scipy": "gossamer_formats.tensors.scipy_conversion",
    "from_torch": "gossamer_formats.tensors.torch_conversion",
    "prune": "gossamer_formats.tensors.prune",
    "read": "gossamer_formats.io.reading",
    "require_valid_indices": "gossamer_formats.checks.index_checks",
    "require_valid_indptr": "gossamer_formats.checks.index_checks",
    "require_valid_storage": "gossamer_formats.checks.storage_checks",
    "storage_stats": "gossamer_formats.stats",
    "to_scipy": "gossamer_formats.tensors.scipy_conversion",
    "to_torch": "gossamer_formats.tensors.torch_conversion",
    "write": "gossamer_formats.io.writing",
}

__all__ = [
    "Array",
    "ComposableFormat",
    "Conversion",
    "DeclaredSizes",
    "Decomposition",
    "FactChecker",
    "FileFormat",
    "Format",
    "Part",
    "SparseTensor",
    "Storage",
    "borrow_scipy",
    "chosen_parts",
    "community_order",
    "convert",
    "csr",
    "decompose",
    "format_named",
    "format_names",
    "from_arrays",
    "from_scipy",
    "from_torch",
    "prune",
    "read",
    "require_valid_indices",
    "require_valid_indptr",
    "require_valid_storage",
    "storage_stats",
    "to_scipy",
    "to_torch",
    "write",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
