"""Conversions between all formats, compared with the dense array, and what they refuse."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from format_conversions import TILES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreted_kernel import InterpretedKernel
from scipy import sparse

from gossamer_formats import (
    Storage,
    convert,
    format_names,
    from_arrays,
    from_scipy,
    require_valid_storage,
)
from gossamer_formats.conversion import convert_storage as convert_module
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements
from gossamer_ir.errors import FormatError
from gossamer_ir.script import parse_format

SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MATRIX_FORMATS = [name for name in format_names() if name != "ell3d"]
PARAMETERS = {
    "bsr": ("block_rows", "block_columns"),
    "blocked_sell": ("block_rows", "block_columns", "height", "sigma"),
    "dbsr": ("block_rows", "block_columns"),
    "ell_rows": ("width",),
    "padded_csr": ("width",),
    "row_groups": ("height",),
    "sell": ("height", "sigma"),
    "sliced_dia": ("height",),
    "sr_bcrs": ("strip", "width"),
    "tiled_csr": ("tile_columns",),
}
"""The parameters that may have any value."""


@st.composite
def tensors(draw, ndim=2):
    """Tensors in COO, sorted, with some zero values."""
    shape = draw(st.tuples(*[st.integers(0, 7)] * ndim))
    cells = list(itertools.product(*map(range, shape)))
    chosen = sorted(draw(st.lists(st.sampled_from(cells), unique=True))) if cells else []
    values = draw(
        st.lists(
            st.sampled_from([0.0, 1.5, -2.0, np.inf]), min_size=len(chosen), max_size=len(chosen)
        )
    )
    coordinates = np.array(chosen, np.int64).reshape(-1, ndim)
    arrays = {f"indices_{number}": coordinates[:, number] for number in range(ndim)}
    return from_arrays("coo", shape, data=np.array(values, np.float32), **arrays)


def parameters_of(draw, name, tensor):
    chosen = {parameter: draw(st.integers(1, 5)) for parameter in PARAMETERS.get(name, ())}
    if name == "n_m":
        group = draw(st.integers(1, 6))
        return {"group": group, "slots": group}
    if name == "v_n_m":
        group = draw(st.integers(1, 6))
        return {"rows": draw(st.integers(1, 4)), "group": group, "chosen": group, "slots": group}
    if name == "ell3d":
        return {"group_rows": draw(st.integers(1, 4)), "width": draw(st.integers(1, 4))}
    return chosen


def zeros_of(tensor):
    """The number of zeros among the elements of a tensor in COO."""
    return np.count_nonzero(tensor.storage.values == 0)


def check_conversion(draw, source, name, dense, zeros):
    """Converts, and checks arrays, values, permutation and coordinates of the result. `zeros` is the number
    of zeros among the elements of the source, None if it also stores what is not an element. Returns the
    result and this number for it."""
    tensor, permutation = convert(source, name, **parameters_of(draw, name, source))
    require_valid_storage(Storage(tensor.description, dict(tensor.sizes), dict(tensor.arrays)))
    assert tensor.shape == source.shape
    np.testing.assert_array_equal(tensor.toarray(), dense)
    values = np.append(source.storage.values, np.float32(0.0))
    np.testing.assert_array_equal(tensor.storage.values, values[permutation])
    if not stores_only_elements(tensor.description):
        return tensor, None
    places = permutation[permutation >= 0]
    stored_zeros = np.count_nonzero(source.storage.values[places] == 0)
    if zeros is not None:
        assert places.size == np.unique(places).size
        assert stored_zeros == zeros
    return tensor, stored_zeros


@pytest.mark.parametrize("first", MATRIX_FORMATS)
@SETTINGS
@given(data=st.data())
@pytest.mark.usefixtures("converted_by")
def test_every_pair_of_formats_is_converted(first, data):
    source = data.draw(tensors())
    second = data.draw(st.sampled_from(MATRIX_FORMATS))
    dense = source.toarray()
    between, zeros = check_conversion(data.draw, source, first, dense, zeros_of(source))
    result, zeros = check_conversion(data.draw, between, second, dense, zeros)
    check_conversion(data.draw, result, "csr", dense, zeros)


@pytest.mark.parametrize("first", ["coo", "csf", "ell3d"])
@SETTINGS
@given(data=st.data())
@pytest.mark.usefixtures("converted_by")
def test_tensors_of_three_dimensions_are_converted(first, data):
    source = data.draw(tensors(ndim=3))
    second = data.draw(st.sampled_from(["coo", "csf", "ell3d"]))
    dense = source.toarray()
    between, zeros = check_conversion(data.draw, source, first, dense, zeros_of(source))
    check_conversion(data.draw, between, second, dense, zeros)


@st.composite
def lists_of_elements(draw):
    """Tensors in COO whose elements may have any order and be repeated."""
    shape = draw(st.sampled_from([(1, 7), (5, 1), (6, 5), (3, 2, 4), (2, 2, 2, 3)]))
    cells = draw(st.lists(st.tuples(*[st.integers(0, size - 1) for size in shape]), max_size=25))
    dtype = draw(st.sampled_from([np.int32, np.int64]))
    coordinates = np.array(cells, dtype).reshape(-1, len(shape))
    values = draw(st.lists(st.integers(-2, 2), min_size=len(cells), max_size=len(cells)))
    arrays = {f"indices_{number}": coordinates[:, number] for number in range(len(shape))}
    return from_arrays("coo", shape, data=np.array(values, np.float64), **arrays)


@SETTINGS
@given(data=st.data())
def test_repeated_elements_in_any_order_are_converted_with_all_options(data):
    tensor = data.draw(lists_of_elements())
    names = {2: MATRIX_FORMATS, 3: ["coo", "csf", "ell3d"]}.get(tensor.ndim, ["coo", "csf"])
    name = data.draw(st.sampled_from(names))
    options = {
        "duplicates": data.draw(st.sampled_from(["sum", "keep", "error"])),
        "zeros": data.draw(st.sampled_from([None, "keep", "drop"])),
        "index_dtype": data.draw(st.sampled_from([None, "int32", "int64"])),
        **parameters_of(data.draw, name, tensor),
    }
    expected = conversion_or_error(tensor, name, options)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(convert_module, "MIN_COMPILED", 0)
        patched.setattr(convert_module, "find_compiler", lambda: InterpretedKernel)
        outcome = conversion_or_error(tensor, name, options)
    if isinstance(expected, str):
        assert outcome == expected
        return
    for result in (expected.tensor, outcome.tensor):
        np.testing.assert_array_equal(result.toarray(), dense_sums(tensor))
        if result.ndim == 2:
            np.testing.assert_array_equal(result.T.toarray(), dense_sums(tensor).T)
    assert outcome.tensor.description == expected.tensor.description
    for handle, array in expected.tensor.arrays.items():
        np.testing.assert_array_equal(outcome.tensor.arrays[handle], array, strict=True)
    np.testing.assert_array_equal(outcome.permutation, expected.permutation)
    if options["zeros"] == "drop" and options["duplicates"] == "sum":
        assert np.all(convert(expected.tensor, "coo").tensor.storage.values)


@pytest.mark.parametrize("name", ["bitmask", "csc", "csr", "ell"])
def test_zeros_that_are_dropped_need_not_be_in_the_order_of_the_others(name, monkeypatch):
    """The zero of row 0 is visited after the element of row 1, whose row must not begin with it."""
    rows, columns = np.array([1, 0, 2]), np.array([1, 0, 2])
    tensor = from_arrays("coo", (4, 3), data=[1.0, 0.0, 2.0], indices_0=rows, indices_1=columns)
    monkeypatch.setattr(convert_module, "MIN_COMPILED", 0)
    monkeypatch.setattr(convert_module, "find_compiler", lambda: InterpretedKernel)
    result = convert(tensor, name, zeros="drop").tensor
    np.testing.assert_array_equal(result.toarray(), dense_sums(tensor))


def conversion_or_error(tensor, name, options):
    """Returns a conversion, or the code of the error that it raises."""
    try:
        return convert(tensor, name, **options)
    except FormatError as error:
        return error.code


def dense_sums(tensor):
    """Returns the sums of elements in COO, found without the package."""
    dense = np.zeros(tensor.shape)
    cells = tuple(tensor.arrays[f"indices_{number}"] for number in range(tensor.ndim))
    np.add.at(dense, cells, tensor.arrays["data"])
    return dense


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("csr", {}),
        ("csc", {}),
        ("coo", {}),
        ("dia", {}),
        ("bsr", {"block_rows": 4, "block_columns": 2}),
    ],
)
@pytest.mark.usefixtures("converted_by")
def test_the_arrays_are_those_of_scipy(name, parameters):
    rng = np.random.default_rng(5)
    matrix = sparse.random_array((40, 60), density=0.1, format="csr", rng=rng)
    tensor = from_scipy(matrix).asformat(name, **parameters)
    expected = matrix.tobsr(blocksize=(4, 2)) if name == "bsr" else matrix.asformat(name)
    if name == "bsr":
        expected.sort_indices()
    names = {
        "csr": ("indptr", "indices"),
        "bsr": ("indptr", "indices"),
        "csc": ("indptr", "indices"),
    }
    if name == "coo":
        pairs = [("indices_0", expected.row), ("indices_1", expected.col)]
    elif name == "dia":
        pairs = [("offsets", expected.offsets)]
        # SciPy stores each diagonal up to its last column only.
        width = expected.data.shape[1]
        data = tensor.arrays["data"].reshape(-1, 60)
        np.testing.assert_array_equal(data[:, :width], expected.data)
        assert not data[:, width:].any()
    else:
        pairs = [(array, getattr(expected, array)) for array in names[name]]
        np.testing.assert_array_equal(tensor.arrays["data"], expected.data.ravel())
    for array, scipy_array in pairs:
        np.testing.assert_array_equal(tensor.arrays[array], scipy_array)


@pytest.mark.usefixtures("converted_by")
def test_a_description_of_the_user_is_converted_with_symbolic_block_sizes():
    rng = np.random.default_rng(3)
    matrix = sparse.random_array((30, 21), density=0.2, format="csr", rng=rng)
    tensor = from_scipy(matrix)
    for side in (1, 4, 50):
        tiled = tensor.asformat(parse_format(TILES.format(shape=", shape=(m, n)")), side=side)
        assert tiled.sizes["side"] == side
        np.testing.assert_array_equal(tiled.toarray(), matrix.toarray())
        np.testing.assert_array_equal(tiled.asformat("csr").arrays["data"], matrix.data)


TOO_LARGE = [
    ("sell", {"height": 10**9}),
    ("sliced_dia", {"height": 10**9}),
    ("ell_rows", {"width": 2**31 - 1}),
    ("bsr", {"block_rows": 2**30, "block_columns": 2**30}),
]


def require_refused(name, parameters):
    matrix = from_scipy(sparse.random_array((40, 30), density=0.1, rng=np.random.default_rng(2)))
    for converted in (partial(convert, matrix), matrix.asformat):
        with pytest.raises(FormatError) as caught:
            converted(name, **parameters)
        assert caught.value.code == "format.memory"
        assert all(f"{name}={value}" in str(caught.value) for name, value in parameters.items())


@pytest.mark.parametrize(("name", "parameters"), TOO_LARGE)
def test_a_result_that_does_not_fit_in_memory_is_refused_with_its_parameters(name, parameters):
    require_refused(name, parameters)


# Kernels for "sell" need the order of all rows of the last slice first, which would fit.
@pytest.mark.parametrize(("name", "parameters"), TOO_LARGE[1:])
def test_kernels_do_not_begin_with_what_does_not_fit_in_memory(name, parameters, monkeypatch):
    monkeypatch.setattr(convert_module, "MIN_COMPILED", 0)
    monkeypatch.setattr(convert_module, "find_compiler", lambda: InterpretedKernel)
    require_refused(name, parameters)
