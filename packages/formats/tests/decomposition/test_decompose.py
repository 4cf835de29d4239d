"""Tensors in parts of composable formats, and of formats that a user lists."""

from __future__ import annotations

import numpy as np
import pytest
from decomposed_matrices import left_of_4, matrix, require_parts_of
from scipy import sparse

from gossamer_formats import SparseTensor, convert, decompose, from_arrays, from_scipy
from gossamer_ir.errors import FormatError


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
@pytest.mark.parametrize("parameters", [{}, {"k": 0}, {"c": 3, "k": 1}, {"c": 99, "k": 24}])
@pytest.mark.parametrize(
    "shape", [(30, 20), (0, 5), (5, 0), (0, 0), (1, 1), (7, 1), (1, 40), (40, 3)]
)
def test_the_parts_of_hyb_have_each_element_once(shape, parameters, index_dtype, dtype):
    stored = matrix(shape, dtype=dtype)
    stored.indices, stored.indptr = (
        array.astype(index_dtype) for array in (stored.indices, stored.indptr)
    )
    decomposition = decompose(from_scipy(stored), "hyb", **parameters)
    require_parts_of(decomposition, stored)
    assert decomposition.shape == shape
    assert decomposition.dtype == dtype
    assert decomposition.nnz == stored.nnz


@pytest.mark.parametrize("format", ["csc", "coo", "ell", "bsr"])
def test_permutations_refer_to_the_tensor_that_was_decomposed(format):
    parameters = {"block_rows": 2, "block_columns": 5} if format == "bsr" else {}
    source = from_scipy(matrix()).asformat(format, **parameters)
    values = source.storage.values
    for decomposition in (
        decompose(source, "hyb", c=2),
        decompose(source, [("sell", left_of_4), "csr"]),
    ):
        assert np.array_equal(decomposition.toarray(), source.toarray())
        for part in decomposition.parts:
            stored = part.permutation >= 0
            assert np.array_equal(
                part.tensor.storage.values[stored], values[part.permutation[stored]]
            )
        assert np.array_equal(decomposition.with_values(2 * values).toarray(), 2 * source.toarray())
        part_values = [part.tensor.storage.values for part in decomposition.parts]
        assert np.array_equal(decomposition.gather_values(part_values), values)


def test_columns_may_be_unsorted_and_borrowed():
    stored = matrix()
    stored.indices, stored.data = stored.indices.copy(), stored.data.copy()
    for row in range(30):
        row_slots = slice(stored.indptr[row], stored.indptr[row + 1])
        stored.indices[row_slots], stored.data[row_slots] = (
            stored.indices[row_slots][::-1],
            stored.data[row_slots][::-1],
        )
    for tensor in (from_scipy(stored), from_scipy(stored, copy=False), stored):
        assert np.array_equal(decompose(tensor, "hyb", c=2).toarray(), stored.toarray())


def test_only_matrices_without_duplicates_are_decomposed():
    cube = from_scipy(matrix()).asformat("coo").storage
    stored = sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    assert len(cube.shape) == 2
    with pytest.raises(FormatError) as caught:
        decompose(stored, "hyb")
    assert caught.value.code == "format.duplicate"


@pytest.mark.parametrize("parameters", [{}, {"c": 3, "k": 1}, {"c": 2, "k": 0}])
@pytest.mark.parametrize("shape", [(30, 20), (0, 5), (5, 0), (1, 40)])
def test_hyb_is_a_format_like_others(shape, parameters):
    stored = matrix(shape)
    decomposition = from_scipy(stored).asformat("hyb", **parameters)
    decomposition.check()
    assert decomposition.format == "hyb"
    assert np.array_equal(decomposition.toarray(), stored.toarray())
    for name in ("csr", "csc", "coo", "ell"):
        back = decomposition.asformat(name)
        assert back.format == name
        assert back.nnz >= stored.nnz
        assert np.array_equal(back.toarray(), stored.toarray())
    back = decomposition.tocsr()
    assert back is decomposition.tocsr()
    assert np.array_equal(back.arrays["indices"], stored.indices)
    assert np.array_equal(back.arrays["data"], stored.data)
    assert np.array_equal(decomposition.T.toarray(), stored.toarray().T)
    assert np.array_equal(decomposition.asformat("hyb", k=1).toarray(), stored.toarray())


def test_duplicates_are_added_before_a_matrix_is_stored_in_parts():
    arrays = {"indices_0": np.array([0, 0, 1]), "indices_1": np.array([1, 1, 0])}
    tensor = from_arrays("coo", (2, 2), data=np.array([1.0, 2.0, 4.0]), **arrays)
    assert tensor.asformat("hyb").toarray().tolist() == [[0.0, 3.0], [4.0, 0.0]]
    with pytest.raises(FormatError) as caught:
        tensor.asformat("hyb", duplicates="error")
    assert caught.value.code == "format.duplicate"


def test_a_conversion_to_several_tensors_says_what_to_call():
    with pytest.raises(FormatError, match=r"Call decompose\(tensor, 'hyb'\)") as caught:
        convert(SparseTensor(sparse.eye_array(3)), "hyb")
    assert caught.value.code == "format.composable"
