"""Formats whose coordinates are computed by index maps (bands, diagonals, slices), at every stage and
natively, against dense NumPy in float64.
"""

from __future__ import annotations

import numpy as np
import pytest
from masks import KINDS, data, nothing, offsets
from script_runs import assert_everywhere, call, guards, kernels, program

from gossamer_formats.descriptions.dia import dia
from gossamer_formats.descriptions.sell import sell
from gossamer_ir.core.build import index_var
from gossamer_ir.errors import UserError
from gossamer_ir.nodes import Binary, Load, SparseBuffer, Store
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify.formats import diagnostics_of_format

SHAPES = [(0, 0), (0, 4), (4, 0), (1, 1), (5, 5), (3, 7), (7, 3)]


def exact(module, arguments, expected):
    y = nothing(expected.shape, arguments["x"].dtype)
    assert_everywhere(module, arguments | {"y": y}, y=expected)


# --- bands and constant diagonals


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("band", [(0, 0), (1, 1), (0, 2), (3, 0), (9, 9)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_band_times_a_matrix(shape, band, dtype):
    (m, n), (lower, upper), feat = shape, band, 3
    a, x = data((m, lower + upper + 1), dtype), data((n, feat), dtype, 3)
    whole = np.zeros(shape)
    for row, at in np.ndindex(a.shape):
        if 0 <= row + at - lower < n:
            whole[row, row + at - lower] = a[row, at]
        else:
            a[row, at] = np.nan
    arguments = {
        "a": a, "x": x, "m": m, "n": n, "lower": lower, "upper": upper, "feat": feat,
    }  # fmt: skip
    module = program("banded_spmm", dtype=dtype)
    assert guards(module) == []
    exact(module, arguments, whole @ x.astype(np.float64))


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 7), (7, 3), (4, 0), (0, 4)])
@pytest.mark.parametrize("feat", [0, 1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constant_diagonals_times_a_matrix(shape, feat, dtype):
    m, n = shape
    a, x = data(m + n - 1, dtype), data((n, feat), dtype, 3)
    rows, columns = np.indices(shape)
    whole = a.astype(np.float64)[rows - columns + n - 1]
    arguments = {"a": a, "x": x, "m": m, "n": n, "feat": feat}
    module = program("toeplitz_spmm", dtype=dtype)
    assert guards(module) == []
    exact(module, arguments, whole @ x.astype(np.float64))


# --- diagonals

OFFSETS = {
    "none": [],
    "the main one": [0],
    "in any order": [2, -1, 0],
    "the corners": [-6, 6, -4, 4],
    "outside": [-50, 50],
    "all": range(-7, 8),
    "one twice": [1, 1],
}


@pytest.mark.parametrize("spelling", ["", "_by_rows"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OFFSETS)
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_diagonals_times_a_vector(spelling, shape, name, dtype, index):
    (m, n), places = shape, np.array(OFFSETS[name], index)
    stored, x = data((len(places), n), dtype), data(n, dtype, 3)
    whole = np.zeros(shape)
    for at, column in np.ndindex(stored.shape):
        row = column - places[at]
        if 0 <= row < m:
            whole[row, column] += stored[at, column]
        else:
            stored[at, column] = np.inf
    module = program(f"dia_spmv{spelling}", dtype=dtype, dtypes={"OFFSETS": index})
    arguments = {
        "data": stored, "offsets": places, "x": x, "m": m, "n": n, "diagonals": len(places),
    }  # fmt: skip
    wraps = index == "int64"
    assert bool(guards(module)) == wraps, "the difference to an offset of 64 bits may wrap around"
    exact(module, arguments, whole @ x.astype(np.float64))


# --- slices

MASKS = {
    "no rows": np.zeros((0, 4), bool),
    "no columns": np.zeros((5, 0), bool),
    "no elements": np.zeros((5, 4), bool),
    "empty at both ends": np.pad(np.eye(4, dtype=bool), ((2, 2), (0, 3))),
    "a dense row": np.arange(9)[:, None] * np.ones(17, int) % 9 == 4,
    "all": np.ones((6, 5), bool),
    "checkered": np.indices((7, 6)).sum(axis=0) % 2 == 0,
}


def sliced(whole, height, *, dtype, index):
    """A matrix in slices of `height` rows, the longest rows first; unused slots hold NaN."""
    m, n = whole.shape
    order = np.argsort(-(whole != 0).sum(axis=1), kind="stable")
    slices = -(-m // height)
    rows = np.zeros(slices * height, index)
    rows[:m] = order
    columns = [np.flatnonzero(whole[row]) for row in order]
    columns += [np.empty(0, int)] * (len(rows) - m)
    widths = [
        max(map(len, columns[first : first + height])) for first in range(0, len(rows), height)
    ]
    indptr = offsets(widths, index)
    indices = np.full((indptr[-1], height), n, index)
    stored = np.full(indices.shape, np.nan, dtype)
    for number, row_columns in enumerate(columns):
        first, lane = indptr[number // height], number % height
        indices[first : first + len(row_columns), lane] = row_columns
        stored[first : first + len(row_columns), lane] = whole[rows[number], row_columns]
    return {
        "data": stored[..., None], "indptr": indptr, "indices": indices[..., None],
        "rows": rows.reshape(-1, height), "m": m, "n": n, "slices": slices, "height": height,
        "longest": max(widths, default=0), "slots": int(indptr[-1]),
    }  # fmt: skip


def sliced_case(mask, height, *, dtype, index):
    whole = np.where(mask, np.arange(mask.size).reshape(mask.shape) % 7 + 1, 0)
    x = data(mask.shape[1], dtype, 3)
    module = program("sell_spmv", dtype=dtype, index=index, dtypes={"ROWS": index})
    arguments = sliced(whole, height, dtype=dtype, index=index)
    return module, arguments | {"x": x}, whole @ x.astype(np.float64)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("height", [1, 3, 4, 8])
@pytest.mark.parametrize(("dtype", "index"), KINDS)
def test_slices_times_a_vector(name, height, dtype, index):
    module, arguments, expected = sliced_case(MASKS[name], height, dtype=dtype, index=index)
    assert guards(module) == []
    exact(module, arguments, expected)


def test_rows_of_slices_that_the_matrix_does_not_have_are_refused():
    module, arguments, expected = sliced_case(MASKS["all"], 4, dtype="float32", index="int32")
    arguments |= {"y": np.zeros(expected.shape, "float32")}
    arguments["rows"][1, 2] = 6
    for kernel in kernels(module):
        with pytest.raises(UserError, match="'rows' is 6; expected a value from 0 to 5"):
            call(kernel, arguments)


# --- scripts and descriptions


def shape_of(function, buffer):
    lengths = {axis.name: axis.length for axis in function.axes}
    return tuple(lengths[axis] for axis in buffer.axes)


@pytest.mark.parametrize(("description", "name"), [(dia(), "dia_spmv"), (sell(), "sell_spmv")])
def test_a_product_is_what_the_map_of_the_description_says(description, name):
    assert diagnostics_of_format(description) == ()
    (function,) = program(name).functions
    assert set(description.params) <= set(function.params)
    assert [axis for axis in function.axes if axis in description.axes] == [*description.axes]
    buffers = {buffer.name: buffer for buffer in function.buffers}
    assert buffers["A"] == description.buffer
    for array in description.index_arrays:
        shared = buffers[array.name]
        assert isinstance(shared, SparseBuffer)
        assert (shape_of(function, shared), shared.dtype, shared.handle) == (
            array.shape,
            array.dtype,
            array.handle,
        )
    row, column = description.map.results
    element = Load("A", tuple(map(index_var, description.map.vars)), "float32")
    term = Binary("mul", element, Load("X", (column,), "float32"))
    product = Store("Y", (row,), Binary("add", Load("Y", (row,), "float32"), term))
    assert product in walk(function.body[-1])
