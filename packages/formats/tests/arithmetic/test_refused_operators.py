"""Operators whose results have other patterns are refused with a hint."""

import numpy as np
import pytest
import scipy.sparse

from gossamer_formats import SparseTensor, decompose, to_scipy
from gossamer_ir.errors import UnsupportedError


def parts(matrix):
    """The matrix in parts."""
    return decompose(SparseTensor(matrix), "hyb")


@pytest.mark.parametrize(
    "call",
    [
        lambda tensor: tensor + tensor,
        lambda tensor: 1 - tensor,
        lambda tensor: tensor * tensor,
        lambda tensor: tensor * scipy.sparse.eye_array(7),
        lambda tensor: tensor**2,
        lambda tensor: tensor > 0,
        lambda tensor: tensor @ tensor,
        lambda tensor: tensor @ scipy.sparse.eye_array(7),
        lambda tensor: 2 / tensor,
        lambda tensor: tensor // 2,
        lambda tensor: tensor % 2,
        lambda tensor: divmod(tensor, 2),
        lambda tensor: tensor & tensor,
        abs,
        lambda tensor: ~tensor,
    ],
)
@pytest.mark.parametrize("form", [SparseTensor, parts])
def test_other_operators_are_refused_with_a_hint(call, form, matrix):
    with pytest.raises(UnsupportedError, match="Use to_scipy") as raised:
        call(form(matrix))
    assert raised.value.code == "tensor.operator"


@pytest.mark.parametrize("name", ["dot", "diagonal", "multiply", "tocsc", "nonzero", "reshape"])
def test_methods_of_scipy_are_missing_with_a_hint(name, matrix):
    tensor = SparseTensor(matrix)
    with pytest.raises(AttributeError, match="Use to_scipy"):
        getattr(tensor, name)
    assert hasattr(to_scipy(tensor), name)


def test_conversions_are_functions(matrix):
    with pytest.raises(AttributeError, match=r"Call gossamer_formats\.to_scipy with it\."):
        _ = SparseTensor(matrix).to_scipy


def test_other_attributes_are_missing_without_a_hint(matrix):
    with pytest.raises(AttributeError, match=r"has no attribute 'density'\.$"):
        _ = SparseTensor(matrix).density
    assert not hasattr(SparseTensor(matrix), "__dlpack__")


def test_a_matrix_in_parts_has_the_operators_of_that_in_csr(matrix):
    A, dense = parts(matrix), matrix.toarray()
    assert np.allclose((2 * A).toarray(), 2 * dense)
    assert np.allclose((A * dense / -4).toarray(), dense * dense / -4)
    assert np.allclose((-A)[2:5].toarray(), -dense[2:5])
    for name in ("sum", "mean", "max", "min"):
        assert np.allclose(getattr(A, name)(axis=1), getattr(dense, name)(axis=1))
