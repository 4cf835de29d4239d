"""Tensors from and to SciPy in the formats that both have, copied or shared."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

from gossamer_formats import SparseTensor, convert, from_arrays, from_scipy, to_scipy
from gossamer_ir.errors import FormatError

SHARED = ("csr", "csc", "bsr", "coo", "dia")


def matrix_in(kind, *, made=sparse.csr_array):
    """A 6 by 8 matrix in a format of SciPy."""
    matrix = made(sparse.random_array((6, 8), density=0.3, rng=np.random.default_rng(4)))
    return matrix.tobsr(blocksize=(2, 4)) if kind == "bsr" else matrix.asformat(kind)


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("made", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [None, "float32"])
def test_a_format_is_kept_on_request(kind, made, dtype):
    matrix = matrix_in(kind, made=made)
    tensor = from_scipy(matrix, format="same", dtype=dtype)
    assert tensor.format == kind
    assert not tensor.is_borrowed
    back = to_scipy(tensor)
    assert (back.format, back.dtype) == (kind, dtype or "float64")
    np.testing.assert_array_equal(back.toarray(), matrix.toarray().astype(back.dtype))
    assert from_scipy(matrix).format == "csr"
    assert from_scipy(matrix, format="coo").format == "coo"


@pytest.mark.parametrize("kind", ["dok", "lil"])
def test_formats_that_only_scipy_has_become_csr(kind):
    assert from_scipy(matrix_in(kind), format="same").format == "csr"


@pytest.mark.parametrize("kind", SHARED)
def test_arrays_are_shared_in_both_directions(kind):
    matrix = matrix_in(kind)
    tensor = from_scipy(matrix, format="same", copy=False)
    assert tensor.is_borrowed
    assert np.shares_memory(tensor.arrays["data"], matrix.data)
    matrix.data[:] = 3.0
    assert tensor.arrays["data"].min() == 3.0
    with pytest.raises(ValueError, match="read-only"):
        tensor.arrays["data"][0] = 1.0
    owned = from_scipy(matrix, format="same")
    shared = to_scipy(owned, copy=False)
    assert np.shares_memory(shared.data, owned.arrays["data"])
    assert not shared.data.flags.writeable
    assert not np.shares_memory(to_scipy(owned).data, owned.arrays["data"])


@pytest.mark.parametrize(
    ("matrix", "options"),
    [
        (matrix_in("csc"), {}),
        (matrix_in("dok"), {"format": "same"}),
        (matrix_in("csr"), {"format": "coo"}),
        (matrix_in("csr"), {"dtype": "float32"}),
        (sparse.dia_array((np.ones((1, 2)), [0]), shape=(2, 3)), {"format": "same"}),
    ],
)
def test_what_must_be_converted_is_not_shared(matrix, options):
    with pytest.raises(FormatError, match="cannot") as caught:
        from_scipy(matrix, copy=False, **options)
    assert caught.value.code == "format.copy"


def test_a_tensor_that_must_be_converted_for_scipy_is_not_shared():
    tensor = convert(from_scipy(matrix_in("csr")), "ell").tensor
    assert to_scipy(tensor).format == "csr"
    with pytest.raises(FormatError) as caught:
        to_scipy(tensor, copy=False)
    assert caught.value.code == "format.copy"


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
def test_a_borrowed_tensor_is_checked_whenever_it_is_used(kind):
    matrix = matrix_in(kind)
    tensor = from_scipy(matrix, format="same", copy=False)
    expected = matrix.toarray()
    np.testing.assert_array_equal(tensor.toarray(), expected)
    np.testing.assert_array_equal(tensor.T.toarray(), expected.T)
    np.testing.assert_array_equal(tensor.astype("float32").toarray(), expected.astype("float32"))
    assert tensor.stats == from_scipy(matrix, format="same").stats
    index = matrix.coords[1] if kind == "coo" else matrix.indices
    index[0] = 99
    for use in (
        SparseTensor.toarray,
        lambda tensor: tensor.T,
        lambda tensor: tensor.stats,
        lambda tensor: tensor.astype("float32"),
        lambda tensor: tensor.asformat("ell"),
        lambda tensor: SparseTensor(tensor.storage),
    ):
        with pytest.raises(FormatError, match="is 99"):
            use(tensor)


@pytest.mark.parametrize(
    ("kind", "code", "break_it"),
    [
        ("csc", "format.range", lambda matrix: matrix.indices.__setitem__(0, 6)),
        ("bsr", "format.range", lambda matrix: matrix.indices.__setitem__(0, -1)),
        ("bsr", "format.length", lambda matrix: setattr(matrix, "data", np.ones((2, 2)))),
        ("bsr", "format.length", lambda matrix: setattr(matrix, "data", np.ones((9, 0, 2)))),
        ("csc", "format.monotone", lambda matrix: matrix.indptr.__setitem__(1, 9)),
        ("csc", "format.length", lambda matrix: setattr(matrix, "indptr", np.zeros(2, np.int32))),
        ("coo", "format.range", lambda matrix: matrix.coords[1].__setitem__(0, 8)),
        ("coo", "format.kind", lambda matrix: setattr(matrix, "coords", ([0], [0]))),
        ("dia", "format.length", lambda matrix: setattr(matrix, "data", np.ones((1, 8)))),
        ("dia", "format.kind", lambda matrix: setattr(matrix, "offsets", [0])),
        ("csc", "format.dtype", lambda matrix: setattr(matrix, "data", matrix.data > 0)),
    ],
)
@pytest.mark.parametrize("copy", [True, False])
def test_arrays_that_were_damaged_are_refused(kind, code, break_it, copy):
    matrix = matrix_in(kind)
    break_it(matrix)
    with pytest.raises(FormatError) as caught:
        from_scipy(matrix, format="same", copy=copy)
    assert caught.value.code == code


def test_the_order_of_coordinates_is_recorded():
    arrays = (np.ones(3), np.array([2, 0, 2]), np.array([0, 2, 3]))
    axis = from_scipy(sparse.csc_array(arrays, shape=(3, 2)), format="same").description.axes[1]
    assert (axis.sorted, axis.unique) == (False, True)
    arrays = (np.ones(3), np.array([2, 0, 2]), np.array([0, 3, 3]))
    axis = from_scipy(sparse.csc_array(arrays, shape=(3, 2)), format="same").description.axes[1]
    assert (axis.sorted, axis.unique) == (False, False)
    coo = sparse.coo_array((np.ones(2), (np.array([1, 0]), np.array([0, 0]))), shape=(2, 2))
    tensor = from_scipy(coo, format="same")
    assert not tensor.description.axes[1].sorted
    unsorted = {"indptr": np.array([0, 2]), "indices": np.array([2, 0]), "data": np.ones(2)}
    axis = from_arrays("csc", (3, 1), **unsorted).description.axes[1]
    assert (axis.sorted, axis.unique) == (False, True)
    np.testing.assert_array_equal(tensor.asformat("csr").toarray(), coo.toarray())


@pytest.mark.parametrize("shape", [(5,), (3, 4, 2)])
def test_coordinates_of_any_number_of_dimensions(shape):
    dense = np.zeros(shape)
    dense.flat[[1, 3, 4]] = (1.0, 2.0, 3.0)
    tensor = from_scipy(sparse.coo_array(dense), format="same")
    assert (tensor.format, tensor.shape) == ("coo", shape)
    np.testing.assert_array_equal(tensor.toarray(), dense)
    np.testing.assert_array_equal(to_scipy(tensor).toarray(), dense)
    np.testing.assert_array_equal(to_scipy(tensor.asformat("csf")).toarray(), dense)
    with pytest.raises(FormatError, match="expected 2") as caught:
        from_scipy(sparse.coo_array(dense))
    assert caught.value.code == "format.dimensions"


def test_diagonals_that_are_shorter_or_longer_than_the_matrix_is_wide():
    for width in (2, 3, 5):
        matrix = sparse.dia_array((np.arange(1.0, 2 * width + 1).reshape(2, -1), [0, -1]), (4, 3))
        tensor = from_scipy(matrix, format="same")
        np.testing.assert_array_equal(tensor.toarray(), matrix.toarray())


def test_a_description_of_the_same_name_is_converted():
    stored = from_scipy(matrix_in("csr")).asformat("ell").storage
    renamed = replace(stored.description, name="csr")
    tensor, expected = (
        SparseTensor(stored._replace(description=renamed)),
        from_scipy(matrix_in("csr")),
    )
    np.testing.assert_array_equal(to_scipy(tensor).toarray(), expected.toarray())
    np.testing.assert_array_equal(tensor.T.toarray(), expected.toarray().T)
    assert tensor.stats == expected.stats
    assert "indptr" in tensor.asformat("csr").arrays


def test_a_tensor_is_not_made_dense_implicitly():
    tensor = from_scipy(matrix_in("csr"))
    np.testing.assert_array_equal(tensor.todense(), tensor.toarray())
    for use, hint in (
        (np.asarray, r"call toarray\(\)"),
        (len, r"shape\[0\] or nnz"),
        (list, "toarray"),
        (bool, "nnz != 0"),
    ):
        for made in (tensor, tensor.asformat("hyb")):
            with pytest.raises(TypeError, match=f"Hint: .*{hint}"):
                use(made)


def test_values_have_one_of_some_dtypes_in_every_format():
    with pytest.raises(FormatError, match="expected float32, float64, float16 or int8"):
        from_arrays("coo", (2,), indices_0=np.array([1]), data=np.array([1]))
