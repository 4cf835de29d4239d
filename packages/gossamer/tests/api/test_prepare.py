"""`gossamer.prepare`: results in the chosen formats against SciPy, the choice, and invalid arguments."""

from __future__ import annotations

import numpy as np
import pytest
from csr_matrices import integers
from scipy import sparse

import gossamer as gs
from gossamer_formats import Decomposition, SparseTensor
from gossamer_ir.errors import ArgumentError

MANY = 10**7


def pruned(shape=(300, 500), density=0.3, dtype=np.float32):
    matrix = sparse.random_array(
        shape, density=density, format="csr", dtype=dtype, rng=np.random.default_rng(0)
    )
    matrix.data = integers(matrix.nnz, dtype)
    return matrix


def elements(size=3, count=400, dtype=np.float32):
    rng = np.random.default_rng(2)
    nodes = sparse.random_array((count, count), density=0.05, format="csr", rng=rng)
    matrix = sparse.kron(nodes, np.ones((size, size)), format="csr").astype(dtype)
    matrix.data = integers(matrix.nnz, dtype)
    return sparse.csr_array(matrix)


MATRICES = {
    "tiled_csr": pruned,
    "bsr": elements,
    "csr": lambda dtype: pruned(density=0.004, dtype=dtype),
}


@pytest.mark.parametrize("format", MATRICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [1, 7, 64])
def test_products_are_those_of_scipy(format, dtype, features):
    matrix = MATRICES[format](dtype=dtype)
    prepared = gs.prepare(matrix, features=64, calls=MANY)
    assert gs.explain(prepared).chosen.format == format
    dense = integers((matrix.shape[1], features), dtype)
    assert np.array_equal(gs.spmm(prepared, dense), matrix @ dense)
    assert np.array_equal(prepared @ dense, matrix @ dense)
    assert np.array_equal(gs.spmv(prepared, dense[:, 0].copy()), matrix @ dense[:, 0])
    out = integers((matrix.shape[0], features), dtype, seed=2)
    expected = 2 * (matrix @ dense) + 3 * out
    assert np.array_equal(gs.spmm(prepared, dense, alpha=2.0, beta=3.0, out=out), expected)


def test_columns_after_the_last_whole_tile_are_a_part_of_their_own():
    prepared = gs.prepare(pruned((300, 500)), features=128, calls=MANY)
    assert isinstance(prepared, Decomposition)
    assert [part.tensor.format for part in prepared.parts] == ["tiled_csr", "csr"]
    assert prepared.parts[0].tensor.arrays["indices"].dtype == np.uint16
    whole = gs.prepare(pruned((300, 512)), features=128, calls=MANY)
    assert isinstance(whole, Decomposition)
    assert [part.tensor.format for part in whole.parts] == ["tiled_csr"]


def communities(count=40, size=250, dtype=np.float32):
    """A graph of communities, whose nodes are mixed."""
    rng = np.random.default_rng(0)
    blocks = [
        sparse.random_array((size, size), density=0.08, rng=rng, format="coo") for _ in range(count)
    ]
    mixed = rng.permutation(count * size)
    matrix = sparse.csr_array(sparse.block_diag(blocks, format="csr")[mixed][:, mixed]).astype(
        dtype
    )
    matrix.data = integers(matrix.nnz, dtype)
    return matrix


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_a_community_are_stored_together_if_the_operand_is_large(dtype):
    matrix = communities(dtype=dtype)
    tensor = gs.from_scipy(matrix)
    prepared = gs.prepare(tensor, features=128, calls=MANY)
    choice = gs.explain(prepared)
    assert choice.chosen.text == "row_groups (height=1)"
    assert "rows with columns in common are together" in str(choice)
    dense = integers((matrix.shape[1], 128), dtype)
    assert np.array_equal(gs.spmm(prepared, dense), matrix @ dense)
    assert np.array_equal(gs.spmv(prepared, dense[:, 0].copy()), matrix @ dense[:, 0])
    # A small operand stays in the caches, whatever the order is.
    assert gs.explain(gs.prepare(tensor, features=4, calls=MANY)).chosen.format == "csr"
    assert gs.explain(gs.prepare(tensor, features=128, calls=1)).chosen.format == "csr"


