"""Operands are read with one dtype and consistent sizes, and one of the sparse ones is iterated."""

import numpy as np
import pytest
import scipy.sparse

import gossamer
from gossamer.einsum_programs.einsum_operands import read_operands
from gossamer_ir.errors import ArgumentError

SPARSE = scipy.sparse.csr_array(np.eye(3, 4))
FULLER = scipy.sparse.csr_array(np.ones((3, 4)))


def read(subscripts, *operands):
    return read_operands(subscripts, operands, reducer="sum", epilogue=None)


def test_the_iterated_operand_has_the_fewest_elements():
    assert read("ij,ij->ij", FULLER, SPARSE).program.iterated == 1
    assert read("ij,j->i", FULLER, np.ones(4)).program.iterated == 0
    assert read("i,i->", np.ones(4), np.ones(4)).program.iterated is None


def test_an_operand_with_fewer_letters_is_looked_up():
    vector = scipy.sparse.csr_array(np.ones((1, 4)))
    assert read("ij,kj->i", FULLER, vector.toarray()).program.iterated == 0


def test_a_tensor_in_parts_is_read_in_csr():
    parts = gossamer.decompose(gossamer.SparseTensor(FULLER), "hyb", c=2, k=2)
    (tensor,) = read("ij->i", parts).sparse.values()
    np.testing.assert_array_equal(tensor.toarray(), FULLER.toarray())


def test_sizes_are_those_of_letters():
    assert read("ij,jk->ik", SPARSE, np.ones((4, 2))).sizes == {"i": 3, "j": 4, "k": 2}
    with pytest.raises(
        ArgumentError, match="'j' of operand 1 has the size 5; another operand has 4"
    ):
        read("ij,jk->ik", SPARSE, np.ones((5, 2)))
    with pytest.raises(
        ArgumentError, match=r"Operand 0 has the shape \(3, 4\); expected a dimension"
    ):
        read("i->i", SPARSE)


def test_operands_are_converted_to_one_dtype():
    operands = read("ij,jk->ik", SPARSE.astype(np.float32), np.ones((4, 2), np.float64))
    assert operands.program.dtype == "float64"
    assert operands.sparse[0].dtype == operands.dense[1].dtype == np.float64
