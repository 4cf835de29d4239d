"""SparseTensor: its contents are immutable, and conversions from and to SciPy."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

from gossamer_formats import (
    SparseTensor,
    borrow_scipy,
    from_arrays,
    from_scipy,
    read,
    require_valid_storage,
    to_scipy,
)
from gossamer_formats.memory.ownership import is_owned
from gossamer_formats.registry.operators import operator_of
from gossamer_formats.tensors.replace_values import replace_values
from gossamer_ir.errors import FormatError
from gossamer_ir.interchange.records import Stats


def test_a_tensor_describes_its_arrays(arrays):
    tensor = from_arrays("csr", (4, 5), **arrays)
    assert (tensor.shape, tensor.nnz, tensor.dtype) == ((4, 5), 6, "float32")
    assert dict(tensor.sizes) == {"m": 4, "n": 5, "nnz": 6}
    assert (tensor.description.axes[1].sorted, tensor.description.axes[1].unique) == (False, False)
    assert tensor.stats == Stats(rows=4, columns=5, nnz=6, longest_row=3, empty_rows=1)


@pytest.mark.parametrize(
    ("indices", "is_sorted", "is_unique"),
    [
        ([0, 2, 4, 0], True, True),
        ([0, 2, 2, 0], True, False),
        ([4, 2, 0, 0], False, True),
        ([4, 2, 4, 0], False, False),
    ],
)
def test_the_order_of_columns_is_recorded(indices, is_sorted, is_unique):
    indptr = np.array([0, 3, 3, 4, 4])
    tensor = from_arrays("csr", (4, 5), indptr=indptr, indices=np.array(indices), data=np.ones(4))
    axis = tensor.description.axes[1]
    assert (axis.sorted, axis.unique) == (is_sorted, is_unique)


def test_later_writes_to_the_source_do_not_reach_the_tensor(arrays):
    tensor = from_arrays("csr", (4, 5), **arrays)
    arrays["indices"][:] = 10**6
    assert tensor.arrays["indices"].max() == 4


def test_nobody_can_write_to_the_arrays(arrays):
    tensor = from_arrays("csr", (4, 5), **arrays)
    for array in tensor.arrays.values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)
    with pytest.raises(TypeError):
        tensor.arrays["indices"] = arrays["indices"]
    with pytest.raises(TypeError):
        tensor.sizes["m"] = 10


def test_arrays_of_a_tensor_are_shared_and_not_copied(arrays):
    tensor = from_arrays("csr", (4, 5), **arrays)
    other = tensor.astype("float64")
    assert other.arrays["indices"] is tensor.arrays["indices"]
    assert other.dtype == "float64"
    assert tensor.astype("float32") is tensor
    assert all(is_owned(array) for array in other.arrays.values())


def test_a_tensor_is_copied_and_pickled(arrays, dense):
    tensor = from_arrays("csr", (4, 5), **arrays)
    for other in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor)):
        assert other.description == tensor.description
        assert all(is_owned(array) for array in other.arrays.values())
        np.testing.assert_array_equal(to_scipy(other).toarray(), dense)


def test_a_value_too_large_for_float32_becomes_infinite():
    tensor = from_scipy(sparse.csr_array(np.array([[1e300]])))
    assert np.isinf(tensor.astype("float32").arrays["data"][0])


def test_values_have_one_of_some_dtypes(arrays):
    with pytest.raises(FormatError, match="expected float32, float64, float16, bfloat16 or int8"):
        from_arrays("csr", (4, 5), **arrays).astype("int64")
    for dtype in ("int64", "nonsense"):
        with pytest.raises(FormatError, match=f"The dtype is {dtype}; expected float32, float64"):
            from_scipy(sparse.eye_array(3), dtype=dtype)
        with pytest.raises(FormatError, match=f"The dtype is {dtype}; expected float32, float64"):
            read("any.mtx", dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_a_csr_matrix_keeps_its_dtypes_order_and_duplicates(dtype, index, arrays, dense):
    parts = (arrays["data"].astype(dtype), arrays["indices"], arrays["indptr"])
    matrix = sparse.csr_array(parts, shape=(4, 5))
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    tensor = from_scipy(matrix)
    assert tensor.nnz == 6
    assert tensor.arrays["indices"].dtype == tensor.arrays["indptr"].dtype == index
    np.testing.assert_array_equal(tensor.arrays["indices"], arrays["indices"])
    np.testing.assert_array_equal(to_scipy(tensor).toarray(), dense)
    assert to_scipy(tensor).dtype == dtype


@pytest.mark.parametrize("kind", ["coo", "csc", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_every_kind_of_scipy_matrix_is_converted(kind, make, dense):
    tensor = from_scipy(make(dense).asformat(kind))
    np.testing.assert_array_equal(to_scipy(tensor).toarray(), dense)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (3, 4)])
def test_matrices_without_nonzeros(shape):
    tensor = from_scipy(sparse.csr_array(shape, dtype=np.float32))
    assert (tensor.shape, tensor.nnz) == (shape, 0)
    assert tensor.stats == Stats(shape[0], shape[1], 0, 0, shape[0])
    assert to_scipy(tensor).shape == shape


def test_spare_slots_at_the_end_are_left_out():
    matrix = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
    matrix.data, matrix.indices = np.append(matrix.data, 9.0), np.append(matrix.indices, 77)
    assert from_scipy(matrix).nnz == 3


@pytest.mark.parametrize("dtype", [np.int8, np.int64, bool, np.longdouble])
def test_real_values_are_converted_on_request(dtype):
    matrix = sparse.csr_array(np.array([[0, 1], [1, 0]]).astype(dtype))
    assert from_scipy(matrix, dtype="float32").dtype == "float32"


def test_arrays_in_foreign_byte_order_are_converted(arrays, dense):
    swapped = {name: array.astype(array.dtype.newbyteorder()) for name, array in arrays.items()}
    tensor = from_arrays("csr", (4, 5), **swapped)
    np.testing.assert_array_equal(to_scipy(tensor).toarray(), dense)


def test_a_read_only_view_of_memory_that_somebody_can_write_to_is_copied():
    indices = np.array([0, 1])
    tensor = from_arrays(
        "csr",
        (2, 2),
        indptr=np.array([0, 1, 2]),
        indices=np.asarray(indices.data.toreadonly()),
        data=np.ones(2),
    )
    indices[1] = 10**9
    assert tensor.arrays["indices"].tolist() == [0, 1]


def random_matrix(rows, columns, *, dtype="float32", index="int32"):
    """Unsorted columns, duplicates, empty rows and empty columns."""
    random = np.random.default_rng(rows * 7 + columns)
    lengths = random.integers(0, 4 if columns else 1, rows) * (random.random(rows) < 0.7)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    count = int(indptr[-1])
    indices = random.integers(0, max(columns, 1), count).astype(index) // 2 * 2 % max(columns, 1)
    data = random.integers(1, 9, count).astype(dtype)
    return sparse.csr_array((data, indices.astype(index), indptr), shape=(rows, columns))


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(7, 5), (1, 9), (9, 1), (3, 0), (0, 3), (20, 20)])
def test_dense_and_transposed_matrices_are_those_of_scipy(shape, index):
    matrix = random_matrix(*shape, index=index)
    tensor = from_scipy(matrix)
    np.testing.assert_array_equal(tensor.toarray(), matrix.toarray())
    transposed = tensor.T
    require_valid_storage(transposed.storage)
    assert transposed.shape == shape[::-1]
    assert tensor.T is transposed
    np.testing.assert_array_equal(transposed.toarray(), matrix.toarray().T)
    np.testing.assert_array_equal(transposed.T.toarray(), matrix.toarray())
    axis = transposed.description.axes[-1]
    assert (axis.sorted, axis.unique) == (True, tensor.description.axes[-1].unique)


def test_a_tensor_has_the_attributes_of_an_array():
    tensor = from_scipy(random_matrix(30, 40, dtype="float64"))
    assert (tensor.ndim, tensor.dtype) == (2, np.dtype(np.float64))
    assert tensor.nbytes == 31 * 4 + tensor.nnz * 12
    assert tensor.astype(np.float32).dtype == tensor.astype("float32").dtype == np.float32
    assert repr(tensor).endswith(f"{tensor.nnz} nonzeros, float64, {tensor.nbytes} bytes)")


def test_an_operator_that_no_distribution_has_is_refused():
    with pytest.raises(FormatError) as caught:
        operator_of("determinant")
    assert caught.value.code == "format.operator"


def test_a_tensor_is_made_of_a_scipy_matrix():
    matrix = random_matrix(9, 8)
    tensor = SparseTensor(matrix)
    assert tensor.description == from_scipy(matrix).description
    np.testing.assert_array_equal(tensor.toarray(), matrix.toarray())
    np.testing.assert_array_equal(SparseTensor(matrix.tocoo()).toarray(), matrix.toarray())
    matrix.indices[0] = 8
    with pytest.raises(FormatError, match="Element 0 of 'indices' is 8"):
        SparseTensor(matrix)
    with pytest.raises(FormatError, match="expected a SparseTensor or a SciPy"):
        SparseTensor(np.ones((2, 2)))


def test_other_values_of_a_tensor_that_borrows_its_arrays_have_arrays_of_their_own():
    matrix = sparse.csr_array(np.array([[0.0, 2.0], [3.0, 4.0]]))
    tensor = SparseTensor.from_borrowed(borrow_scipy(matrix))
    changed = replace_values(tensor, np.ones(3))
    matrix.indices[0] = 7
    assert changed.toarray().tolist() == [[0, 1], [1, 1]]
    assert not changed.is_borrowed
    assert changed.pattern is not tensor.pattern
    with pytest.raises(FormatError):
        replace_values(tensor, np.ones(3))