EMERALD_RAPIDS = "generic-cpu:gathers=fast,vector_bits=512,l2=2097152,l3=16777216"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_with_the_same_columns_are_stored_in_groups_if_the_operand_is_large(dtype):
    matrix = sparse.csr_array(sparse.kron(pruned((100, 9000), 0.004), np.ones((3, 1)))).astype(
        dtype
    )
    prepared = gs.prepare(matrix, features=256, calls=MANY, target=EMERALD_RAPIDS)
    choice = gs.explain(prepared)
    assert choice.chosen.text == "row_groups (height=3)"
    assert "loaded once for 3 neighboring rows, whose slots are filled to 100%" in str(choice)
    dense = integers((9000, 256), dtype)
    assert np.array_equal(gs.spmm(prepared, dense), matrix @ dense)
    few = gs.prepare(matrix, features=256, calls=1, target=EMERALD_RAPIDS)
    assert gs.explain(few).chosen.format == "csr"


def test_few_calls_do_not_pay_for_a_conversion():
    prepared = gs.prepare(pruned(), features=64, calls=1)
    assert isinstance(prepared, SparseTensor)
    assert gs.explain(prepared).chosen.format == "csr"


def test_a_tensor_in_any_format_is_prepared():
    matrix = pruned()
    tensor = gs.from_scipy(matrix).asformat("coo")
    dense = integers((500, 16))
    assert np.array_equal(gs.prepare(tensor, features=16, calls=MANY) @ dense, matrix @ dense)


def test_each_result_keeps_its_own_choice():
    tensor = gs.from_scipy(pruned(density=0.004))
    few, many = gs.prepare(tensor, features=1), gs.prepare(tensor, features=64)
    assert gs.explain(few).csr.cycles < gs.explain(many).csr.cycles


def test_measured_formats_are_timed():
    choice = gs.explain(gs.prepare(pruned(), features=32, measure=True))
    assert "csr" in choice.seconds
    assert choice.chosen.text in choice.seconds
    assert all(seconds > 0 for seconds in choice.seconds.values())


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 3)])
def test_matrices_without_elements(shape):
    prepared = gs.prepare(sparse.csr_array(shape, dtype=np.float32), features=4)
    assert np.array_equal(prepared @ integers((shape[1], 4)), np.zeros((shape[0], 4)))


def test_a_vector_needs_no_number_of_features():
    matrix = pruned()
    prepared = gs.prepare(matrix, "spmv")
    vector = integers(500)
    assert np.array_equal(gs.spmv(prepared, vector), matrix @ vector)


@pytest.fixture
def one_thread():
    """One thread, so that the matrix of a test is not divided among as many as there are."""
    before = gs.get_num_threads()
    gs.set_num_threads(1)
    yield
    gs.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_short_rows_are_stored_in_slices_for_a_vector(dtype):
    matrix = pruned((12000, 3000), density=0.002, dtype=dtype)
    prepared = gs.prepare(matrix, "spmv", calls=MANY)
    assert isinstance(prepared, SparseTensor)
    assert prepared.format == "sell"
    assert gs.explain(prepared).chosen.parameters["height"] in (8, 16)
    vector = integers(3000, dtype)
    assert np.array_equal(gs.spmv(prepared, vector), matrix @ vector)
    assert np.array_equal(gs.spmm(prepared, vector[:, None]), (matrix @ vector)[:, None])


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("prepare.op", {"op": "sddmm", "features": 4}),
        ("prepare.features", {}),
        ("prepare.features", {"features": 0}),
        ("prepare.calls", {"features": 4, "calls": 0}),
    ],
)
def test_invalid_arguments(code, arguments):
    with pytest.raises(ArgumentError) as caught:
        gs.prepare(pruned(), **arguments)
    assert caught.value.code == code


def test_only_prepared_matrices_are_explained():
    with pytest.raises(ArgumentError) as caught:
        gs.explain(gs.from_scipy(pruned()))
    assert caught.value.code == "prepare.unknown"
