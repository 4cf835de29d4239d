"""Products with operands of 16 and 8 bits: exact for small integers, and rounded as their sums are."""

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer_formats import decompose, from_scipy
from gossamer_formats.internal_api import converted_values
from gossamer_ir.core.bfloat16 import decode_bfloat16
from gossamer_ir.errors import ArgumentError

SUMS = {"float16": "float32", "bfloat16": "float32", "int8": "int32"}


def sparse_integers(rows, columns):
    rng = np.random.default_rng(rows)
    return rng.integers(-5, 6, (rows, columns)) * (rng.random((rows, columns)) < 0.2)


def integers(*shape):
    return np.random.default_rng(shape[0]).integers(-5, 6, shape)


def stored(array, dtype):
    return converted_values(array.astype(np.float64), "float64", dtype)


def tensor_of(dense, dtype):
    return from_scipy(sparse.csr_array(dense.astype(np.float64)), dtype=dtype)


@pytest.mark.parametrize("dtype", SUMS)
@pytest.mark.parametrize("features", [1, 3, 17, 64])
def test_products_are_added_in_a_wider_dtype(features, dtype):
    dense, B = sparse_integers(40, 30), integers(30, features)
    tensor = tensor_of(dense, dtype)
    # The second call has a plan, where there is one.
    for _ in range(2):
        product = gs.spmm(tensor, stored(B, dtype))
        assert product.dtype == SUMS[dtype]
        np.testing.assert_array_equal(product, dense @ B)
        vector = gs.spmv(tensor, stored(B[:, 0], dtype))
        assert vector.dtype == SUMS[dtype]
        np.testing.assert_array_equal(vector, dense @ B[:, 0])
    np.testing.assert_array_equal(tensor @ stored(B, dtype), dense @ B)


@pytest.mark.parametrize("dtype", SUMS)
def test_sampled_products_are_added_in_a_wider_dtype(dtype):
    dense, X, Y = sparse_integers(40, 30), integers(40, 9), integers(30, 9)
    for _ in range(2):
        values = gs.sddmm(tensor_of(dense, dtype), stored(X, dtype), stored(Y, dtype))
        assert values.dtype == SUMS[dtype]
        np.testing.assert_array_equal(values, (X @ Y.T)[np.nonzero(dense)])


@pytest.mark.parametrize("dtype", SUMS)
@pytest.mark.parametrize(
    ("format", "sizes"),
    [("coo", {}), ("ell", {}), ("sell", {}), ("bsr", {"block_rows": 4, "block_columns": 5})],
)
def test_a_matrix_may_have_any_format(format, sizes, dtype):
    dense, B = sparse_integers(40, 30), integers(30, 8)
    tensor = tensor_of(dense, dtype).asformat(format, **sizes)
    np.testing.assert_array_equal(gs.spmm(tensor, stored(B, dtype)), dense @ B)
    np.testing.assert_array_equal(gs.spmv(tensor, stored(B[:, 1], dtype)), dense @ B[:, 1])


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_matrix_may_be_in_parts(dtype):
    dense, B = sparse_integers(40, 30), integers(30, 8)
    parts = decompose(tensor_of(dense, dtype), "hyb", c=2)
    np.testing.assert_array_equal(gs.spmm(parts, stored(B, dtype)), dense @ B)


def test_a_matrix_of_scipy_may_have_int8():
    dense, B = sparse_integers(40, 30), integers(30, 8)
    product = gs.spmm(sparse.csr_array(dense.astype(np.int8)), B.astype(np.int8))
    assert product.dtype == "int32"
    np.testing.assert_array_equal(product, dense @ B)


def test_a_sum_of_half_precision_is_not_rounded_to_it():
    # In float16 the sum of 4096 ones stays at 2048; products of the largest int8 do not fit in it.
    ones = tensor_of(np.ones((1, 4096)), "float16")
    assert gs.spmv(ones, np.ones(4096, np.float16))[0] == 4096
    largest = tensor_of(np.full((1, 100), 127), "int8")
    assert gs.spmv(largest, np.full(100, 127, np.int8))[0] == 127 * 127 * 100


def test_fractions_are_those_of_the_operands():
    values = np.random.default_rng(0).standard_normal((8, 20))
    tensor = tensor_of(values, "bfloat16")
    B = stored(np.random.default_rng(1).standard_normal((20, 5)), "bfloat16")
    left, right = tensor.toarray().astype(float), decode_bfloat16(B).astype(float)
    bound = 20 * np.finfo(np.float32).eps * (abs(left) @ abs(right))
    assert (abs(gs.spmm(tensor, B) - left @ right) <= bound).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_a_conversion_by_kernels_keeps_the_values(dtype):
    # Enough values that kernels are compiled for the conversions.
    dense = np.zeros((600, 500))
    dense[:, ::2] = np.random.default_rng(0).integers(-9, 10, (600, 250)) + 0.5 * (dtype != "int8")
    tensor = tensor_of(dense, dtype)
    for format in ("csc", "ell", "coo"):
        converted = tensor.asformat(format)
        assert converted.value_dtype == dtype
        np.testing.assert_array_equal(converted.toarray(), dense)


@pytest.mark.parametrize("dtype", SUMS)
def test_a_2_4_matrix_is_compressed_once(dtype):
    pruned = gs.prune(tensor_of(integers(17, 34), dtype), "2:4")
    B = integers(34, 9)
    kept = []
    for _ in range(2):
        product = gs.matmul_24(pruned, stored(B, dtype))
        assert product.dtype == SUMS[dtype]
        np.testing.assert_array_equal(product, pruned.toarray().astype(int) @ B)
        kept.append(list(map(id, pruned.memo.values())))
    assert kept[0] == kept[1] != []


@pytest.mark.parametrize(
    "call",
    [
        lambda A, B: gs.spmm(A, stored(B, "float16"), alpha=2.0),
        lambda A, B: gs.spmm(A, B.astype(np.float32)),
        lambda A, B: gs.spmm(A, stored(B, "float16"), out=np.empty((4, 2), np.float16)),
        lambda A, B: gs.spmm(A.astype("bfloat16"), stored(B, "float16")),
        lambda A, B: gs.attention(A, *[stored(B, "float16")] * 3),
        lambda A, B: gs.matmul_24(A.astype("bfloat16"), B.astype(np.float32)),
    ],
    ids=["factor", "operand", "result", "bits", "attention", "n_m"],
)
def test_other_dtypes_are_refused(call):
    A = tensor_of(np.diag([1, 2, 0, 4]), "float16")
    with pytest.raises(ArgumentError) as caught:
        call(A, integers(4, 2))
    assert caught.value.code == "operand.dtype"
