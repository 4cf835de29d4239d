"""Large tensors are converted by compiled programs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_formats import convert
from gossamer_formats.conversion import convert as convert_module

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
def test_large_tensors_are_converted_by_programs(matrix, without_numpy, source, target):
    tensor = gs.from_scipy(matrix).asformat(source, **PARAMETERS[source])
    found, permutation = convert(tensor, target, **PARAMETERS[target])
    np.testing.assert_array_equal(gs.to_scipy(found.asformat("csr")).toarray(), matrix.toarray())
    values = np.append(tensor.storage.values, 0.0)
    np.testing.assert_array_equal(found.storage.values, values[permutation])


@pytest.mark.parametrize("target", ["csr", "csc", "coo"])
def test_the_elements_of_coo_may_have_any_order(matrix, without_numpy, target):
    coordinates = matrix.tocoo()
    order = np.random.default_rng(4).permutation(matrix.nnz)
    rows, columns = (index[order] for index in coordinates.coords)
    tensor = gs.from_arrays(
        "coo", matrix.shape, indices_0=rows, indices_1=columns, data=coordinates.data[order]
    )
    found = tensor.asformat(target)
    assert (gs.to_scipy(found).tocsr() != matrix).nnz == 0


def test_repeated_elements_are_added(matrix):
    coordinates = matrix.tocoo()
    rows, columns = (np.concatenate([index, index[:5]]) for index in coordinates.coords)
    data = np.concatenate([coordinates.data, coordinates.data[:5]])
    tensor = gs.from_arrays("coo", matrix.shape, indices_0=rows, indices_1=columns, data=data)
    expected = sparse.coo_array((data, (rows, columns)), shape=matrix.shape).tocsr()
    assert (gs.to_scipy(tensor.asformat("csr")) != expected).nnz == 0
