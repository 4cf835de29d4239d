"""Reductions agree with those of dense arrays: elements that are not stored are zeros."""

import numpy as np
import pytest
import scipy.sparse

from gossamer_formats import SparseTensor, from_arrays
from gossamer_ir.errors import ArgumentError

RNG = np.random.default_rng(6)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min"])
def test_reductions_include_elements_that_are_not_stored(tensor, reduction, axis, matrix):
    result = getattr(tensor, reduction)(axis)
    expected = getattr(matrix.toarray(), reduction)(axis)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-15)


def test_duplicates_are_added_before_they_are_compared():
    stored = (np.array([2.0, -5.0]), np.array([1, 1]), np.array([0, 2]))
    tensor = SparseTensor(scipy.sparse.csr_array(stored, shape=(1, 2)))
    assert (tensor.max(), tensor.min()) == (0.0, -3.0)


def test_nan_is_propagated():
    matrix = scipy.sparse.csr_array(np.array([[np.nan, 1.0], [2.0, 3.0]]))
    np.testing.assert_array_equal(SparseTensor(matrix).max(axis=1), [np.nan, 3.0])


def test_three_dimensions():
    array = RNG.standard_normal((3, 4, 5)) * (RNG.random((3, 4, 5)) < 0.3)
    coordinates = np.nonzero(array)
    names = {f"indices_{number}": each for number, each in enumerate(coordinates)}
    tensor = from_arrays("coo", array.shape, data=array[coordinates], **names)
    for axis in range(3):
        np.testing.assert_allclose(tensor.sum(axis), array.sum(axis), atol=1e-15)
        np.testing.assert_allclose(tensor.min(axis), array.min(axis))


def test_results_have_the_dtype_of_the_tensor(matrix):
    single = SparseTensor(matrix.astype(np.float32))
    assert single.sum(axis=0).dtype == single.max().dtype == np.float32


def test_another_dimension_and_the_maximum_of_nothing_are_refused(matrix):
    tensor = SparseTensor(matrix)
    for axis in (2, -3, 0.5):
        with pytest.raises(ArgumentError) as raised:
            tensor.sum(axis)
        assert raised.value.code == "tensor.axis"
    with pytest.raises(ArgumentError) as raised:
        tensor[:0].max()
    assert raised.value.code == "tensor.empty"
