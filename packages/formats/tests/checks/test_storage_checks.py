"""Every way in which arrays are not a valid tensor, with the error code and what the message names."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

from gossamer_formats import (
    SparseTensor,
    Storage,
    convert,
    csr,
    from_arrays,
    from_scipy,
    require_valid_indices,
    require_valid_storage,
)
from gossamer_formats.checks.storage_checks import axis_facts
from gossamer_formats.descriptions.sell import sell
from gossamer_ir.errors import FormatError, UserError
from gossamer_ir.nodes import VScale
from gossamer_ir.script import parse_format

I32, I64, F32 = np.int32, np.int64, np.float32

BAD_ARRAYS = [
    ("format.value", {"indptr": {0: 1}}, "Element 0 of 'indptr' is 1"),
    ("format.value", {"indptr": {0: -2}}, "Element 0 of 'indptr' is -2"),
    (
        "format.monotone",
        {"indptr": {2: 5}},
        "Element 3 of 'indptr' is 4, which is less than",
    ),
    ("format.monotone", {"indptr": {1: -1}}, "Element 1 of 'indptr' is -1"),
    ("format.length", {"indptr": {4: 7}}, "indices has 6 elements; expected 7"),
    (
        "format.range",
        {"indices": {2: 5}},
        "Element 2 of 'indices' is 5; expected a value from 0 to 4",
    ),
    ("format.range", {"indices": {3: -1}}, "Element 3 of 'indices' is -1"),
    ("format.length", {"indptr": np.zeros(4, I32)}, "indptr has 4 elements; expected 5"),
    ("format.length", {"indptr": np.zeros(0, I32)}, "indptr has 0 elements; expected 5"),
    ("format.length", {"data": np.zeros(5, F32)}, "data has 5 elements; expected 6"),
    ("format.dimensions", {"indices": np.zeros((6, 1), I32)}, "indices has 2 dimensions"),
    ("format.dimensions", {"indptr": np.zeros((), I32)}, "indptr has 0 dimensions"),
    ("format.dimensions", {"data": np.zeros((6, 2), F32)}, "data has 2 dimensions"),
    ("format.dtype", {"indices": np.zeros(6)}, "indices has the dtype float64"),
    ("format.dtype", {"indptr": np.zeros(5, np.uint32)}, "indptr has the dtype uint32"),
    ("format.dtype", {"data": np.zeros(6, np.complex64)}, "data has the dtype complex64"),
    ("format.dtype", {"data": np.zeros(6, np.int16)}, "data has the dtype int16"),
    ("format.dtype", {"data": np.array(["a"] * 6)}, "data has the dtype <U1"),
]


@pytest.mark.parametrize(("code", "changes", "named"), BAD_ARRAYS)
def test_bad_arrays_are_refused(code, changes, named, changed):
    with pytest.raises(FormatError) as caught:
        from_arrays("csr", (4, 5), **changed(**changes))
    assert caught.value.code == code
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "shape", [(4,), (4, 5, 6), (-1, 5), (4, -5), (4.0, 5), 4, None, (4, 2**63)]
)
def test_bad_shapes_are_refused(shape, arrays):
    with pytest.raises(FormatError) as caught:
        from_arrays("csr", shape, **arrays)
    assert caught.value.code == "format.shape"


def test_an_unknown_format_lists_those_there_are(arrays):
    with pytest.raises(
        FormatError, match="no format 'rows'; expected one of: bitmask, blocked_sell, bsr"
    ) as caught:
        from_arrays("rows", (4, 5), **arrays)
    assert caught.value.code == "format.unknown"


@pytest.mark.parametrize("names", [(), ("indptr", "indices"), ("indptr", "indices", "values")])
def test_missing_and_unknown_arrays_are_named(names):
    with pytest.raises(FormatError, match="expected data, indices, indptr") as caught:
        from_arrays("csr", (0, 0), **dict.fromkeys(names, np.zeros(0, I32)))
    assert caught.value.code == "format.arrays"


@pytest.mark.parametrize(
    ("promise", "code"),
    [
        ({"sorted": True, "unique": False}, "format.sorted"),
        ({"sorted": False, "unique": True}, "format.unique"),
    ],
)
def test_a_promised_order_is_checked(promise, code, arrays):
    storage = Storage(csr(**promise), {"m": 4, "n": 5, "nnz": 6}, arrays)
    with pytest.raises(FormatError) as caught:
        SparseTensor(storage)
    assert caught.value.code == code


def test_rows_of_groups_are_all_rows():
    tensor = from_scipy(sparse.csr_array(np.ones((4, 3)))).asformat("row_groups", height=3)
    assert tensor.arrays["rows"].tolist() == [0, 1, 2, 3, 4, 5]
    arrays = {**tensor.arrays, "rows": np.array([0, 1, 2, 3, 4, 6], np.int32)}
    with pytest.raises(FormatError, match=r"Element 5 of 'rows' is 6; .* from 0 to 5\.") as caught:
        require_valid_storage(tensor.storage._replace(arrays=arrays))
    assert caught.value.code == "format.range"


def test_rows_of_slices_are_distinct():
    matrix = convert(from_scipy(sparse.csr_array(np.eye(3, dtype=np.float32))), "sell", height=2)
    arrays = {name: np.array(array) for name, array in matrix.tensor.arrays.items()}
    arrays["rows"][3] = 1
    with pytest.raises(FormatError, match="Element 3 of 'rows' is 1, as is element 1") as caught:
        SparseTensor(Storage(sell(), matrix.tensor.sizes, arrays))
    assert caught.value.code == "format.distinct"


def test_the_last_offset_is_the_number_of_nonzeros(changed):
    arrays = changed(indptr={4: 7})
    with pytest.raises(FormatError, match="Element 4 of 'indptr' is 7; expected 6") as caught:
        SparseTensor(Storage(csr(), {"m": 4, "n": 5, "nnz": 6}, arrays))
    assert caught.value.code == "format.value"


def test_negative_sizes_of_a_storage_are_refused(arrays):
    with pytest.raises(FormatError) as caught:
        SparseTensor(Storage(csr(), {"m": 4, "n": -5, "nnz": 6}, arrays))
    assert caught.value.code == "format.shape"


@pytest.mark.parametrize("array", [None, [0, 1, 2], "indices"])
def test_an_array_that_is_not_of_numpy_is_refused_by_name(array):
    storage = from_scipy(sparse.eye_array(2)).storage
    replaced = Storage(storage.description, storage.sizes, {**storage.arrays, "indices": array})
    with pytest.raises(FormatError, match="The array 'indices' is") as caught:
        require_valid_storage(replaced)
    assert caught.value.code == "format.arrays"


@pytest.mark.parametrize("size", [None, "2", 2.0, True, -1])
def test_a_size_that_is_not_an_integer_is_refused_by_name(size):
    storage = from_scipy(sparse.eye_array(2)).storage
    replaced = Storage(storage.description, {**storage.sizes, "n": size}, storage.arrays)
    with pytest.raises(FormatError, match="The size n is") as caught:
        require_valid_storage(replaced)
    assert caught.value.code == "format.shape"


def test_padding_is_allowed_only_where_the_axis_is_padded():
    slots = np.array([0, 3], I64)
    require_valid_indices(slots, length=3, count=2, is_padded=True)
    with pytest.raises(FormatError):
        require_valid_indices(slots, length=3, count=2)


def test_no_column_is_in_range_of_a_matrix_without_columns():
    with pytest.raises(FormatError, match="expected an empty array"):
        require_valid_indices(np.array([0], I64), length=0, count=1)


def _tampered(kind: str, name: str):
    matrix = sparse.random_array((6, 8), density=0.4, format=kind, rng=np.random.default_rng(1))
    getattr(matrix, name)[1] = 10**6
    return matrix


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("csr", "indices", "format.range"),
        ("csr", "indptr", "format.monotone"),
        ("csc", "indices", "format.range"),
        ("csc", "indptr", "format.monotone"),
        ("bsr", "indices", "format.range"),
        ("coo", "row", "format.range"),
        ("coo", "col", "format.range"),
    ],
)
def test_a_matrix_somebody_has_written_to_is_refused_before_its_conversion(kind, name, code):
    with pytest.raises(FormatError) as caught:
        from_scipy(_tampered(kind, name))
    assert caught.value.code == code


REPLACED = [
    ("csr", "data", [1.0], "format.kind"),
    ("csr", "indptr", None, "format.kind"),
    ("csc", "data", np.ones(1), "format.length"),
    ("csc", "indices", [1], "format.kind"),
    ("bsr", "data", np.ones((1, 1, 1)), "format.length"),
    ("bsr", "data", np.ones((99, 0, 0)), "format.length"),
    ("bsr", "data", np.ones(5), "format.length"),
    ("coo", "data", [1.0], "format.kind"),
    ("dia", "data", np.ones((30, 8)), "format.length"),
    ("dia", "data", np.ones((1, 8)), "format.length"),
    ("dia", "offsets", np.array([0]), "format.length"),
    ("dia", "offsets", None, "format.kind"),
    ("dok", "_dict", {(99, 99): 1.0}, "format.conversion"),
]


@pytest.mark.parametrize(("kind", "name", "value", "code"), REPLACED)
def test_a_matrix_whose_arrays_were_replaced_is_refused(kind, name, value, code):
    matrix = sparse.random_array((6, 8), density=0.4, format=kind, rng=np.random.default_rng(1))
    setattr(matrix, name, value)
    with pytest.raises(FormatError) as caught:
        from_scipy(matrix)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("matrix", "code"),
    [
        (np.eye(3), "format.kind"),
        ([[1.0]], "format.kind"),
        (None, "format.kind"),
        (sparse.coo_array(np.ones(3)), "format.dimensions"),
        (sparse.eye_array(3, dtype=np.int64), "format.dtype"),
        (sparse.eye_array(3, dtype=np.complex128), "format.dtype"),
        (sparse.eye_array(3, dtype=bool), "format.dtype"),
        (sparse.coo_array((10**14, 3)), "format.memory"),
    ],
)
def test_what_is_not_a_real_sparse_matrix_is_refused(matrix, code):
    with pytest.raises(UserError) as caught:
        from_scipy(matrix)
    assert caught.value.code == code


def test_complex_values_are_not_converted():
    with pytest.raises(FormatError, match="complex128; expected real numbers"):
        from_scipy(sparse.eye_array(3, dtype=np.complex128), dtype="float64")


def test_a_size_that_is_no_arithmetic_is_refused_by_name(arrays):
    axis = replace(csr().axes[0], length=VScale())
    description = replace(csr(), axes=(axis, csr().axes[1]))
    with pytest.raises(UserError, match="VScale") as caught:
        SparseTensor(Storage(description, {"m": 4, "n": 5, "nnz": 6}, arrays))
    assert caught.value.code == "format.size"


def test_contents_are_asked_of_a_check_and_the_culprit_is_still_named(arrays):
    storage = Storage(csr(sorted=False, unique=False), {"m": 4, "n": 5, "nnz": 6}, arrays)
    asked, answers = [], [True, False, True, False]

    def check(facts, sizes, arrays):
        asked.append((facts, dict(sizes), sorted(arrays)))
        return answers.pop(0)

    require_valid_storage(storage, check=check)
    require_valid_storage(storage, check=check)
    assert asked[0] == (
        axis_facts(storage.description),
        storage.sizes,
        ["data", "indices", "indptr"],
    )
    arrays["indices"] = arrays["indices"].copy()
    arrays["indices"][2] = 5
    require_valid_storage(storage, check=check)  # taken at its word
    with pytest.raises(FormatError, match="Element 2 of 'indices' is 5"):
        require_valid_storage(storage, check=check)


def test_shapes_and_unsorted_uniqueness_are_no_matter_of_a_check(arrays):
    sizes = {"m": 4, "n": 5, "nnz": 6}
    unique = Storage(csr(sorted=False, unique=True), sizes, arrays)
    for storage in (unique, unique._replace(sizes={**sizes, "m": 5})):
        with pytest.raises(FormatError):
            require_valid_storage(storage, check=lambda *_: True)


def test_axes_promise_facts():
    assert axis_facts(csr(sorted=False))[:2] == axis_facts(csr())[:2]
    assert len(axis_facts(csr(sorted=False))) == 2


def masked(**changes):
    """Arrays of two rows of 70 columns in the format bitmask: columns 0, 3 and 69, and column 64."""
    arrays = {
        "indptr": np.array([0, 2, 3, 3, 4], I32),
        "words": np.array([0b1001, 1 << 5, 0, 1], np.uint64),
        "data": np.array([1, 2, 3, 4], F32),
    }
    return arrays | changes


def test_a_bitmask_has_the_elements_whose_bits_are_set():
    dense = np.zeros((2, 70))
    dense[[0, 0, 0, 1], [0, 3, 69, 64]] = [1, 2, 3, 4]
    np.testing.assert_array_equal(from_arrays("bitmask", (2, 70), **masked()).toarray(), dense)


BAD_MASKS = [
    (
        "format.bits",
        {"words": [9, 32, 1, 1]},
        "Element 2 of 'words' is 0b1, which has 1 bit set; expected 0",
    ),
    (
        "format.bits",
        {"words": [8, 32, 0, 1]},
        "Element 0 of 'words' is 0b1000, which has 1 bit set; expected 2",
    ),
    (
        "format.bits",
        {"indptr": [0, 1, 3, 3, 4]},
        "Element 0 of 'words' is 0b1001, which has 2 bits set",
    ),
    (
        "format.monotone",
        {"indptr": [0, 3, 2, 3, 4]},
        "Element 2 of 'indptr' is 2, which is less than",
    ),
    ("format.length", {"words": [9, 32, 0]}, "words has 3 elements; expected 4, one per fiber"),
    ("format.length", {"data": [1.0, 2.0]}, "data has 2 elements; expected 4"),
]


@pytest.mark.parametrize(("code", "changes", "named"), BAD_MASKS)
def test_a_bitmask_with_other_bits_than_values_is_refused(code, changes, named):
    dtypes = {"words": np.uint64, "indptr": I32, "data": F32}
    changed = {name: np.array(values, dtypes[name]) for name, values in changes.items()}
    with pytest.raises(FormatError) as caught:
        from_arrays("bitmask", (2, 70), **masked(**changed))
    assert caught.value.code == code
    assert named in str(caught.value)


def test_words_of_another_dtype_are_refused():
    with pytest.raises(FormatError, match="words has the dtype int64") as caught:
        from_arrays("bitmask", (2, 70), **masked(words=np.array([9, 32, 0, 1])))
    assert caught.value.code == "format.dtype"


NIBBLES = """
@T.format
def nibbles(
    data: T.handle, indptr: T.handle, words: T.handle, m: T.int64, n: T.int64, nnz: T.int64,
) -> None:
    I = T.sp.dense_fixed(m)
    W = T.sp.dense_fixed((n + 3) // 4, parent=I)
    J = T.sp.bitmask_varied(W, (LENGTH, nnz), (indptr, words), "int32", words_dtype="uint8")
    A = T.sp.match_buffer(data, (I, W, J), "float32")
    T.sp.map(lambda i, w, j: (i, w * 4 + j), shape=(m, n))
"""


def test_a_bit_that_is_not_below_the_length_is_refused():
    described = parse_format(NIBBLES.replace("LENGTH", "4"))
    tensor = convert(from_scipy(sparse.csr_array(np.eye(3, 6, 2, F32))), described).tensor
    assert tensor.arrays["words"].tolist() == [4, 0, 8, 0, 0, 1]
    words = np.array([4, 0, 16, 0, 0, 1], np.uint8)
    with pytest.raises(
        FormatError, match="Element 2 of 'words' is 0b10000, which has bit 4 set"
    ) as caught:
        from_arrays(described, (3, 6), **{**tensor.arrays, "words": words})
    assert caught.value.code == "format.bits"


def test_a_word_has_a_bit_for_each_coordinate():
    described = parse_format(NIBBLES.replace("LENGTH", "9"))
    with pytest.raises(FormatError, match="has 9 coordinates, but a word of uint8") as caught:
        convert(from_scipy(sparse.csr_array(np.eye(3, 6, 2, F32))), described)
    assert caught.value.code == "format.word"


def test_a_bitmask_cannot_keep_duplicates():
    arrays = {"indices_0": np.array([0, 0]), "indices_1": np.array([1, 1])}
    tensor = from_arrays("coo", (1, 2), data=np.ones(2, F32), **arrays)
    assert convert(tensor, "bitmask").tensor.arrays["data"].tolist() == [2.0]
    with pytest.raises(FormatError, match="one slot for each element") as caught:
        convert(tensor, "bitmask", duplicates="keep")
    assert caught.value.code == "format.duplicate"
