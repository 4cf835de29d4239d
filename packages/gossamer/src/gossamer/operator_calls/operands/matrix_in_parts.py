"""Matrices in parts, each of which has a kernel of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeGuard

import msgspec

from gossamer.operator_calls.operands.stored_matrix import StoredMatrix
from gossamer.operator_calls.operator_program import StoredFormat
from gossamer_formats import Array

if TYPE_CHECKING:
    from gossamer_formats import Decomposition, Part


class MatrixInParts(msgspec.Struct, frozen=True):
    """The parts of a tensor that was decomposed. Their arrays were checked when they were made."""

    decomposition: Decomposition

    @property
    def shape(self) -> tuple[int, ...]:
        return self.decomposition.shape

    @property
    def dtype(self) -> str:
        return str(self.decomposition.dtype)

    @property
    def value_count(self) -> int:
        return self.decomposition.value_count

    @property
    def memory(self) -> tuple[Array, ...]:
        arrays = (part.tensor.arrays.values() for part in self.decomposition.parts)
        return tuple(array for part_arrays in arrays for array in part_arrays)


def is_decomposition(matrix: object) -> TypeGuard[Decomposition]:
    """Return whether a matrix is a decomposition, without importing their module: it is imported before there
    is one."""
    module = sys.modules.get("gossamer_formats.decomposition.decomposition")
    # The module has no class yet while another thread imports it.
    return module is not None and isinstance(matrix, getattr(module, "Decomposition", ()))


def stored_part(part: Part, values: Array | None = None) -> StoredMatrix:
    """Return a part as a matrix, with `values` in the place of its own."""
    storage = part.tensor.storage
    if values is not None:
        storage = storage._replace(arrays={**storage.arrays, part.values_name: values})
    sizes = tuple(sorted(part.fixed_sizes.items()))
    return StoredMatrix(storage, StoredFormat(storage.description, sizes))
