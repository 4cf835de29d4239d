"""A product of BSR with a dense matrix, at the coordinate stage and at the loop stage."""

from __future__ import annotations

from gossamer_testkit.bsr_product import bsr_product_script

COORDINATE = bsr_product_script()
LOOP = """
@T.prim_func
def bsrmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
          mb: T.int64, nb: T.int64, nnzb: T.int64, bh: T.int64, bw: T.int64, feat: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A_data = T.match_buffer(a, (nnzb, bh, bw), "float32")
    B_data = T.match_buffer(b, (nb, bw, feat), "float32")
    C_data = T.match_buffer(c, (mb, bh, feat), "float32")
    JO_indptr = T.match_buffer(indptr, (mb + 1,), "int32")
    JO_indices = T.match_buffer(indices, (nnzb,), "int32")
    T.assume(in_range(JO_indptr, 0, nnzb + 1))
    T.assume(monotone(JO_indptr))
    T.assume(in_range(JO_indices, 0, nb))
    for io in T.serial(mb):
        for jo in T.serial(T.int64(JO_indptr[io + 1]) - T.int64(JO_indptr[io])):
            for ii in T.serial(bh):
                for ji in T.serial(bw):
                    for k in T.serial(feat):
                        with T.block("bsrmm"):
                            vio, vjo, vii, vji, vk = T.axis.remap("SRSRS", [io, jo, ii, ji, k])
                            with T.init():
                                C_data[vio, vii, vk] = 0.0
                            C_data[vio, vii, vk] = C_data[vio, vii, vk] + A_data[
                                T.int64(JO_indptr[vio]) + vjo, vii, vji
                            ] * B_data[
                                T.int64(JO_indices[T.int64(JO_indptr[vio]) + vjo]), vji, vk
                            ]
"""
