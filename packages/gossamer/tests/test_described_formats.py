"""Tensors in a format that is given by its description; `packages/formats/tests` has the conversions."""

from __future__ import annotations

import numpy as np

import gossamer as gs
import gossamer_formats
from gossamer_ir import parse_format

ELL = parse_format("""
@T.format
def ell(a: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
""")
A = np.array([1, 2, 3, 0], np.float32)
INDICES = np.array([0, 2, 1, 3], np.int32)
DENSE = [[1, 0, 2], [0, 3, 0]]


def test_products_of_a_tensor_made_and_converted_by_descriptions():
    tensor = gossamer_formats.from_arrays(ELL, (2, 3), a=A, indices=INDICES, width=2)
    assert tensor.toarray().tolist() == DENSE
    rows = tensor.asformat(gossamer_formats.csr("float32"))
    same = gossamer_formats.convert(tensor, rows.description).tensor
    x = np.ones((3, 2), np.float32)
    for each in (rows, same):
        assert gs.spmm(each, x).tolist() == (np.array(DENSE) @ x).tolist()
