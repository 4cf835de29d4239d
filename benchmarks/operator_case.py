"""The arrays of a problem, as contenders get them: in this process, or as files in a folder.

Contenders in environments of their own import this module, so it needs NumPy and SciPy only.
"""

from __future__ import annotations

# Interpreters of other contenders have no msgspec, and a NamedTuple has no cached properties.
from dataclasses import dataclass  # noqa: TID251
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    # Interpreters of other contenders have no gossamer.
    from gossamer_support.arrays import Array


CaseFields: TypeAlias = dict[str, Any]
"""The parts of a case that are not arrays, as JSON."""

CSR_ARRAYS = ("indptr", "indices", "data")

LINE_BYTES = 64

OPERAND_OFFSET = 16
"""Bytes from the start of a cache line to a dense operand, as NumPy allocates large arrays. Small ones begin
anywhere, and identical code is up to 2.5 times as fast if an array happens to begin at a line."""


@dataclass(frozen=True, eq=False)
class OperatorCase:
    """A measured operator, the operator of gossamer that computes it, its matrix in CSR (and in blocks, if
    it has any), its dense operands, and the shape of its result."""

    op: str
    operator: str
    csr: sparse.csr_matrix
    operands: tuple[Array, ...]
    result_shape: tuple[int, ...]
    bsr: sparse.bsr_matrix | None = None
    value_dtype: str | None = None

    @property
    def stored(self) -> sparse.csr_matrix | sparse.bsr_matrix:
        """The matrix in the format of the problem: in blocks, if it has any."""
        return self.csr if self.bsr is None else self.bsr

    @property
    def width(self) -> int | None:
        """Columns of the dense operands; None for vectors."""
        first = self.operands[0]
        return int(first.shape[1]) if first.ndim == 2 else None

    @property
    def features(self) -> int:
        """Columns of the dense operands; 1 for vectors."""
        return 1 if self.width is None else self.width

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.csr.dtype

    @cached_property
    def out(self) -> Array:
        """The output that all calls write to, at the start of a cache line; at first NaN."""
        return aligned_copy(np.full(self.result_shape, np.nan, dtype=self.dtype), offset=0)


def aligned_copy(array: Array, *, offset: int) -> Array:
    """Return a copy that begins `offset` bytes after the start of a cache line.

    >>> aligned_copy(np.ones((3, 5)), offset=16).ctypes.data % 64
    16
    """
    memory = np.empty(array.nbytes + 2 * LINE_BYTES, dtype=np.uint8)
    first = -memory.ctypes.data % LINE_BYTES + offset
    copy = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def write_case(case: OperatorCase, folder: Path) -> CaseFields:
    """Write the arrays to a folder and return the rest."""
    save_arrays(folder, "csr", case.csr)
    if case.bsr is not None:
        save_arrays(folder, "bsr", case.bsr)
    for number, operand in enumerate(case.operands):
        np.save(folder / f"operand{number}.npy", operand)
    return {
        "op": case.op,
        "operator": case.operator,
        "shape": list(case.csr.shape),
        "operands": len(case.operands),
        "result_shape": list(case.result_shape),
        "has_blocks": case.bsr is not None,
        "value_dtype": case.value_dtype,
    }


def read_case(folder: Path, description: CaseFields) -> OperatorCase:
    """Read a case that `write_case` has written."""
    shape = tuple(description["shape"])
    has_blocks = description["has_blocks"]
    return OperatorCase(
        op=description["op"],
        operator=description["operator"],
        csr=sparse.csr_matrix(load_arrays(folder, "csr"), shape=shape),
        operands=tuple(
            aligned_copy(np.load(folder / f"operand{number}.npy"), offset=OPERAND_OFFSET)
            for number in range(description["operands"])
        ),
        result_shape=tuple(description["result_shape"]),
        bsr=sparse.bsr_matrix(load_arrays(folder, "bsr"), shape=shape) if has_blocks else None,
        value_dtype=description["value_dtype"],
    )


def save_arrays(folder: Path, name: str, matrix: Any) -> None:
    """Write the three arrays of a matrix."""
    for part in CSR_ARRAYS:
        np.save(folder / f"{name}-{part}.npy", getattr(matrix, part))


def load_arrays(folder: Path, name: str) -> tuple[Array, Array, Array]:
    """Return data, indices and indptr of a matrix, as SciPy's constructors take them."""
    indptr, indices, data = (np.load(folder / f"{name}-{part}.npy") for part in CSR_ARRAYS)
    return data, indices, indptr
