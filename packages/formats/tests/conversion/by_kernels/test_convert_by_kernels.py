"""Which conversions are kernels, and that these store what NumPy stores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from interpreted_kernel import InterpretedKernel
from scipy import sparse

from gossamer_formats import (
    SparseTensor,
    Storage,
    convert,
    csr,
    format_names,
    from_arrays,
    from_scipy,
)
from gossamer_formats.axis_order import with_order
from gossamer_formats.conversion.by_kernels import convert_by_kernels as module
from gossamer_formats.conversion.by_kernels.convert_by_kernels import convert_by_kernels
from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.by_kernels.results import append_in_parallel
from gossamer_formats.conversion.destination.conversion_destination import (
    Destination,
    conversion_destination,
)
from gossamer_formats.descriptions.bsr import bsr
from gossamer_formats.descriptions.coo import coo
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import For
from gossamer_ir.script import parse_format
from gossamer_ir.traversal.walk import walk

PARAMETERS = {
    "bitmask": {},
    "blocked_sell": {"block_rows": 3, "block_columns": 2, "height": 2, "sigma": 4},
    "bsr": {"block_rows": 3, "block_columns": 2},
    "coo": {},
    "csc": {},
    "csf": {},
    "csr": {},
    "dbsr": {"block_rows": 2, "block_columns": 4},
    "dcsr": {},
    "dia": {},
    "ell": {},
    "ell_rows": {"width": 2},
    "n_m": {"group": 4, "slots": 4},
    "padded_csr": {"width": 4},
    "ragged": {},
    "row_groups": {"height": 2},
    "sell": {"height": 4, "sigma": 8},
    "sliced_dia": {"height": 4},
    "sr_bcrs": {"strip": 3, "width": 2},
    "tiled_csr": {"tile_columns": 8},
    "v_n_m": {"rows": 2, "group": 4, "chosen": 4, "slots": 4},
}
"""The formats of matrices, of which each is converted to each other by kernels."""

PARAMETERS_3D = {"coo": {}, "csf": {}, "ell3d": {"group_rows": 2, "width": 2}}
"""The formats of tensors of three dimensions, of which each is converted to each other by kernels."""


@pytest.fixture(scope="module")
def tensors():
    """A matrix in each of the formats."""
    rng = np.random.default_rng(1)
    matrix = sparse.random_array((19, 23), density=0.15, format="csr", rng=rng)
    matrix.data[:] = np.arange(1, matrix.nnz + 1)
    return {
        name: convert(from_scipy(matrix), name, **sizes).tensor
        for name, sizes in PARAMETERS.items()
    }


def test_no_format_is_left_to_numpy():
    assert {*PARAMETERS, *PARAMETERS_3D} == {*format_names()}


def require_equal_kernels(
    tensor, destination, parameters, *, zeros=None, order=None, threads=1, kernel=InterpretedKernel
):
    """Requires that kernels convert a tensor, and that the result is that of NumPy."""
    expected, positions = convert(tensor, destination, zeros=zeros, order=order, **parameters)
    drops_zeros = zeros != "keep" and not stores_only_elements(tensor.description)
    options = KernelOptions(drops_zeros, index_dtype=None, wants_permutation=True, threads=threads)
    wanted = conversion_destination(destination, parameters, ndim=tensor.ndim, order=order)
    converted = convert_by_kernels(tensor.storage, wanted, kernel, options)
    assert converted.storage.description == expected.description
    assert converted.storage.sizes == dict(expected.sizes)
    for handle, array in expected.arrays.items():
        np.testing.assert_array_equal(converted.storage.arrays[handle], array, strict=True)
    np.testing.assert_array_equal(converted.permutation, positions)


@pytest.mark.parametrize("destination", PARAMETERS)
@pytest.mark.parametrize("source", PARAMETERS)
def test_kernels_store_what_numpy_stores(tensors, source, destination):
    require_equal_kernels(tensors[source], destination, PARAMETERS[destination])


@pytest.fixture(scope="module")
def dense_tensors():
    """A matrix with many elements in each row and column, in some of the formats."""
    matrix = sparse.random_array((19, 23), density=0.5, format="csr", rng=np.random.default_rng(2))
    return {
        name: convert(from_scipy(matrix), name, **PARAMETERS[name]).tensor
        for name in ("bsr", "coo", "csc", "csr", "dia", "sell")
    }


# The interpreter checks that each slot is in the array of slots once.
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("destination", PARAMETERS)
@pytest.mark.parametrize("source", ["bsr", "coo", "csc", "csr", "dia", "sell"])
def test_kernels_for_several_threads_store_what_numpy_stores(
    dense_tensors, source, destination, threads
):
    require_equal_kernels(
        dense_tensors[source], destination, PARAMETERS[destination], threads=threads
    )


def in_chunks(loops):
    """Return a class of kernels that run parallel loops in several parts, the last one first, and put these
    loops into a list."""

    class KernelInChunks(InterpretedKernel):
        chunks = 7

        def __init__(self, module):
            super().__init__(module)
            loops.extend(n for n in walk(module) if isinstance(n, For) and n.kind == "parallel")

    return KernelInChunks


@pytest.mark.parametrize("destination", ["coo", "csc", "csr", "dcsr"])
@pytest.mark.parametrize("source", ["bitmask", "bsr", "dia", "row_groups", "sell", "sr_bcrs"])
def test_threads_append_in_any_order(monkeypatch, source, destination):
    monkeypatch.setattr(append_in_parallel, "MIN_ITERATIONS", 1)
    dense = sparse.random_array((19, 23), density=0.4, rng=np.random.default_rng(3)).toarray()
    dense[[4, 18]] = 0
    matrix = sparse.csr_array(dense)
    matrix.data[::3] = 0
    tensor, loops = convert(from_scipy(matrix), source, **PARAMETERS[source]).tensor, []
    for zeros in (None, "keep"):
        require_equal_kernels(
            tensor, destination, {}, zeros=zeros, threads=3, kernel=in_chunks(loops)
        )
    # Only rows of these formats are visited in order, and by an outermost loop of rows.
    if destination == "coo" or (destination == "csr" and source != "sr_bcrs"):
        assert loops


@pytest.mark.parametrize(("source", "least"), [("bitmask", 2), ("ell", 2), ("bsr", 3), ("sell", 3)])
def test_elements_are_counted_if_threads_pay_for_it(monkeypatch, dense_tensors, source, least):
    monkeypatch.setattr(append_in_parallel, "MIN_ITERATIONS", 1)
    tensor = dense_tensors["csr"].asformat(source, **PARAMETERS[source])
    for threads in (1, 2, 3):
        loops = []
        kernel = in_chunks(loops)
        require_equal_kernels(tensor, "csr", {}, threads=threads, kernel=kernel)
        assert any(loop.weight is not None for loop in loops) == (threads >= least)


@pytest.mark.parametrize("destination", PARAMETERS_3D)
@pytest.mark.parametrize("source", PARAMETERS_3D)
def test_kernels_for_several_threads_convert_tensors_of_three_dimensions(source, destination):
    tensor = list_of_elements((4, 9, 13), 250).asformat(source, **PARAMETERS_3D[source])
    require_equal_kernels(tensor, destination, PARAMETERS_3D[destination], threads=2)


@pytest.mark.parametrize("destination", PARAMETERS_3D)
@pytest.mark.parametrize("source", PARAMETERS_3D)
def test_kernels_convert_tensors_of_three_dimensions(source, destination):
    tensor = list_of_elements((4, 19, 23), 120).asformat(source, **PARAMETERS_3D[source])
    require_equal_kernels(tensor, destination, PARAMETERS_3D[destination])


@pytest.mark.parametrize("destination", ["coo", "csf"])
@pytest.mark.parametrize("ndim", [3, 4])
def test_elements_of_several_dimensions_in_any_order_are_sorted_by_kernels(ndim, destination):
    ordered = list_of_elements((4, 5, 9, 7)[:ndim], 150)
    order = np.random.default_rng(10).permutation(ordered.nnz)
    arrays = {handle: array[order] for handle, array in ordered.arrays.items()}
    described = coo("float64", ndim=ndim, sorted=False)
    tensor = SparseTensor(Storage(described, dict(ordered.sizes), arrays))
    require_equal_kernels(tensor, destination, {})


@pytest.mark.parametrize("zeros", [None, "drop"])
@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("destination", PARAMETERS)
def test_kernels_add_repeated_elements(destination, is_sorted, zeros):
    tensor = repeated_elements((19, 23), is_sorted=is_sorted)
    expected, positions = convert(tensor, destination, zeros=zeros, **PARAMETERS[destination])
    assert positions is None
    if zeros == "drop":
        assert np.all(expected.asformat("coo").arrays["data"])
    require_sums(
        tensor, destination, PARAMETERS[destination], expected, drops_zeros=zeros == "drop"
    )


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("destination", ["coo", "csf"])
def test_kernels_add_repeated_elements_of_several_dimensions(destination, is_sorted):
    tensor = repeated_elements((4, 5, 6), is_sorted=is_sorted)
    expected = convert(tensor, destination).tensor
    require_sums(tensor, destination, {}, expected, drops_zeros=False)


def repeated_elements(shape, *, is_sorted):
    """Returns a tensor in COO with sums that are zero."""
    ordered, rng = list_of_elements(shape, 100), np.random.default_rng(11)
    chosen = rng.integers(0, ordered.nnz, 60)
    cells = {handle: array[chosen] for handle, array in ordered.arrays.items() if handle != "data"}
    # Each pair of an element and its opposite is a sum of zero.
    cells = {handle: np.concatenate([array, array[:20]]) for handle, array in cells.items()}
    values = rng.integers(1, 9, 60).astype(float)
    arrays = {"data": np.concatenate([values, -values[:20]]), **cells}
    keys = [arrays[f"indices_{dimension}"] for dimension in reversed(range(len(shape)))]
    order = np.lexsort(keys) if is_sorted else rng.permutation(80)
    return from_arrays("coo", shape, **{name: array[order] for name, array in arrays.items()})


def require_sums(tensor, destination, parameters, expected, *, drops_zeros):
    """Requires that kernels store the sums of repeated elements that are expected."""
    options = KernelOptions(
        drops_zeros, index_dtype=None, wants_permutation=True, adds_repeated=True
    )
    wanted = conversion_destination(destination, parameters, ndim=tensor.ndim)
    converted = convert_by_kernels(tensor.storage, wanted, InterpretedKernel, options)
    assert converted.storage.description == expected.description
    for handle, array in expected.arrays.items():
        np.testing.assert_array_equal(converted.storage.arrays[handle], array, strict=True)
    assert converted.permutation is None


def test_a_sum_of_negative_zeros_keeps_the_sign():
    rows, columns = np.array([1, 0, 0]), np.array([1, 2, 2])
    values = np.array([-0.0, 1.0, 2.0])
    tensor = from_arrays("coo", (2, 3), data=values, indices_0=rows, indices_1=columns)
    expected = convert(tensor, "csr").tensor
    np.testing.assert_array_equal(np.signbit(expected.arrays["data"]), [False, True])
    options = KernelOptions(False, index_dtype=None, wants_permutation=True, adds_repeated=True)
    wanted = conversion_destination("csr", {}, ndim=2)
    converted = convert_by_kernels(tensor.storage, wanted, InterpretedKernel, options)
    np.testing.assert_array_equal(np.signbit(converted.storage.values), [False, True])


def list_of_elements(shape, count):
    """Returns a tensor in COO with at most so many elements."""
    rng = np.random.default_rng(9)
    cells = np.unique(rng.integers(0, shape, (count, len(shape))), axis=0).astype(np.int32)
    arrays = {f"indices_{dimension}": cells[:, dimension] for dimension in range(len(shape))}
    return from_arrays("coo", shape, data=np.arange(1.0, len(cells) + 1), **arrays)


ROWS_IN_EACH_TILE = """
@T.format
def rows_of_tiles(
    data: T.handle, indptr: T.handle, rows: T.handle, columns: T.handle,
    m: T.int64, n: T.int64, places: T.int64, tile: T.int64, width: T.int64,
) -> None:
    JO = T.sp.dense_fixed((n + tile - 1) // tile)
    I = T.sp.compressed_varied(JO, (m, places), (indptr, rows), "int32", unique=False)
    JI = T.sp.compressed_fixed(I, (tile, width), columns, "int32")
    A = T.sp.match_buffer(data, (JO, I, JI), "float64")
    T.sp.map(lambda jo, i, ji: (i, jo * tile + ji), shape=(m, n))
"""
PLACES_OF_ROWS = """
@T.format
def places_of_rows(
    data: T.handle, rows: T.handle, columns: T.handle,
    m: T.int64, n: T.int64, height: T.int64, places: T.int64, width: T.int64,
) -> None:
    IO = T.sp.dense_fixed((m + height - 1) // height)
    II = T.sp.compressed_fixed(IO, (height, places), rows, "int32", unique=False)
    J = T.sp.compressed_fixed(II, (n, width), columns, "int32")
    A = T.sp.match_buffer(data, (IO, II, J), "float64")
    T.sp.map(lambda io, ii, j: (io * height + ii, j), shape=(m, n))
"""


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("source", ["csr", "csc", "bsr", "dia", "ell_rows"])
@pytest.mark.parametrize(
    ("script", "sizes"), [(ROWS_IN_EACH_TILE, {"tile": 5}), (PLACES_OF_ROWS, {"height": 4})]
)
def test_kernels_repeat_rows_of_a_users_format(tensors, source, script, sizes, width):
    destination = parse_format(script)
    require_equal_kernels(tensors[source], destination, sizes | {"width": width})


def test_too_few_places_of_repeated_rows_are_an_error(tensors):
    sizes = {"height": 4, "width": 1, "places": 3}
    wanted = conversion_destination(parse_format(PLACES_OF_ROWS), sizes, ndim=2)
    options = KernelOptions(False, index_dtype=None, wants_permutation=True)
    assert convert_by_kernels(tensors["csr"].storage, wanted, InterpretedKernel, options) is None
    with pytest.raises(FormatError, match="3 slots, but"):
        convert(tensors["csr"], parse_format(PLACES_OF_ROWS), **sizes)


@pytest.mark.parametrize("height", [1, 2, 5])
@pytest.mark.parametrize("order", [None, np.random.default_rng(0).permutation(19)])
@pytest.mark.parametrize("source", ["csr", "csc", "bsr", "ell_rows"])
def test_kernels_store_groups_of_rows_in_any_order(tensors, source, order, height):
    require_equal_kernels(tensors[source], "row_groups", {"height": height}, order=order)


BLOCK_ROWS_IN_ANY_ORDER = """
@T.format
def ordered_blocks(
    data: T.handle, indptr: T.handle, indices: T.handle, rows: T.handle,
    m: T.int64, n: T.int64, blocks: T.int64, height: T.int64, width: T.int64,
) -> None:
    P = T.sp.dense_fixed((m + height - 1) // height)
    JO = T.sp.compressed_varied(P, ((n + width - 1) // width, blocks), (indptr, indices), "int32")
    II = T.sp.dense_fixed(height)
    JI = T.sp.dense_fixed(width)
    A = T.sp.match_buffer(data, (P, JO, II, JI), "float64")
    ROWS = T.match_buffer(rows, ((m + height - 1) // height,), "int32")
    T.assume(distinct(ROWS))
    T.sp.map(lambda p, jo, ii, ji: (T.int64(ROWS[p]) * height + ii, jo * width + ji), shape=(m, n))
"""
SLICES_OF_BLOCK_COLUMNS = """
@T.format
def column_slices(
    data: T.handle, indptr: T.handle, indices: T.handle, columns: T.handle, m: T.int64, n: T.int64,
    slices: T.int64, of_slice: T.int64, longest: T.int64, slots: T.int64, height: T.int64, width: T.int64,
) -> None:
    S = T.sp.dense_fixed(slices)
    W = T.sp.dense_varied(S, (longest, slots), indptr, "int32")
    C = T.sp.dense_fixed(of_slice, parent=W)
    JI = T.sp.dense_fixed(width)
    II = T.sp.dense_fixed(height)
    IO = T.sp.compressed_fixed(C, ((m + height - 1) // height, 1), indices, "int32")
    A = T.sp.match_buffer(data, (S, W, C, JI, II, IO), "float64")
    COLUMNS = T.match_buffer(columns, (slices, of_slice), "int32")
    T.assume(distinct(COLUMNS))
    T.sp.map(
        lambda s, w, c, ji, ii, io: (io * height + ii, T.int64(COLUMNS[s, c]) * width + ji),
        shape=(m, n),
    )
"""


@pytest.mark.parametrize("sides", [(1, 1), (2, 3), (4, 2)])
@pytest.mark.parametrize("source", ["csr", "csc", "bsr", "blocked_sell", "dia"])
@pytest.mark.parametrize("sorted", [True, False])
def test_block_rows_of_a_users_format_have_any_order(tensors, source, sides, sorted):
    destination = with_order(parse_format(BLOCK_ROWS_IN_ANY_ORDER), sorted=sorted)
    sizes = dict(zip(("height", "width"), sides, strict=True))
    order = np.random.default_rng(1).permutation(-(-19 // sides[0]))
    require_equal_kernels(tensors[source], destination, sizes, order=order)


@pytest.mark.parametrize("sides", [(1, 1), (2, 3), (4, 2)])
@pytest.mark.parametrize("source", ["csr", "csc", "bsr", "blocked_sell", "dia"])
def test_kernels_store_slices_of_a_users_format(tensors, source, sides):
    destination = parse_format(SLICES_OF_BLOCK_COLUMNS)
    sizes = dict(zip(("height", "width"), sides, strict=True)) | {"of_slice": 4}
    order = np.random.default_rng(2).permutation(-(-23 // sides[1]))
    require_equal_kernels(tensors[source], destination, sizes, order=order)
    converted = tensors[source].asformat(destination, order=order, **sizes)
    require_equal_kernels(converted, "csr", {})


@pytest.mark.parametrize("destination", ["csr", "csc", "bsr", "coo", "sell"])
def test_some_block_rows_of_a_users_format_are_listed(destination):
    dense = np.zeros((19, 23))
    dense[[4, 5, 11, 18], [3, 22, 0, 7]] = 1, 2, 3, 4
    described = parse_format(BLOCK_ROWS_IN_ANY_ORDER)
    tensor = from_scipy(sparse.csr_array(dense)).asformat(described, height=2, width=3)
    assert not {0, 1} & {*tensor.arrays["rows"].tolist()}
    require_equal_kernels(tensor, destination, PARAMETERS[destination])


@pytest.mark.parametrize("zeros", [None, "keep"])
@pytest.mark.parametrize("destination", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("source", ["sell", "blocked_sell"])
def test_slots_of_slices_may_have_any_order(tensors, source, destination, zeros):
    tensor, rng = tensors[source], np.random.default_rng(8)
    offsets, slots = tensor.arrays["indptr"], tensor.sizes["slots"]
    order = np.concatenate(
        [rng.permutation(np.arange(*ends)) for ends in itertools.pairwise(offsets)]
    )
    arrays = {
        name: array.reshape(slots, -1)[order].reshape(-1) if name in ("data", "indices") else array
        for name, array in tensor.arrays.items()
    }
    shuffled = SparseTensor(Storage(tensor.description, dict(tensor.sizes), arrays))
    np.testing.assert_array_equal(shuffled.toarray(), tensor.toarray())
    require_equal_kernels(shuffled, destination, PARAMETERS[destination], zeros=zeros)


UNSORTED = {
    "csr": (csr("float64", sorted=False), {}),
    "bsr": (bsr("float64", sorted=False), {"block_rows": 3, "block_columns": 2}),
    "bsr of one row": (bsr("float64", sorted=False), {"block_rows": 1, "block_columns": 4}),
}
"""Formats whose fibers may have any order."""


@pytest.mark.parametrize("zeros", [None, "keep"])
@pytest.mark.parametrize("destination", PARAMETERS)
@pytest.mark.parametrize("source", UNSORTED)
def test_fibers_in_any_order_are_sorted_by_kernels(source, destination, zeros):
    described, sizes = UNSORTED[source]
    rng = np.random.default_rng(2)
    # Blocks divide this shape, but not that of the tensors above.
    matrix = sparse.random_array((18, 24), density=0.15, format="csr", rng=rng)
    tensor = shuffled(from_scipy(matrix).asformat(described, **sizes), rng)
    require_equal_kernels(tensor, destination, PARAMETERS[destination], zeros=zeros)


@pytest.mark.parametrize("source", ["bsr", "bsr of one row"])
def test_an_unsorted_destination_has_the_order_of_the_blocks(source):
    described, sizes = UNSORTED[source]
    rng = np.random.default_rng(3)
    matrix = sparse.random_array((18, 24), density=0.15, format="csr", rng=rng)
    tensor = shuffled(from_scipy(matrix).asformat(described, **sizes), rng)
    options = KernelOptions(False, index_dtype=None, wants_permutation=True)
    for destination in (csr("float64", sorted=False), coo("float64", sorted=False)):
        converted = convert_by_kernels(
            tensor.storage, Destination(destination), InterpretedKernel, options
        )
        np.testing.assert_array_equal(SparseTensor(converted.storage).toarray(), matrix.toarray())
        permuted = tensor.arrays["data"][converted.permutation]
        np.testing.assert_array_equal(permuted, converted.storage.values)
    # The list has the elements in the order of the blocks, so that it shares the values.
    assert converted.storage.values is tensor.arrays["data"]
    block_columns = tensor.arrays["indices"] * sizes["block_columns"]
    first = converted.storage.arrays["indices_1"].reshape(block_columns.size, -1)[:, 0]
    np.testing.assert_array_equal(first, block_columns)


@pytest.mark.parametrize("destination", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("zeros", ["drop", "keep"])
def test_diagonals_in_any_order_are_converted(tensors, destination, zeros):
    diagonals = tensors["dia"]
    offsets, count = diagonals.arrays["offsets"], diagonals.arrays["offsets"].size
    order = np.random.default_rng(4).permutation(count)
    arrays = {
        "offsets": offsets[order],
        "data": diagonals.arrays["data"].reshape(count, -1)[order].reshape(-1),
    }
    tensor = SparseTensor(Storage(diagonals.description, dict(diagonals.sizes), arrays))
    require_equal_kernels(tensor, destination, PARAMETERS[destination], zeros=zeros)


@pytest.mark.parametrize("destination", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("zeros", ["drop", "keep"])
@pytest.mark.parametrize("offsets", [[0, 3, 5], [0, 6], [1, 7], [-1, 2], [6]])
def test_diagonals_that_are_whole_are_converted(offsets, destination, zeros):
    values = np.random.default_rng(5).integers(0, 4, (len(offsets), 10)).astype(float)
    matrix = sparse.dia_array((values, offsets), shape=(4, 10))
    tensor = from_scipy(matrix, format="same")
    require_equal_kernels(tensor, destination, PARAMETERS[destination], zeros=zeros)


def shuffled(tensor, rng):
    """Returns a tensor with the slots of each fiber in another order."""
    offsets, values = tensor.arrays["indptr"], tensor.arrays["data"]
    order = np.concatenate(
        [rng.permutation(np.arange(*ends)) for ends in itertools.pairwise(offsets)]
    )
    arrays = {
        "indptr": offsets,
        "indices": tensor.arrays["indices"][order],
        "data": values.reshape(order.size, -1)[order].reshape(-1),
    }
    return SparseTensor(Storage(tensor.description, dict(tensor.sizes), arrays))


KINDS = {
    "bsr": {"block_rows": 2, "block_columns": 2},
    "coo": {},
    "csc": {},
    "csr": {},
    "dia": {},
    "ell": {},
    "sell": {"height": 4, "sigma": 8},
}
"""The formats between which several tensors of one kind are converted."""

PATTERNS = ("few", "many", "few again", "none", "one column", "one row", "all")


def matrix_with(pattern):
    """Returns a matrix of one shape with another pattern of nonzeros."""
    rng = np.random.default_rng(PATTERNS.index(pattern))
    dense = np.zeros((8, 12))
    match pattern:
        case "few" | "few again":
            dense[rng.integers(0, 8, 12), rng.integers(0, 12, 12)] = 1
        case "many":
            dense[rng.random((8, 12)) < 0.6] = 1
        case "one column":
            dense[:, 5] = 1
        case "one row":
            dense[3] = 1
        case "all":
            dense[:] = 1
    return sparse.csr_array(dense * rng.integers(1, 9, dense.shape))


@pytest.mark.parametrize("destination", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_recordings_of_other_tensors_store_what_numpy_stores(source, destination):
    for pattern in PATTERNS * 2:
        tensor = from_scipy(matrix_with(pattern)).asformat(source, **KINDS[source])
        require_equal_kernels(tensor, destination, KINDS[destination])


def test_a_recording_for_sorted_elements_is_not_used_for_others(monkeypatch):
    recorded = []
    record = module._record

    def counted(*values, **named):
        recorded.append(1)
        return record(*values, **named)

    monkeypatch.setattr(module, "_record", counted)
    rng = np.random.default_rng(7)
    described = coo("float64", sorted=False)
    for is_sorted, count in ((True, 1), (False, 2), (True, 2), (False, 2)):
        matrix = sparse.random_array((31, 17), density=rng.uniform(0.1, 0.3), format="coo", rng=rng)
        rows, columns = matrix.coords
        order = np.lexsort((columns, rows)) if is_sorted else rng.permutation(rows.size)
        arrays = {
            "indices_0": rows[order].astype(np.int32),
            "indices_1": columns[order].astype(np.int32),
            "data": matrix.data[order],
        }
        sizes = {"n0": 31, "n1": 17, "nnz": rows.size}
        tensor = SparseTensor(Storage(described, sizes, arrays))
        require_equal_kernels(tensor, "csr", {})
        assert len(recorded) == count
