"""Names for the other distributions of the release, besides the exports of the package.

Formats and operators by name, properties of descriptions, arrays of storages. A release pins the
versions of its distributions, so these names may change with each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_formats.checks.array_checks import INDEX_DTYPES
    from gossamer_formats.conversion.by_numpy.stored_elements import stored_elements
    from gossamer_formats.conversion.destination.recognized_formats import is_format
    from gossamer_formats.description_sizes import MAX_FORMATS, evaluate, shape_of
    from gossamer_formats.io.file_formats.by_suffix import NAMED_FILE_FORMATS, suffixes_in_words
    from gossamer_formats.memo import MemoKey, SparsityPattern
    from gossamer_formats.memory.available_memory import available_memory
    from gossamer_formats.permutation import UNSTORED, with_fill
    from gossamer_formats.product_storage import ProductStorage
    from gossamer_formats.registry.composable_formats import COMPOSABLE_FORMATS
    from gossamer_formats.registry.formats import FORMATS
    from gossamer_formats.registry.operators import find_operator, ignored_operators
    from gossamer_formats.tensors.replace_values import replace_values
    from gossamer_formats.tensors.scipy_own_format import borrow_in_own_format
    from gossamer_formats.value_dtypes import (
        NUMPY_DTYPES,
        VALUE_DTYPES,
        WIDE_DTYPES,
        converted_values,
        value_array_dtype,
    )

_HOMES = {
    "COMPOSABLE_FORMATS": "gossamer_formats.registry.composable_formats",
    "FORMATS": "gossamer_formats.registry.formats",
    "INDEX_DTYPES": "gossamer_formats.checks.array_checks",
    "MAX_FORMATS": "gossamer_formats.description_sizes",
    "MemoKey": "gossamer_formats.memo",
    "NAMED_FILE_FORMATS": "gossamer_formats.io.file_formats.by_suffix",
    "NUMPY_DTYPES": "gossamer_formats.value_dtypes",
    "ProductStorage": "gossamer_formats.product_storage",
    "SparsityPattern": "gossamer_formats.memo",
    "UNSTORED": "gossamer_formats.permutation",
    "VALUE_DTYPES": "gossamer_formats.value_dtypes",
    "WIDE_DTYPES": "gossamer_formats.value_dtypes",
    "available_memory": "gossamer_formats.memory.available_memory",
    "borrow_in_own_format": "gossamer_formats.tensors.scipy_own_format",
    "converted_values": "gossamer_formats.value_dtypes",
    "evaluate": "gossamer_formats.description_sizes",
    "find_operator": "gossamer_formats.registry.operators",
    "ignored_operators": "gossamer_formats.registry.operators",
    "is_format": "gossamer_formats.conversion.destination.recognized_formats",
    "replace_values": "gossamer_formats.tensors.replace_values",
    "shape_of": "gossamer_formats.description_sizes",
    "stored_elements": "gossamer_formats.conversion.by_numpy.stored_elements",
    "suffixes_in_words": "gossamer_formats.io.file_formats.by_suffix",
    "value_array_dtype": "gossamer_formats.value_dtypes",
    "with_fill": "gossamer_formats.permutation",
}

__all__ = [
    "COMPOSABLE_FORMATS",
    "FORMATS",
    "INDEX_DTYPES",
    "MAX_FORMATS",
    "MemoKey",
    "NAMED_FILE_FORMATS",
    "NUMPY_DTYPES",
    "ProductStorage",
    "SparsityPattern",
    "UNSTORED",
    "VALUE_DTYPES",
    "WIDE_DTYPES",
    "available_memory",
    "borrow_in_own_format",
    "converted_values",
    "evaluate",
    "find_operator",
    "ignored_operators",
    "is_format",
    "replace_values",
    "shape_of",
    "stored_elements",
    "suffixes_in_words",
    "value_array_dtype",
    "with_fill",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
