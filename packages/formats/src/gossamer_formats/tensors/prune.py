"""`prune`: the largest elements of a matrix, in a sparse format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer_formats.checks.array_checks import require_dtype
from gossamer_formats.conversion.destination.conversion_destination import conversion_destination
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.memory.ownership import adopt_array
from gossamer_formats.pruning.pruning_rule import Nonzeros, PruningRule
from gossamer_formats.registry.formats import FORMATS, formats_with
from gossamer_formats.storage import Storage
from gossamer_formats.tensors.sparse_tensor import SparseTensor
from gossamer_formats.value_dtypes import NUMPY_DTYPES, is_encoded
from gossamer_ir.errors import FormatError
from gossamer_support.arrays import Array
from gossamer_support.message_texts import amount
from gossamer_support.typed_calls import typed

_PATTERN = re.compile(r"([1-9]\d{0,8}):([1-9]\d{0,8})")
"""A pattern N:M: the slots and the columns of a group."""


@typed
def prune(
    matrix: Any, format: str, *, density: float | None = None, **parameters: int
) -> SparseTensor:
    """Return the elements of a matrix with the largest magnitudes, in a format.

    `matrix` is a dense array, a SciPy matrix or a `SparseTensor`. If magnitudes are equal, the first in the
    order of rows and columns is kept. The formats of the library to which matrices are pruned are:

    * `csr`: `density` times the number of elements of the matrix are kept, wherever they are;
    * `bsr`: `density` times the number of blocks are kept, those with the largest sums of squares;
    * `n_m`: `slots` elements of each `group` columns of a row;
    * `v_n_m`: in each `group` columns of `rows` rows, `slots` elements of each row, in the `chosen` columns
      with the largest sums of magnitudes.

    A pattern such as `"2:4"` is the format `n_m` with these `slots` and this `group`.

    Numbers of elements are rounded to the nearest. Zeros are never kept. Raises `FormatError`: `format.prune`
    (a format without a rule, a density that is missing, out of range or not needed), `format.prune.nan` (an
    element is not a number), `format.parameter`, `format.parameter.missing`, `format.parameter.value`,
    `format.dimensions`, `format.dtype`.

    >>> weights = np.array([[4.0, -1.0, 2.0, 3.0], [0.5, -0.5, 0.5, 0.0]])
    >>> prune(weights, "csr", density=0.25).toarray()
    array([[4., 0., 0., 3.],
           [0., 0., 0., 0.]])
    >>> prune(weights, "2:4").toarray()
    array([[ 4. ,  0. ,  0. ,  3. ],
           [ 0.5, -0.5,  0. ,  0. ]])
    """
    if isinstance(matrix, SparseTensor) and is_encoded(matrix.value_dtype):
        decoded = prune(matrix.astype("float32"), format, density=density, **parameters)
        return decoded.astype(matrix.value_dtype)
    format, parameters = _format_of_pattern(format, parameters)
    rule = _rule_of(format)
    destination = conversion_destination(format, parameters, ndim=2)
    # Before the elements: finding them reads the whole matrix.
    _require_density(format, density, is_needed=rule.takes_density)
    elements = _elements(matrix)
    kept = rule.kept(elements, 1.0 if density is None else density, destination.parameters)
    sizes: dict[str, Any] = dict(parameters)
    return _store_kept(elements, kept).asformat(format, **sizes)


def _format_of_pattern(
    format_name: str, parameters: Mapping[str, int]
) -> tuple[str, dict[str, int]]:
    """Return the format and the parameters of a pattern N:M; those of the call for any other name."""
    pattern = _PATTERN.fullmatch(format_name)
    if pattern is None:
        return format_name, dict(parameters)
    slots, group = map(int, pattern.groups())
    if slots > group or parameters:
        raise FormatError(
            "format.prune",
            f"The pattern '{format_name}' has {amount(slots, 'slot')} for {amount(group, 'column')}, and "
            f"{amount(len(parameters), 'further parameter')}; expected no more slots than columns, and no "
            "parameter.",
        )
    return "n_m", {"slots": slots, "group": group}


def _rule_of(format_name: str) -> PruningRule:
    format = FORMATS.find(format_name)
    rule = None if format is None else format.adapter(PruningRule)
    if rule is not None:
        return rule
    raise FormatError(
        "format.prune",
        f"There is no rule to prune a matrix to the format '{format_name}'; expected one of "
        f"{', '.join(record.name for record, _rule in formats_with(PruningRule))}.",
        hint="Prune to csr, and convert the result.",
    )


def _require_density(format_name: str, density: float | None, *, is_needed: bool) -> None:
    if is_needed and density is None:
        raise FormatError(
            "format.prune",
            f"Pruning to '{format_name}' needs the density, the share of elements that are kept.",
            hint="Pass density=..., a number from 0 to 1.",
        )
    if density is not None and not is_needed:
        raise FormatError(
            "format.prune",
            f"The sizes of the format '{format_name}' are its density; expected no other.",
        )
    if density is not None and not 0 <= density <= 1:
        raise FormatError(
            "format.prune", f"The density is {density!r}; expected a number from 0 to 1."
        )


def _elements(matrix: Any) -> Nonzeros:
    """Return the nonzeros of a matrix. Raises `FormatError`."""
    if isinstance(matrix, np.ndarray):
        _require_matrix(matrix.ndim)
        require_dtype("matrix", matrix, NUMPY_DTYPES)
        rows, columns = np.nonzero(matrix)
        elements = Nonzeros(matrix.shape, rows, columns, matrix[rows, columns])
    else:
        tensor = matrix if isinstance(matrix, SparseTensor) else SparseTensor(matrix)
        _require_matrix(tensor.ndim)
        arrays = tensor.asformat("csr", zeros="drop").arrays
        rows = np.repeat(np.arange(tensor.shape[0]), np.diff(arrays["indptr"]))
        columns = arrays["indices"].astype(np.int64)
        elements = Nonzeros(tensor.shape, rows, columns, arrays["data"])
    # A comparison with nan is always false, so that any choice would look like the largest.
    invalid = np.isnan(elements.values)
    if invalid.any():
        first = int(np.argmax(invalid))
        raise FormatError(
            "format.prune.nan",
            f"The element in row {elements.rows[first]} and column {elements.columns[first]} is nan; "
            "expected numbers, which can be compared.",
        )
    return elements


def _require_matrix(ndim: int) -> None:
    if ndim != 2:
        raise FormatError(
            "format.dimensions", f"The array has {amount(ndim, 'dimension')}; expected 2."
        )


def _store_kept(elements: Nonzeros, kept: Array) -> SparseTensor:
    """Return the elements that are kept in CSR."""
    rows, length = elements.shape
    columns, values = elements.columns[kept], elements.values[kept]
    # The narrowest dtype that holds offsets and columns: products read them from memory.
    dtype = "int32" if max(values.size, length) <= np.iinfo(np.int32).max else "int64"
    offsets = np.zeros(rows + 1, dtype)
    np.cumsum(np.bincount(elements.rows[kept], minlength=rows), out=offsets[1:])
    arrays = {"indptr": offsets, "indices": columns.astype(dtype), "data": values}
    described = csr(values.dtype.name, indptr_dtype=dtype, indices_dtype=dtype)
    owned = {name: adopt_array(np.ascontiguousarray(array)) for name, array in arrays.items()}
    sizes = {"m": rows, "n": length, "nnz": values.size}
    return SparseTensor.from_checked(Storage(described, sizes, owned))
