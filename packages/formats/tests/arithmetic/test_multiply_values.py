"""Factors multiply the elements of tensors in all formats, as NumPy's do those of their dense arrays."""

import numpy as np
import pytest

from gossamer_formats import SparseTensor
from gossamer_ir.errors import ArgumentError

RNG = np.random.default_rng(6)
FACTORS = {
    "number": 3,
    "zero": 0.0,
    "columns": RNG.standard_normal(7),
    "rows": RNG.standard_normal((9, 1)),
    "elements": RNG.standard_normal((9, 7)),
    "integers": np.arange(7),
}


@pytest.mark.parametrize("name", FACTORS)
def test_factors_multiply_elements_and_keep_the_format(tensor, name, matrix):
    factor = FACTORS[name]
    for product in (tensor * factor, factor * tensor):
        assert (product.format, product.nnz) == (tensor.format, tensor.nnz)
        np.testing.assert_array_equal(product.toarray(), matrix.toarray() * factor)


def test_an_infinite_factor_leaves_slots_without_elements_alone(tensor):
    stored = tensor.toarray() != 0
    product = (tensor * np.inf).toarray()
    assert np.all(np.isinf(product[stored]))


def test_quotients_and_negations(tensor, matrix):
    np.testing.assert_allclose((tensor / 4).toarray(), matrix.toarray() / 4)
    columns = np.arange(1.0, 8.0)
    np.testing.assert_allclose((tensor / columns).toarray(), matrix.toarray() / columns)
    np.testing.assert_array_equal((-tensor).toarray(), -matrix.toarray())


def test_dtypes_are_those_of_numpy(matrix):
    single = SparseTensor(matrix.astype(np.float32))
    assert (single * 2).dtype == np.float32
    assert (single * np.ones(7, np.float32)).dtype == np.float32
    assert (single * np.ones(7)).dtype == np.float64


def test_a_factor_of_another_shape_or_dtype_is_refused(matrix):
    tensor = SparseTensor(matrix)
    with pytest.raises(ArgumentError, match=r"shape \(8,\), which does not broadcast") as raised:
        tensor * np.ones(8)
    assert raised.value.code == "tensor.factor"
    with pytest.raises(ArgumentError, match="dtype complex128"):
        tensor * 1j
