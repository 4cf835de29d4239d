"""`prune`: the largest elements of a matrix, in a sparse format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gossamer_formats.checks.storage_checks import VALUE_DTYPES, require_dtype
from gossamer_formats.conversion.target.conversion_target import conversion_target
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.memory.ownership import adopt_array
from gossamer_formats.pruning.largest import are_largest, ranks_in_groups
from gossamer_formats.storage import Array, Storage
from gossamer_formats.tensor import SparseTensor
from gossamer_ir.errors import FormatError
from gossamer_ir.support.counted import counted
from gossamer_ir.support.typed_calls import typed


class _Elements(NamedTuple):
    """The nonzeros of a matrix, sorted by row and column, and their magnitudes."""

    shape: tuple[int, ...]
    rows: Array
    columns: Array
    values: Array

    @property
    def magnitudes(self) -> Array:
        return np.abs(self.values)


@typed
def prune(
    matrix: Any, format: str, *, density: float | None = None, **parameters: int
) -> SparseTensor:
    """Return the elements of a matrix with the largest magnitudes, in a format.

    `matrix` is a dense array, a SciPy matrix or a `SparseTensor`. Of equal magnitudes, the first in the order
    of rows and columns is kept. The formats are:

    * `csr`: `density` times the number of elements of the matrix are kept, wherever they are;
    * `bsr`: `density` times the number of blocks are kept, those with the largest sums of squares;
    * `n_m`: `slots` elements of each `group` columns of a row;
    * `v_n_m`: in each `group` columns of `rows` rows, `slots` elements of each row, in the `chosen` columns
      with the largest sums of magnitudes.

    Numbers of elements are rounded to the nearest. Zeros are never kept. Raises `FormatError`: `format.prune`
    (a format without a rule, a density that is missing, out of range or not needed), `format.prune.nan` (an
    element is not a number), `format.parameter`, `format.parameter.missing`, `format.parameter.value`,
    `format.dimensions`, `format.dtype`.

    >>> weights = np.array([[4.0, -1.0, 2.0, 3.0], [0.5, -0.5, 0.5, 0.0]])
    >>> prune(weights, "csr", density=0.25).toarray()
    array([[4., 0., 0., 3.],
           [0., 0., 0., 0.]])
    >>> prune(weights, "n_m", slots=2, group=4).toarray()
    array([[ 4. ,  0. ,  0. ,  3. ],
           [ 0.5, -0.5,  0. ,  0. ]])
    """
    if format not in _RULES:
        raise FormatError(
            "format.prune",
            f"There is no rule to prune a matrix to the format '{format}'; expected one of "
            f"{', '.join(_RULES)}.",
            hint="Prune to csr, and convert the result.",
        )
    rule, needs_density = _RULES[format]
    target = conversion_target(format, parameters, rank=2)
    _require_density(format, density, is_needed=needs_density)
    elements = _elements(matrix)
    kept = rule(elements, 1.0 if density is None else density, dict(target.parameters))
    sizes: dict[str, Any] = dict(parameters)
    return _stored(elements, kept).asformat(format, **sizes)


def _require_density(format: str, density: float | None, *, is_needed: bool) -> None:
    if is_needed and density is None:
        raise FormatError(
            "format.prune",
            f"Pruning to '{format}' needs the density, the share of elements that are kept.",
            hint="Pass density=..., a number from 0 to 1.",
        )
    if density is not None and not is_needed:
        raise FormatError(
            "format.prune",
            f"The sizes of the format '{format}' are its density; expected no other.",
        )
    if density is not None and not 0 <= density <= 1:
        raise FormatError(
            "format.prune", f"The density is {density!r}; expected a number from 0 to 1."
        )


def _elements(matrix: Any) -> _Elements:
    """Return the nonzeros of a matrix. Raises `FormatError`."""
    if isinstance(matrix, np.ndarray):
        _require_matrix(matrix.ndim)
        require_dtype("matrix", matrix, VALUE_DTYPES)
        rows, columns = np.nonzero(matrix)
        elements = _Elements(matrix.shape, rows, columns, matrix[rows, columns])
    else:
        tensor = matrix if isinstance(matrix, SparseTensor) else SparseTensor(matrix)
        _require_matrix(tensor.ndim)
        arrays = tensor.asformat("csr", zeros="drop").arrays
        rows = np.repeat(np.arange(tensor.shape[0]), np.diff(arrays["indptr"]))
        columns = arrays["indices"].astype(np.int64)
        elements = _Elements(tensor.shape, rows, columns, arrays["data"])
    invalid = np.isnan(elements.values)
    if invalid.any():
        at = int(np.argmax(invalid))
        raise FormatError(
            "format.prune.nan",
            f"The element in row {elements.rows[at]} and column {elements.columns[at]} is nan; expected "
            "numbers, which can be compared.",
        )
    return elements


def _require_matrix(dimensions: int) -> None:
    if dimensions != 2:
        raise FormatError(
            "format.dimensions", f"The array has {counted(dimensions, 'dimension')}; expected 2."
        )


def _unstructured(elements: _Elements, density: float, _sizes: dict[str, int]) -> Array:
    rows, columns = elements.shape
    return are_largest(elements.magnitudes, round(density * rows * columns))


def _blocks(elements: _Elements, density: float, sizes: dict[str, int]) -> Array:
    height, width = sizes["block_rows"], sizes["block_columns"]
    rows, columns = (-(-elements.shape[0] // height), -(-elements.shape[1] // width))
    numbers = elements.rows // height * columns + elements.columns // width
    blocks, of_block = np.unique(numbers, return_inverse=True)
    # In float64, where squares of float32 are finite.
    squares = np.bincount(
        of_block, weights=elements.values.astype(np.float64) ** 2, minlength=blocks.size
    )
    kept: Array = are_largest(squares, round(density * rows * columns))[of_block]
    return kept


def _of_groups(elements: _Elements, _density: float, sizes: dict[str, int]) -> Array:
    groups = _group_numbers(elements.rows, elements.columns, elements.shape[1], sizes["group"])
    kept: Array = ranks_in_groups(groups, elements.magnitudes) < sizes["slots"]
    return kept


def _of_chosen_columns(elements: _Elements, _density: float, sizes: dict[str, int]) -> Array:
    length = max(elements.shape[1], 1)
    numbers = elements.rows // sizes["rows"] * length + elements.columns
    places, of_place = np.unique(numbers, return_inverse=True)
    sums = np.bincount(
        of_place, weights=elements.magnitudes.astype(np.float64), minlength=places.size
    )
    groups = _group_numbers(places // length, places % length, length, sizes["group"])
    is_chosen = ranks_in_groups(groups, sums) < sizes["chosen"]
    kept: Array = is_chosen[of_place]
    inside = _Elements(
        elements.shape, elements.rows[kept], elements.columns[kept], elements.values[kept]
    )
    kept[kept] = _of_groups(inside, 1.0, sizes)
    return kept


def _group_numbers(rows: Array, columns: Array, length: int, group: int) -> Array:
    """Return the number of each element's group of columns, counted over all rows."""
    numbers: Array = rows * -(-length // group) + columns // group
    return numbers


_RULES: dict[str, tuple[Callable[[_Elements, float, dict[str, int]], Array], bool]] = {
    "csr": (_unstructured, True),
    "bsr": (_blocks, True),
    "n_m": (_of_groups, False),
    "v_n_m": (_of_chosen_columns, False),
}
"""For each format, the function that returns which elements are kept, and whether it needs a density."""


def _stored(elements: _Elements, kept: Array) -> SparseTensor:
    """Return the elements that are kept in CSR."""
    rows, length = elements.shape
    columns, values = elements.columns[kept], elements.values[kept]
    dtype = "int32" if max(values.size, length) <= np.iinfo(np.int32).max else "int64"
    offsets = np.zeros(rows + 1, dtype)
    np.cumsum(np.bincount(elements.rows[kept], minlength=rows), out=offsets[1:])
    arrays = {"indptr": offsets, "indices": columns.astype(dtype), "data": values}
    described = csr(values.dtype.name, indptr_dtype=dtype, indices_dtype=dtype)
    owned = {name: adopt_array(np.ascontiguousarray(array)) for name, array in arrays.items()}
    sizes = {"m": rows, "n": length, "nnz": values.size}
    return SparseTensor.of_checked(Storage(described, sizes, owned))
