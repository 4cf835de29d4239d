"""Every kind of invalid operand: the error code, the operand that it names, and no write to the output."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

import gossamer as gs
from gossamer_formats import SparseTensor, Storage, csr
from gossamer_ir.core.build import index
from gossamer_ir.errors import UserError

A = sparse.csr_array(np.array([[1, 0, 2], [0, 3, 0]], dtype=np.float32))
B = np.ones((3, 4), dtype=np.float32)
X = np.ones(3, dtype=np.float32)


def tampered(name, at, value):
    matrix = A.copy()
    getattr(matrix, name)[at] = value
    return matrix


BAD_SPMM = [
    ("operand.dtype", A, B.astype("float64"), "'B' has the dtype float64, the matrix float32"),
    ("operand.dtype", A.astype("float64"), B, "'B' has the dtype float32, the matrix float64"),
    ("operand.dtype", A, B.astype("int32"), "int32"),
    ("operand.dtype", A, B.astype("complex64"), "complex64"),
    ("operand.dtype", A, B.astype("float16"), "float16"),
    ("operand.shape", A, np.ones((4, 3), dtype=np.float32), "(4, 3); expected (3, any)"),
    ("operand.shape", A, B.reshape(1, 3, 4), "'B' has the shape (1, 3, 4)"),
    ("operand.shape", A, B.reshape(3, 2, 2), "'B' has the shape (3, 2, 2)"),
    ("operand.kind", A, B.tolist(), "'B' has the type 'list'; expected a NumPy array"),
    ("operand.kind", A, None, "'B' has the type 'NoneType'"),
    ("operand.kind", A, sparse.csr_array(B), "'B' has the type 'csr_array'"),
    ("operand.kind", A, np.ma.masked_array(B), "'B' has the type 'MaskedArray'"),
    ("format.kind", B, B, "The matrix has the type 'ndarray'"),
    ("format.dimensions", sparse.csr_array(X), B, "The matrix has 1 dimension; expected 2"),
    ("format.dtype", A.astype(np.int64), B, "int64"),
    ("format.dtype", A.astype(np.complex64), B, "complex64"),
    ("format.value", tampered("indptr", 0, 1), B, "Element 0 of 'indptr' is 1"),
    ("format.monotone", tampered("indptr", 1, -1), B, "Element 1 of 'indptr' is -1"),
    ("format.monotone", tampered("indptr", 1, 9), B, "Element 2 of 'indptr' is 3"),
    ("format.range", tampered("indices", 2, 3), B, "Element 2 of 'indices' is 3"),
    ("format.range", tampered("indices", 0, -1), B, "Element 0 of 'indices' is -1"),
    ("format.dimensions", sparse.csr_array(X), B, "The matrix has 1 dimension; expected 2"),
]


@pytest.mark.parametrize(("code", "matrix", "dense", "named"), BAD_SPMM)
def test_bad_operands_of_spmm(code, matrix, dense, named):
    out = np.full((2, 4), 7, dtype=np.float32)
    with pytest.raises(UserError) as caught:
        gs.spmm(matrix, dense, out=out)
    assert caught.value.code == code
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (out == 7).all()


BAD_SPMV = [
    ("operand.shape", A, B, "'x' has the shape (3, 4); expected (3,)"),
    ("operand.shape", A, np.ones(2, dtype=np.float32), "'x' has the shape (2,)"),
    ("operand.dtype", A, np.ones(3), "'x' has the dtype float64, the matrix float32"),
    ("operand.kind", A, [1.0, 2.0, 3.0], "'x' has the type 'list'"),
]


@pytest.mark.parametrize(("code", "matrix", "vector", "named"), BAD_SPMV)
def test_bad_operands_of_spmv(code, matrix, vector, named):
    with pytest.raises(UserError) as caught:
        gs.spmv(matrix, vector)
    assert caught.value.code == code
    assert named in str(caught.value)


def read_only():
    out = np.zeros((2, 4), dtype=np.float32)
    out.setflags(write=False)
    return out


BAD_OUT = [
    ("operand.kind", [[0.0] * 4] * 2, "'out' has the type 'list'"),
    ("operand.dtype", np.zeros((2, 4)), "'out' has the dtype float64; expected float32"),
    ("operand.dtype", np.zeros((2, 4), dtype=">f4"), "'out' has the dtype >f4"),
    ("operand.shape", np.zeros((4, 2), dtype=np.float32), "(4, 2); expected (2, 4)"),
    ("operand.shape", np.zeros(8, dtype=np.float32), "(8,); expected (2, 4)"),
    ("operand.contiguity", np.zeros((2, 8), dtype=np.float32)[:, ::2], "strides (32, 8)"),
    ("operand.contiguity", np.zeros((4, 2), dtype=np.float32).T, "strides (4, 8)"),
    (
        "operand.alignment",
        np.frombuffer(bytearray(33), "uint8")[1:].view("float32").reshape(2, 4),
        "multiple of 4 bytes",
    ),
    ("operand.read_only", read_only(), "'out' is read-only"),
]


@pytest.mark.parametrize(("code", "out", "named"), BAD_OUT)
def test_bad_outputs(code, out, named):
    with pytest.raises(UserError) as caught:
        gs.spmm(A, B, out=out)
    assert caught.value.code == code
    assert named in str(caught.value)


def test_an_output_over_an_input_is_refused():
    square = sparse.csr_array(np.eye(3, dtype=np.float32))
    dense = np.ones((3, 3), dtype=np.float32)
    memory = np.ones(12, dtype=np.float32)
    overlapping = [
        (square, dense, dense),
        (square, memory[:9].reshape(3, 3), memory[3:].reshape(3, 3)),
    ]
    for matrix, operand, out in overlapping:
        with pytest.raises(UserError, match="'out' overlaps an input") as caught:
            gs.spmm(matrix, operand, out=out)
        assert caught.value.code == "operand.overlap"
    with pytest.raises(UserError, match="'out' overlaps an input"):
        gs.spmv(square, X, out=square.data)


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("no-such-backend", "backend.unknown"),
        ("No Target", "target.syntax"),
        ("a:b", "target.syntax"),
    ],
)
def test_a_bad_target_is_named(target, code):
    with pytest.raises(UserError) as caught:
        gs.spmm(A, B, target=target)
    assert caught.value.code == code
    assert target in str(caught.value)


def test_a_writable_matrix_is_checked_at_every_call():
    matrix = A.copy()
    gs.spmm(matrix, B)
    matrix.indices[0] = 10**6
    with pytest.raises(UserError, match="Element 0 of 'indices' is 1000000"):
        gs.spmm(matrix, B)


def test_a_tensor_whose_description_is_only_named_csr_is_converted():
    """Its column is in range by its own description, but far outside x by that of CSR."""
    wide_csr = csr("float64", indptr_dtype="int64", indices_dtype="int64")
    rows, columns = wide_csr.axes
    wide = replace(columns, length=index(10**13))
    arrays = {"indptr": np.array([0, 1]), "indices": np.array([10**12]), "data": np.ones(1)}
    tensor = SparseTensor(
        Storage(replace(wide_csr, axes=(rows, wide)), {"m": 1, "n": 2, "nnz": 1}, arrays)
    )
    with pytest.raises(UserError) as caught:
        gs.spmv(tensor, np.ones(2))
    assert caught.value.code == "operand.shape"
