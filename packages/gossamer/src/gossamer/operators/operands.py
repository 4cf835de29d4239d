"""Operands of the operators: arguments of users, converted to arrays for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gossamer.operators.kernels import default_check, kernel_for
from gossamer.operators.program import OperatorProgram, Variant
from gossamer_backend.call.allocation import new_array
from gossamer_formats import Array, SparseTensor, Storage, borrow_scipy, csr, storage_stats
from gossamer_formats.checks.storage_checks import VALUE_DTYPES
from gossamer_ir.core.axis_kinds import indices_of, indptr_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Stats, Target

if TYPE_CHECKING:
    from gossamer.kernel_cache import Built

VALUES = "a"
"""The parameter for the values of a matrix."""

CHECKED = ("indptr", "indices")
"""The parameters for arrays whose contents were checked when the operands were."""

NATIVE: dict[str, np.dtype[Any]] = {name: np.dtype(name) for name in VALUE_DTYPES}


class Sparse(NamedTuple):
    """A checked CSR matrix: a tensor's own arrays, or those of a SciPy matrix for one call."""

    storage: Storage
    tensor: SparseTensor | None

    @property
    def rows(self) -> int:
        return self.storage.sizes["m"]

    @property
    def columns(self) -> int:
        return self.storage.sizes["n"]

    @property
    def nnz(self) -> int:
        return self.storage.sizes["nnz"]

    @property
    def dtype(self) -> str:
        return self.storage.format.buffer.dtype

    @property
    def arrays(self) -> dict[str, Array]:
        """Its arrays by the names of the kernels' parameters."""
        arrays = self.storage.arrays
        return {"indptr": arrays["indptr"], "indices": arrays["indices"], VALUES: arrays["data"]}

    def stats(self) -> Stats:
        """The stats of the matrix that rules for schedules use."""
        return self.tensor.stats if self.tensor is not None else storage_stats(self.storage)

    def variant(self, features: int | None = None, *, dtype: str = "") -> Variant:
        """Return the variant of an operator for the matrix; the dtype is by default that of the matrix."""
        axis = self.storage.format.axes[-1]
        offsets, columns = indptr_of(axis), indices_of(axis)
        assert offsets is not None
        assert columns is not None
        return Variant(dtype or self.dtype, offsets.dtype, columns.dtype, features)


class Operands(NamedTuple):
    """The checked operands of one call: `dense` are the dense arrays by parameter, `output` is the
    parameter of the result, whose `shape` and `dtype` follow."""

    matrix: Sparse
    dense: dict[str, Array]
    output: str
    shape: tuple[int, ...]
    dtype: str
    features: int | None = None

    @property
    def inputs(self) -> tuple[Array, ...]:
        """All arrays that the result must not overlap."""
        return (*self.dense.values(), *self.matrix.arrays.values())

    @property
    def products(self) -> int:
        """The number of products that a kernel computes."""
        return self.matrix.nnz * (self.features or 1)

    @property
    def is_zero(self) -> bool:
        """True if the result is zero, or empty, as there is nothing to sum."""
        return self.matrix.nnz == 0 or self.features == 0

    def variant(self) -> Variant:
        """The variant of the operator for these operands."""
        return self.matrix.variant(self.features, dtype=self.dtype)

    def kernel(self, program: OperatorProgram, target: str | Target | None) -> Built:
        """Return the kernel of a program for these operands."""
        return kernel_for(program, self.variant(), stats=self.matrix.stats(), target=target)

    def arguments(self, program: OperatorProgram, result: Array) -> dict[str, Array]:
        """Return all arrays of the call by parameter of the kernel."""
        arrays = self.matrix.arrays
        if not program.values:
            del arrays[VALUES]
        return {**arrays, **self.dense, self.output: result}


def sparse_operand(matrix: Any) -> Sparse:
    """Return a `SparseTensor` as it is; a SciPy matrix is converted to CSR and checked (`FormatError`)."""
    if isinstance(matrix, SparseTensor):
        _require_csr(matrix)
        return Sparse(matrix.storage, matrix)
    tensor = borrow_scipy(matrix, check=default_check())
    return Sparse(tensor, None)


def pattern_operand(matrix: Any, *, dtype: str) -> Sparse:
    """Like `sparse_operand`, for a matrix whose values are ignored: bools and integers of a SciPy matrix are
    converted to this dtype ("": float32)."""
    kind = getattr(getattr(matrix, "dtype", None), "kind", "")
    # Only bools and integers are converted, which adjacency matrices have.
    if isinstance(matrix, SparseTensor) or kind not in ("b", "i", "u"):
        return sparse_operand(matrix)
    tensor = borrow_scipy(matrix, dtype=dtype or "float32", check=default_check())
    return Sparse(tensor, None)


def is_csr(tensor: SparseTensor) -> bool:
    """Return whether the tensor's description, for which its arrays were checked, is that of CSR."""
    description, axis = tensor.format, tensor.format.axes[-1]
    offsets, columns = indptr_of(axis), indices_of(axis)
    if offsets is None or columns is None:
        return False
    return description == csr(
        description.buffer.dtype,
        indptr_dtype=offsets.dtype,
        indices_dtype=columns.dtype,
        sorted=columns.sorted,
        unique=columns.unique,
    )


