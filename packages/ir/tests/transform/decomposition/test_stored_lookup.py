"""A buffer that is looked up in a format reads its elements, and the fill value where there is none."""

import numpy as np
import pytest
from msgspec.structs import replace

from gossamer_ir.interpret import run
from gossamer_ir.script import parse_format, parse_module
from gossamer_ir.transform.decomposition.decomposition_error import DecompositionError
from gossamer_ir.transform.decomposition.instantiated_format import NamedFormat
from gossamer_ir.transform.decomposition.stored_lookup import with_lookup
from gossamer_ir.verify import verify

COLUMNS = parse_module("""
@T.prim_func
def last_column(a: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I], "S", "last_column") as [i]:
        Y[i] = A[i, n - 1]
""")
CSR = parse_format("""
@T.format
def csr(
    data: T.handle, indptr: T.handle, indices: T.handle, m: T.int64, n: T.int64, nnz: T.int64
) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    A = T.sp.match_buffer(data, (I, J), "float32")
""")
TRANSPOSED = parse_format("""
@T.format
def transposed(data: T.handle, m: T.int64, n: T.int64) -> None:
    J = T.sp.dense_fixed(n)
    I = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(data, (J, I), "float32")
    T.sp.map(lambda j, i: (i, j))
""")


def looked_up(description):
    function = with_lookup(COLUMNS.functions[0], "A", NamedFormat("s", description))
    return verify(replace(COLUMNS, functions=(function,)))


def test_an_element_that_is_not_stored_reads_zero():
    result = np.full(3, np.nan, np.float32)
    arrays = {
        "data_s": np.array([1, 2, 4, 8], np.float32),
        "indptr_s": np.array([0, 2, 2, 4], np.int32),
        "indices_s": np.array([0, 1, 0, 2], np.int32),
    }
    run(looked_up(CSR), {**arrays, "y": result, "m": 3, "n": 3, "nnz_s": 4})
    assert result.tolist() == [0.0, 0.0, 8.0]


def test_a_format_whose_coordinates_are_not_those_of_its_axes_is_refused():
    with pytest.raises(DecompositionError, match="elements of 'A' cannot be looked up") as raised:
        looked_up(TRANSPOSED)
    assert raised.value.reason == "lookup"
