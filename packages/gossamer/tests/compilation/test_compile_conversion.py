"""Large tensors are converted by kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import machine_for
from gossamer_formats import convert
from gossamer_formats.conversion import convert_storage as convert_module
from gossamer_formats.conversion.by_kernels.slots.later_slots import min_elements
from gossamer_formats.descriptions.coo import coo
from gossamer_formats.descriptions.csc import csc
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.registry.compiler import find_machine
from gossamer_machine import Machine

PARAMETERS = {
    "bsr": {"block_rows": 2, "block_columns": 3},
    "coo": {},
    "csc": {},
    "csr": {},
    "dcsr": {},
    "sell": {"height": 16, "sigma": 64},
}


@pytest.fixture(scope="module")
def matrix():
    """A matrix with more values than NumPy converts, with empty rows and columns."""
    rng = np.random.default_rng(3)
    count = convert_module.MIN_COMPILED + 2000
    rows, columns = rng.integers(0, 3000, count) * 2, rng.integers(0, 2500, count)
    return sparse.csr_array((rng.random(count), (rows, columns)), shape=(6001, 2503))


@pytest.fixture
def without_numpy(monkeypatch):
    """Conversions by NumPy fail."""

    def fail(*_arguments, **_options):
        raise AssertionError("NumPy converts the tensor")

    monkeypatch.setattr(convert_module, "store_elements", fail)


@pytest.mark.parametrize("target", PARAMETERS)
@pytest.mark.parametrize("source", PARAMETERS)
def test_large_tensors_are_converted_by_kernels(matrix, without_numpy, source, target):
    tensor = gs.from_scipy(matrix).asformat(source, **PARAMETERS[source])
    converted, permutation = convert(tensor, target, **PARAMETERS[target])
    assert abs(gs.to_scipy(converted.asformat("csr")) - matrix).nnz == 0
    values = np.append(tensor.storage.values, 0.0)
    np.testing.assert_array_equal(converted.storage.values, values[permutation])


@pytest.mark.parametrize(("source", "target"), [("csr", "csc"), ("coo", "csc")])
def test_tensors_whose_later_lines_are_fetched_are_converted(without_numpy, source, target):
    count = min_elements(Machine()) + 1000
    rng = np.random.default_rng(5)
    slots = np.sort(rng.choice(3000 * 2000, count, replace=False))
    matrix = sparse.csr_array((rng.random(count), divmod(slots, 2000)), shape=(3000, 2000))
    converted = gs.from_scipy(matrix).asformat(source).asformat(target)
    assert abs(gs.to_scipy(converted) - matrix).nnz == 0


def test_conversions_are_written_for_the_machine_of_the_default_target():
    assert find_machine() == machine_for(DEFAULT_TARGET)


@pytest.fixture
def two_threads(monkeypatch):
    """Conversions of any size run on two threads."""
    monkeypatch.setattr(convert_module, "VALUES_PER_THREAD", 1)
    before = gs.get_num_threads()
    gs.set_num_threads(2)
    yield
    gs.set_num_threads(before)


@pytest.mark.parametrize("target", ["blocked_sell", "csf", "dcsr", "padded_csr", *PARAMETERS])
@pytest.mark.parametrize("source", PARAMETERS)
def test_two_threads_store_what_one_stores(matrix, without_numpy, two_threads, source, target):
    sizes = {"blocked_sell": {"block_rows": 2, "block_columns": 2}, "padded_csr": {"width": 4}}
    sizes |= PARAMETERS
    tensor = gs.from_scipy(matrix).asformat(source, **PARAMETERS[source])
    converted = tensor.asformat(target, **sizes.get(target, {}))
    gs.set_num_threads(1)
    expected = tensor.asformat(target, **sizes.get(target, {}))
    assert converted.sizes == expected.sizes
    for handle, array in expected.arrays.items():
        np.testing.assert_array_equal(converted.arrays[handle], array, strict=True)


@pytest.mark.parametrize("source", ["csr", "csc", "coo"])
def test_rows_are_repeated_by_kernels(matrix, without_numpy, source):
    converted = gs.from_scipy(matrix).asformat(source).asformat("ell_rows", width=4)
    counts = -(-np.diff(matrix.indptr) // 4)
    np.testing.assert_array_equal(converted.arrays["rows"], np.repeat(np.arange(6001), counts))
    np.testing.assert_array_equal(
        gs.to_scipy(converted.asformat("csr")).toarray(), matrix.toarray()
    )


def test_columns_of_blocks_are_chosen_by_kernels(without_numpy):
    dense = np.random.default_rng(8).integers(1, 9, (1024, 512)).astype(float)
    chosen = gs.prune(gs.from_scipy(sparse.csr_array(dense)), "v_n_m")
    converted = chosen.asformat("csr").asformat("v_n_m")
    for handle, array in chosen.arrays.items():
        np.testing.assert_array_equal(converted.arrays[handle], array)


@pytest.mark.parametrize("target", ["coo", "csf", "ell3d"])
@pytest.mark.parametrize("source", ["coo", "csf", "ell3d"])
def test_tensors_of_three_dimensions_are_converted_by_kernels(without_numpy, source, target):
    rng = np.random.default_rng(7)
    count = convert_module.MIN_COMPILED * 5 // 4
    cells = np.unique(rng.integers(0, (7, 900, 800), (count, 3)), axis=0).astype(np.int32)
    arrays = {f"indices_{dimension}": cells[:, dimension] for dimension in range(3)}
    tensor = gs.from_arrays("coo", (7, 900, 800), data=rng.random(len(cells)), **arrays)
    converted = tensor.asformat(source).asformat(target).asformat("coo")
    for handle, array in tensor.arrays.items():
        np.testing.assert_array_equal(converted.arrays[handle], array)


@pytest.mark.parametrize("target", ["csr", "csc", "coo"])
def test_the_elements_of_coo_may_have_any_order(matrix, without_numpy, target):
    coordinates = matrix.tocoo()
    order = np.random.default_rng(4).permutation(matrix.nnz)
    rows, columns = (index[order] for index in coordinates.coords)
    tensor = gs.from_arrays(
        "coo", matrix.shape, indices_0=rows, indices_1=columns, data=coordinates.data[order]
    )
    converted = tensor.asformat(target)
    assert (gs.to_scipy(converted).tocsr() != matrix).nnz == 0


@pytest.mark.parametrize("target", ["csr", "csc", "bsr", "sell"])
def test_repeated_elements_are_added_by_kernels(matrix, without_numpy, target):
    coordinates = matrix.tocoo()
    rows, columns = (np.concatenate([index, index[:5]]) for index in coordinates.coords)
    data = np.concatenate([coordinates.data, coordinates.data[:5]])
    tensor = gs.from_arrays("coo", matrix.shape, indices_0=rows, indices_1=columns, data=data)
    expected = sparse.coo_array((data, (rows, columns)), shape=matrix.shape).tocsr()
    converted = tensor.asformat(target, **PARAMETERS[target])
    assert (gs.to_scipy(converted.asformat("csr")) != expected).nnz == 0


def test_groups_of_rows_in_any_order_are_stored_by_kernels(matrix, without_numpy):
    order = np.random.default_rng(9).permutation(6001)
    converted = gs.from_scipy(matrix).asformat("row_groups", height=4, order=order)
    np.testing.assert_array_equal(converted.toarray(), matrix.toarray())


@pytest.mark.parametrize("block", [(2, 2), (4, 4), (1, 8), (3, 5)])
@pytest.mark.parametrize("target", [csr(), csr(sorted=False), csc(), coo(sorted=False)])
def test_blocks_in_any_order_are_converted_by_kernels(without_numpy, block, target):
    rng = np.random.default_rng(5)
    rows, columns = rng.integers(0, 6000, 40_000), rng.integers(0, 2520, 40_000)
    matrix = sparse.csr_array((rng.random(40_000), (rows, columns)), shape=(6000, 2520))
    # SciPy lists the blocks of a row in the order of their first elements.
    tensor = gs.from_scipy(matrix.tobsr(block), format="same")
    for zeros in ("drop", "keep"):
        converted = tensor.asformat(target, zeros=zeros)
        assert (gs.to_scipy(converted).tocsr() != matrix).nnz == 0


@pytest.mark.parametrize("target", ["csr", "csc", "coo"])
def test_diagonals_are_converted_by_kernels(without_numpy, target):
    rng = np.random.default_rng(6)
    offsets = np.arange(-7, 60, 4)
    matrix = sparse.dia_array((rng.random((offsets.size, 9000)), offsets), shape=(8000, 9000))
    for order in (np.arange(offsets.size), rng.permutation(offsets.size)):
        shuffled = sparse.dia_array((matrix.data[order], offsets[order]), shape=matrix.shape)
        converted = gs.from_scipy(shuffled, format="same").asformat(target)
        assert (gs.to_scipy(converted).tocsr() != matrix.tocsr()).nnz == 0