def _require_csr(tensor: SparseTensor) -> None:
    if not is_csr(tensor):
        raise ArgumentError(
            "operand.format",
            f"The tensor's description is named '{tensor.format.name}' but differs from "
            "gossamer_formats.csr().",
            hint="Make it with from_scipy or from_arrays.",
        )


def dtype_of(name: str, value: Any) -> str:
    """Return the dtype of an array that kernels accept; "" if the value is not an array."""
    if not isinstance(value, np.ndarray):
        return ""
    for known, dtype in NATIVE.items():
        if value.dtype.newbyteorder("=") == dtype:
            return known
    raise ArgumentError(
        "operand.dtype",
        f"'{name}' has the dtype {value.dtype}; expected {' or '.join(NATIVE)}.",
        hint=f"Convert it with {name}.astype('float32').",
    )


def dense_operand(
    name: str,
    value: Any,
    *,
    dtype: str,
    shape: tuple[int | None, ...],
    like: str = "the matrix",
) -> Array:
    """Return a C-contiguous array of the shape (None: any length) and of the dtype, which is that of `like`;
    it is copied if necessary."""
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        raise ArgumentError(
            "operand.kind",
            f"'{name}' has the type '{type(value).__name__}'; expected a NumPy array.",
            hint=f"Convert it with numpy.asarray({name}, dtype='{dtype}').",
        )
    native = NATIVE[dtype]
    # Another byte order is converted below, another dtype is not: that would hide a mistake.
    if value.dtype != native and value.dtype.newbyteorder("=") != native:
        raise ArgumentError(
            "operand.dtype",
            f"'{name}' has the dtype {value.dtype}, {like} {dtype}; expected one dtype.",
            hint=f"Convert {name} with {name}.astype('{dtype}').",
        )
    _require_shape(name, value, shape=shape)
    # The usual case without a call of NumPy.
    if type(value) is np.ndarray and value.dtype == native and _is_plain(value):
        return value
    return np.require(value, dtype=native, requirements=["C", "A"]).view(np.ndarray)


def number_operand(
    name: str, value: Any, dtype: np.dtype[Any], *, expected: str = "a number"
) -> Array:
    """Return a number as an array of one element for the kernel."""
    if not isinstance(value, (int, float, np.floating)):
        raise ArgumentError(
            "operand.kind", f"'{name}' has the type '{type(value).__name__}'; expected {expected}."
        )
    return _single(float(value), dtype)


@lru_cache(maxsize=256)
def _single(value: float, dtype: np.dtype[Any]) -> Array:
    array = np.array([value], dtype=dtype)
    # The array is shared by all calls with this number.
    array.setflags(write=False)
    return array


def output(
    value: Any, *, dtype: str, shape: tuple[int, ...], inputs: Sequence[Array]
) -> tuple[Array, Array]:
    """Return the result object and the array to write to: `out` as it was passed, or a new array."""
    if value is None:
        fresh = new_array(shape, NATIVE[dtype])
        return fresh, fresh
    if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
        kind = type(value).__name__
        raise ArgumentError(
            "operand.kind", f"'out' has the type '{kind}'; expected a NumPy array or None."
        )
    if value.dtype != NATIVE[dtype]:
        raise ArgumentError(
            "operand.dtype", f"'out' has the dtype {value.dtype}; expected {dtype}."
        )
    _require_shape("out", value, shape=shape)
    _require_writable(value)
    for array in inputs:
        if np.may_share_memory(value, array):
            raise ArgumentError(
                "operand.overlap",
                "'out' overlaps an input.",
                hint="Pass a separate array, or omit 'out'.",
            )
    return value, value.view(np.ndarray)


def _is_plain(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous and flags.aligned


def _require_writable(out: Array) -> None:
    if not out.flags.writeable:
        raise ArgumentError(
            "operand.read_only", "'out' is read-only.", hint="Pass an array that can be written to."
        )
    if not out.flags.aligned:
        raise ArgumentError(
            "operand.alignment",
            f"'out' does not start at a multiple of {out.itemsize} bytes, the size of its elements.",
            hint=f"Pass numpy.empty({out.shape}, dtype='{out.dtype.name}').",
        )
    if not _is_plain(out):
        raise ArgumentError(
            "operand.contiguity",
            f"'out' has the strides {out.strides}; expected a C-contiguous array.",
            hint=f"Pass numpy.empty({out.shape}, dtype='{out.dtype.name}').",
        )


def _require_shape(name: str, array: Array, *, shape: tuple[int | None, ...]) -> None:
    fits = array.shape == shape
    if not fits and array.ndim == len(shape):
        pairs = zip(array.shape, shape, strict=True)
        fits = all(wanted is None or size == wanted for size, wanted in pairs)
    if not fits:
        expected = ", ".join("any" if wanted is None else str(wanted) for wanted in shape)
        comma = "," if len(shape) == 1 else ""
        raise ArgumentError(
            "operand.shape", f"'{name}' has the shape {array.shape}; expected ({expected}{comma})."
        )
