"""Operators whose results have other patterns are refused with a hint."""

import pytest
import scipy.sparse

from gossamer_formats import SparseTensor
from gossamer_ir.errors import UnsupportedError


@pytest.mark.parametrize(
    "call",
    [
        lambda tensor: tensor + tensor,
        lambda tensor: 1 - tensor,
        lambda tensor: tensor * tensor,
        lambda tensor: tensor * scipy.sparse.eye_array(7),
        lambda tensor: tensor**2,
        lambda tensor: tensor > 0,
    ],
)
def test_other_operators_are_refused_with_a_hint(call, matrix):
    with pytest.raises(UnsupportedError, match="Use to_scipy") as raised:
        call(SparseTensor(matrix))
    assert raised.value.code == "tensor.operator"
