"""Conversions between all formats, compared with the dense array, and what they refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreted_kernel import InterpretedKernel
from msgspec.structs import replace
from scipy import sparse

from gossamer_formats import (
    Storage,
    check_storage,
    convert,
    format_named,
    format_names,
    from_arrays,
    from_scipy,
)
from gossamer_formats.conversion import convert_storage as convert_module
from gossamer_formats.conversion.convert_storage import convert_storage
from gossamer_formats.conversion.target.conversion_target import (
    ConversionTarget,
    conversion_target,
)
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements
from gossamer_ir.errors import FormatError, UnsupportedError
from gossamer_ir.script import parse_format

SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(params=["numpy", "kernels"])
def converted_by(request, monkeypatch):
    """Who converts: NumPy, or kernels, which the reference interpreter runs here."""
    if request.param == "kernels":
        monkeypatch.setattr(convert_module, "MIN_COMPILED", 0)
        monkeypatch.setattr(convert_module, "find_compiler", lambda: InterpretedKernel)


MATRIX_FORMATS = [name for name in format_names() if name != "ell3d"]
PARAMETERS = {
    "bsr": ("block_rows", "block_columns"),
    "blocked_sell": ("block_rows", "block_columns", "height", "sigma"),
    "dbsr": ("block_rows", "block_columns"),
    "ell_rows": ("width",),
    "padded_csr": ("width",),
    "row_groups": ("height",),
    "sell": ("height", "sigma"),
    "sr_bcrs": ("strip", "width"),
    "tiled_csr": ("tile_columns",),
}
"""The parameters that may have any value."""


@st.composite
def tensors(draw, rank=2):
    """Tensors in COO, sorted, with some zero values."""
    shape = draw(st.tuples(*[st.integers(0, 7)] * rank))
    cells = list(itertools.product(*map(range, shape)))
    chosen = sorted(draw(st.lists(st.sampled_from(cells), unique=True))) if cells else []
    values = draw(
        st.lists(
            st.sampled_from([0.0, 1.5, -2.0, np.inf]), min_size=len(chosen), max_size=len(chosen)
        )
    )
    coordinates = np.array(chosen, np.int64).reshape(-1, rank)
    arrays = {f"indices_{number}": coordinates[:, number] for number in range(rank)}
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


def check_conversion(draw, source, name, dense):
    """Converts, and checks arrays, values, permutation and coordinates of the result."""
    tensor, permutation = convert(source, name, **parameters_of(draw, name, source))
    check_storage(Storage(tensor.description, dict(tensor.sizes), dict(tensor.arrays)))
    assert tensor.shape == source.shape
    np.testing.assert_array_equal(tensor.toarray(), dense)
    values = np.append(source.storage.values, np.float32(0.0))
    np.testing.assert_array_equal(tensor.storage.values, values[permutation])
    if stores_only_elements(source.description) and stores_only_elements(tensor.description):
        assert np.count_nonzero(permutation >= 0) == np.unique(permutation[permutation >= 0]).size
        zeros = np.count_nonzero(source.storage.values[permutation[permutation >= 0]] == 0)
        assert zeros == np.count_nonzero(elements_values(source) == 0)
    return tensor


def elements_values(tensor):
    return convert(tensor, "coo").tensor.storage.values


@pytest.mark.parametrize("first", MATRIX_FORMATS)
@SETTINGS
@given(data=st.data())
@pytest.mark.usefixtures("converted_by")
def test_every_pair_of_formats_is_converted(first, data):
    source = data.draw(tensors())
    second = data.draw(st.sampled_from(MATRIX_FORMATS))
    dense = source.toarray()
    between = check_conversion(data.draw, source, first, dense)
    check_conversion(data.draw, check_conversion(data.draw, between, second, dense), "csr", dense)


@pytest.mark.parametrize("first", ["coo", "csf", "ell3d"])
@SETTINGS
@given(data=st.data())
@pytest.mark.usefixtures("converted_by")
def test_tensors_of_three_dimensions_are_converted(first, data):
    source = data.draw(tensors(rank=3))
    second = data.draw(st.sampled_from(["coo", "csf", "ell3d"]))
    dense = source.toarray()
    check_conversion(data.draw, check_conversion(data.draw, source, first, dense), second, dense)


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
    for array, of_scipy in pairs:
        np.testing.assert_array_equal(tensor.arrays[array], of_scipy)


def with_duplicates():
    arrays = {"indptr": np.array([0, 3, 4]), "indices": np.array([1, 1, 0, 2])}
    return from_arrays("csr", (2, 3), data=np.array([1.0, 2.0, 4.0, 8.0]), **arrays)


@pytest.mark.usefixtures("converted_by")
def test_duplicates_are_added():
    tensor, permutation = convert(with_duplicates(), "coo")
    assert tensor.arrays["data"].tolist() == [4.0, 3.0, 8.0]
    assert permutation is None


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "dcsr", "ell", "padded_csr", "sell", "csf"])
@pytest.mark.usefixtures("converted_by")
def test_duplicates_are_kept(name):
    tensor, permutation = convert(with_duplicates(), name, duplicates="keep", zeros="keep")
    assert sorted(tensor.arrays["data"][permutation >= 0]) == [1.0, 2.0, 4.0, 8.0]
    check_storage(tensor.storage)
    np.testing.assert_array_equal(tensor.toarray(), [[4, 3, 0], [0, 0, 8]])


def test_sums_of_duplicates_that_are_zero_are_dropped_with_the_zeros():
    rows, values = np.array([0, 0, 1]), np.array([2.0, -2.0, 5.0])
    tensor = from_arrays("coo", (2, 2), data=values, indices_0=rows, indices_1=rows)
    assert tensor.asformat("csr").arrays["data"].tolist() == [0.0, 5.0]
    assert tensor.asformat("csr", zeros="drop").arrays["data"].tolist() == [5.0]


@pytest.mark.parametrize("option", ["duplicates", "zeros"])
def test_an_unknown_word_for_an_option_is_refused(option):
    with pytest.raises(FormatError, match="expected one of") as caught:
        with_duplicates().asformat("csr", **{option: "all"})
    assert caught.value.code == "format.parameter.value"


def test_sizes_may_be_integers_of_numpy():
    converted = with_duplicates().asformat("bsr", block_rows=np.int64(2), block_columns=np.int32(1))
    assert type(converted.sizes["block_rows"]) is int
    np.testing.assert_array_equal(converted.toarray(), with_duplicates().toarray())


@pytest.mark.parametrize(("name", "policy"), [("coo", "error"), ("dia", "keep")])
@pytest.mark.usefixtures("converted_by")
def test_duplicates_are_refused(name, policy):
    with pytest.raises(FormatError) as caught:
        convert(with_duplicates(), name, duplicates=policy)
    assert caught.value.code == "format.duplicate"


@pytest.mark.usefixtures("converted_by")
def test_zeros_are_kept_where_they_are_elements():
    arrays = {"indptr": np.array([0, 2]), "indices": np.array([0, 1])}
    tensor = from_arrays("csr", (1, 2), data=np.array([0.0, 3.0]), **arrays)
    assert tensor.asformat("coo").nnz == 2
    assert tensor.asformat("coo", zeros="drop").nnz == 1
    blocks = tensor.asformat("bsr", block_rows=2, block_columns=2)
    assert blocks.asformat("coo").nnz == 1
    # The second row of the block is beyond the shape.
    assert blocks.asformat("coo", zeros="keep").nnz == 2


@pytest.mark.usefixtures("converted_by")
def test_indices_have_the_dtype_that_is_asked_for():
    tensor = from_scipy(sparse.eye_array(3))
    assert tensor.asformat("csc").arrays["indices"].dtype == np.int32
    assert tensor.asformat("csc", index_dtype="int64").arrays["indices"].dtype == np.int64
    large = from_arrays(
        "coo", (1, 2**40), indices_0=np.zeros(1, int), indices_1=np.array([2**35]), data=np.ones(1)
    )
    assert large.asformat("csr").arrays["indices"].dtype == np.int64


@pytest.mark.usefixtures("converted_by")
def test_an_index_that_its_dtype_cannot_represent_is_refused():
    tensor = from_scipy(sparse.eye_array(600))
    assert tensor.asformat("n_m", group=255).arrays["indices"].max() == 255
    for parameters in ({"group": 256}, {"group": 300, "slots": 1}):
        with pytest.raises(FormatError, match="uint8 cannot represent") as caught:
            tensor.asformat("n_m", **parameters)
        assert caught.value.code == "format.index_dtype"
    wide = from_arrays(
        "coo", (1, 2**40), indices_0=np.zeros(1, int), indices_1=np.array([2**35]), data=np.ones(1)
    )
    with pytest.raises(FormatError, match="int32 cannot represent"):
        wide.asformat("csr", index_dtype="int32")


@pytest.mark.usefixtures("converted_by")
def test_negative_indices_are_as_wide_as_they_need():
    arrays = {"indices_0": np.array([2999999999]), "indices_1": np.zeros(1, int)}
    tensor = from_arrays("coo", (3 * 10**9, 2), data=np.ones(1), **arrays)
    diagonals = tensor.asformat("dia")
    assert diagonals.arrays["offsets"].tolist() == [-2999999999]
    assert diagonals.asformat("coo").arrays["indices_0"].tolist() == [2999999999]
    with pytest.raises(FormatError, match="int32 cannot represent"):
        tensor.asformat("dia", index_dtype="int32")


ORDERED = {
    "an array that is none": ("rows", lambda counts, _: np.arange(counts.size)),
    "contents without a bound": ("OFFSETS", lambda counts, _: counts),
    "contents that are left out": ("ROWS", lambda counts, _: np.arange(1)),
    "contents that are there twice": (
        "ROWS",
        lambda counts, _: np.arange(2 * counts.size) % counts.size,
    ),
}


@pytest.mark.parametrize("name", ["row_groups", "sell"])
@pytest.mark.parametrize("height", [1, 2, 3])
@pytest.mark.usefixtures("converted_by")
def test_rows_are_stored_in_the_order_that_is_given(name, height):
    dense = np.arange(15.0).reshape(5, 3) % 4
    tensor = convert(from_scipy(sparse.csr_array(dense)), name, height=height, order=ORDER).tensor
    assert tensor.arrays["rows"][:5].tolist() == ORDER.tolist()
    assert np.array_equal(tensor.toarray(), dense)


ORDER = np.array([3, 0, 4, 2, 1])
NO_ORDERS = {
    "too few": ("sell", ORDER[:4], "4 values is not a permutation of the numbers from 0 to 4"),
    "one twice": ("row_groups", np.array([3, 0, 4, 2, 3]), "is not a permutation"),
    "one too large": ("row_groups", ORDER + 1, "is not a permutation"),
    "negative numbers": ("row_groups", ORDER - 1, "is not a permutation"),
    "numbers that are none": ("row_groups", ORDER / 2, "1 dimension of float64"),
    "several dimensions": ("row_groups", ORDER[None], "2 dimensions of int64"),
    "a format without an order": ("csr", ORDER, "has 0 index arrays; only a format with one"),
}


@pytest.mark.parametrize(("name", "order", "text"), NO_ORDERS.values(), ids=NO_ORDERS)
def test_rows_that_are_no_order_are_refused(name, order, text):
    tensor = from_scipy(sparse.csr_array(np.ones((5, 3))))
    with pytest.raises(FormatError, match=text) as caught:
        tensor.asformat(name, order=order)
    assert caught.value.code == "format.order"


@pytest.mark.parametrize(("buffer", "order"), ORDERED.values(), ids=ORDERED)
@pytest.mark.usefixtures("converted_by")
def test_orders_that_are_none_are_refused(buffer, order):
    name = "dia" if buffer == "OFFSETS" else "sell"
    target = ConversionTarget(format_named(name).describe(), {"height": 2}, {buffer: order})
    tensor = from_scipy(sparse.eye_array(3))
    sizes = {} if name == "dia" else {"height": 2}
    with pytest.raises(FormatError) as caught:
        convert_storage(tensor.storage, replace(target, parameters=sizes, memo={}))
    assert caught.value.code == "format.order"


@pytest.mark.usefixtures("converted_by")
def test_a_description_with_two_buffers_is_refused():
    second = '    B = T.sp.match_buffer(other, (JO, IO, II, JI), "float32")\n    T.sp.map'
    text = TILES.format(shape=", shape=(m, n)").replace("    T.sp.map", second)
    text = text.replace("data: T.handle", "data: T.handle, other: T.handle")
    with pytest.raises(UnsupportedError) as caught:
        from_scipy(sparse.eye_array(3)).asformat(parse_format(text), side=2)
    assert caught.value.code == "format.value_buffers"


@pytest.mark.parametrize("dtype", ["int8", "float32", "uint64"])
@pytest.mark.usefixtures("converted_by")
def test_indices_have_two_dtypes_only(dtype):
    with pytest.raises(FormatError, match="expected int32 or int64") as caught:
        from_scipy(sparse.eye_array(3)).asformat("csc", index_dtype=dtype)
    assert caught.value.code == "format.index_dtype"


@pytest.mark.usefixtures("converted_by")
def test_a_tensor_in_the_format_is_converted_if_more_is_asked_for():
    tensor = with_duplicates()
    assert tensor.asformat("csr") is tensor
    with pytest.raises(FormatError, match="more than once"):
        tensor.asformat("csr", duplicates="error")
    assert tensor.asformat("csr", index_dtype="int64").arrays["indices"].dtype == np.int64
    arrays = {"indptr": np.array([0, 2]), "indices": np.array([0, 1])}
    zero = from_arrays("csr", (1, 2), data=np.array([0.0, 3.0]), **arrays)
    assert zero.asformat("csr", zeros="drop").nnz == 1


@pytest.mark.usefixtures("converted_by")
def test_rows_of_sell_are_sorted_by_length_in_windows():
    matrix = sparse.csr_array(np.array([[1, 0], [1, 1], [0, 0], [1, 1], [1, 0]], np.float32))
    arrays = from_scipy(matrix).asformat("sell", height=2, sigma=4).arrays
    assert arrays["rows"].tolist() == [1, 3, 0, 2, 4, 5]
    assert arrays["indptr"].tolist() == [0, 2, 3, 4]


@pytest.mark.usefixtures("converted_by")
def test_more_elements_than_slots_are_refused_by_row_and_columns():
    matrix = sparse.csr_array(np.array([[1, 0, 0, 0], [1, 1, 0, 1]], np.float32))
    with pytest.raises(FormatError, match=r"3 elements: \(1, 0\), \(1, 1\), \(1, 3\)") as caught:
        from_scipy(matrix).asformat("n_m")
    assert caught.value.code == "format.width"


def test_small_tensors_are_converted_by_kernels_after_many_conversions(monkeypatch):
    compiled = []

    def compile(module):
        compiled.append(module)
        return InterpretedKernel(module)

    tensor = from_scipy(sparse.eye_array(5)).asformat("dcsr")
    monkeypatch.setattr(convert_module, "MIN_COMPILED", 12)
    monkeypatch.setattr(convert_module, "find_compiler", lambda: compile)
    # Other tests convert between these formats, too.
    conversion_target("ragged", {}, rank=2).memo.clear()
    for _ in range(2):
        assert tensor.asformat("ragged").arrays["indptr"].tolist() == [0, 1, 3, 6, 10, 15]
    assert not compiled
    assert tensor.asformat("ragged").arrays["indptr"].tolist() == [0, 1, 3, 6, 10, 15]
    assert compiled


TILES = """
@T.format
def tiles(
    data: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, tiles: T.int64, side: T.int64,
) -> None:
    JO = T.sp.dense_fixed((n + side - 1) // side)
    IO = T.sp.compressed_varied(JO, ((m + side - 1) // side, tiles), (indptr, indices), "int32")
    II = T.sp.dense_fixed(side)
    JI = T.sp.dense_fixed(side)
    A = T.sp.match_buffer(data, (JO, IO, II, JI), "float32")
    T.sp.map(lambda jo, io, ii, ji: (io * side + ii, jo * side + ji){shape})
"""


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


SQUARES = """
@T.format
def squares(data: T.handle, m: T.int64, n: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(data, (I, J), "float32")
    T.sp.map(lambda i, j: ({map}), shape=(m, n))
"""
TWO_VARIED = """
@T.format
def two(data: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64, a: T.int64, b: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (n, a), p, "int32")
    R = T.sp.dense_fixed(2)
    K = T.sp.dense_varied(R, (n, b), q, "int32")
    A = T.sp.match_buffer(data, (I, J, R, K), "float32")
    T.sp.map(lambda i, j, r, k: (i, j), shape=(m, n))
"""
SPREAD = (
    SQUARES.format(map="i, j")
    .replace("lambda i, j", "lambda i, j, k")
    .replace(
        "    A = T.sp.match_buffer(data, (I, J),",
        "    K = T.sp.dense_fixed(2)\n    A = T.sp.match_buffer(data, (I, J, K),",
    )
)
SHIFTED = """
@T.format
def shifted(data: T.handle, rows: T.handle, m: T.int64, n: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(data, (I, J), "float32")
    ROWS = T.match_buffer(rows, (m + 1,), "int32")
    T.sp.map(lambda i, j: (T.int64(ROWS[i + 1]), j), shape=(m, n))
"""
REPEATED = """
@T.format
def repeated(data: T.handle, offsets: T.handle, m: T.int64, n: T.int64, most: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    D = T.sp.dense_fixed(most)
    A = T.sp.match_buffer(data, (I, D), "float32")
    OFFSETS = T.match_buffer(offsets, (m, most), "int32")
    T.assume(distinct(OFFSETS))
    T.sp.map(lambda i, d: (i, i + T.int64(OFFSETS[i, d])), shape=(m, n))
"""
REFUSED = {
    "a name": ("rows", {}, "format.unknown"),
    "a missing parameter": ("bsr", {"block_rows": 2}, "format.parameter.missing"),
    "an unknown parameter": ("csr", {"width": 2}, "format.parameter"),
    "a parameter of zero": ("ell", {"width": 0}, "format.parameter.value"),
    "a parameter that is a float": ("ell", {"width": 2.0}, "format.parameter.value"),
    "a width that is too small": ("ell", {"width": 1}, "format.width"),
    "three dimensions": ("ell3d", {}, "format.dimensions"),
    "a map without shape": (parse_format(TILES.format(shape="")), {"side": 2}, "format.shape.undeclared"),
    "a size that is missing": (
        parse_format(TILES.format(shape=", shape=(m, n)")), {}, "format.parameter.missing",
    ),
    "a size that is none": (
        parse_format(TILES.format(shape=", shape=(m, n)")), {"sides": 2}, "format.parameter",
    ),
    "a map that is not affine": (parse_format(SQUARES.format(map="i * i, j")), {}, "format.inverse"),
    "a map that determines too little": (parse_format(SQUARES.format(map="i, i")), {}, "format.map"),
    "an axis that nothing determines": (parse_format(SPREAD), {}, "format.inverse"),
    "an array at an expression": (parse_format(SHIFTED), {}, "format.inverse"),
    "a map that does not reach an element": (
        parse_format(SQUARES.format(map="i, j + 1")), {}, "format.coordinate",
    ),
    "a map with gaps": (parse_format(SQUARES.format(map="i, 2 * j")), {}, "format.map"),
    "distinct contents in several places": (
        parse_format(REPEATED), {}, "format.distinct",
    ),
    "siblings that vary": (parse_format(TWO_VARIED), {}, "format.nesting"),
    "another shape": (
        parse_format(SQUARES.format(map="i, j").replace("shape=(m, n)", "shape=(m, n // 2 * 2)")),
        {"n": 3}, "format.shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("target", "parameters", "code"), REFUSED.values(), ids=REFUSED)
@pytest.mark.usefixtures("converted_by")
def test_impossible_conversions_are_refused(target, parameters, code):
    matrix = from_scipy(sparse.csr_array(np.array([[1, 1, 1], [0, 0, 1]], np.float32)))
    with pytest.raises((FormatError, UnsupportedError)) as caught:
        convert(matrix, target, **parameters)
    assert caught.value.code == code
