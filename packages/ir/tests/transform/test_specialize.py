"""`specialize` and `retype`: sizes and scalars become constants; values and index arrays change dtype."""

import numpy as np
import pytest

from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import Cast, Load
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.specialize import specialize
from gossamer_ir.traversal.walk import walk

CSRMM = """
@T.prim_func
def csrmm(
    a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, feat_size: T.int64, nnz: T.int64,
):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (I, J), "float32", default=1.0)
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + T.max(A[i, j] * 0.1, -(2.0 * A[i, j])) * B[j, k]
"""

POSITION = """
@T.prim_func
def csrmv(
    a: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64,
    nnz: T.int64,
):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    J_indptr = T.sp.match_buffer(p, (I,), "int32", extra_storage=1)
    J_indices = T.sp.match_buffer(q, (I, J), "int32")
    for i in T.serial(m):
        for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
            with T.block("csrmv"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                value: T.float32 = A[vi, vj]
                Y[vi] = Y[vi] + value * X[J_indices[vi, vj]]
"""

ALL = {"A": "float64", "B": "float64", "C": "float64"}


def test_a_fixed_size_leaves_the_parameters_and_stands_where_it_was_used():
    fixed = specialize(parse_module(CSRMM), {"feat_size": 64, "n": 100})
    text = print_module(fixed)
    assert "K = T.sp.dense_fixed(64)" in text
    assert "(100, nnz)" in text
    assert [param.name for param in fixed.functions[0].params][-2:] == ["m", "nnz"]


def test_values_and_literals_change_dtype_exactly_as_if_written_so():
    text = CSRMM.replace("float32", "float64")
    assert specialize(parse_module(CSRMM), {}, dtypes=ALL) == parse_module(text)


def test_index_storage_changes_with_the_axis_and_every_buffer_of_its_handles():
    text = POSITION.replace('"int32"', '"int64"')
    assert specialize(parse_module(POSITION), {}, dtypes={"J": "int64"}) == parse_module(text)


def test_index_storage_is_still_widened_where_it_is_narrower():
    module = specialize(parse_module(POSITION), {}, dtypes={"J": "uint16"})
    loads = [node for node in walk(module) if isinstance(node, Cast)]
    assert len(loads) == 5
    assert all(isinstance(node.value, Load) and node.value.dtype == "uint16" for node in loads)


def test_lets_follow_the_values():
    dtypes = {"A": "float64", "X": "float64", "Y": "float64"}
    text = POSITION.replace("float32", "float64")
    assert specialize(parse_module(POSITION), {}, dtypes=dtypes) == parse_module(text)


def test_specializing_nothing_returns_the_same_module():
    module = parse_module(CSRMM)
    assert specialize(module, {}) is module


def test_scalars_of_numpy_are_taken():
    assert "dense_fixed(8)" in print_module(specialize(parse_module(CSRMM), {"m": np.int64(8)}))


@pytest.mark.parametrize(
    ("values", "dtypes", "code", "named"),
    [
        ({"k": 1}, {}, "specialize.unknown", "feat_size"),
        ({"a": 1}, {}, "specialize.unknown", "nnz"),
        ({}, {"Z": "float64"}, "specialize.unknown", "J_detach"),
        ({}, {"J": "float64"}, "specialize.dtype", "uint16"),
        ({}, {"I": "int64"}, "specialize.dtype", "I"),
        ({}, {"A": "float64"}, "specialize.dtype", "all buffers"),
        ({}, {"A": "float32x4"}, "specialize.dtype", "float32x4"),
        ({}, {"A": "float31"}, "dtype.unknown", "float31"),
        ({"m": 2**63}, {}, "constant.range", "int64"),
        ({"m": 1.5}, {}, "constant.range", "1.5"),
    ],
)
def test_impossible_sizes_and_dtypes_are_named(values, dtypes, code, named):
    with pytest.raises(ArgumentError) as caught:
        specialize(parse_module(CSRMM), values, dtypes=dtypes)
    assert caught.value.code == code
    assert named in str(caught.value)
