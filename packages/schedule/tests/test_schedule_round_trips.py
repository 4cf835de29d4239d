"""Each primitive, written as JSON and as Python and read again, makes the same module."""

from __future__ import annotations

import pytest

from gossamer_ir.interchange.serialization import dumps, loads
from gossamer_ir.script import parse_module
from gossamer_schedule import PRIMITIVES, ScheduleBuilder
from gossamer_testkit import examples

DOT = (examples.DOT_4,)
ROWS = {"block": "csrmm", "scope": "local"}
SHARES = parse_module("""
@T.prim_func
def shares(p: T.handle, q: T.handle, a: T.handle, m: T.int64, n: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float32")
    S = T.sp.alloc_buffer((I,), "float32")
    with T.sp.iteration([I, J], "SR", "sum") as [i, j]:
        with T.init():
            S[i] = 0.0
        S[i] = S[i] + A[i, j]
    with T.sp.iteration([I, J], "SS", "share") as [i, j]:
        A[i, j] = A[i, j] / S[i]
""")
KEPT = ScheduleBuilder(examples.SCALE).cache_write("scale", buffer="Y", scope="local").module
SUMS = ScheduleBuilder(examples.ROW_SUM).cache_write("row_sum", buffer="Y", scope="local").module
SPARSE_FOURS = ScheduleBuilder(examples.SPMV).split("j", factors=(None, 4)).module
MADE = ScheduleBuilder(examples.GATHER).cache_read("gather", buffer="X", scope="local").module
IN_FOURS = ScheduleBuilder(examples.MATMUL).split("l", factors=(None, 4)).module
DOTS = (
    ScheduleBuilder(examples.MATMUL).split("j", factors=(None, 4)).reorder("j_0", "l", "j_1").module
)
EXCHANGED = ScheduleBuilder(examples.MATMUL).reorder("l", "j").module
LOOKED_UP = ScheduleBuilder(examples.MATMUL).annotate("i", key="note", value=1).module
FUSED = ScheduleBuilder(examples.SPMM_COORDINATE).sparse_fuse("csrmm", axes=("I", "J")).module
FILTERED = ScheduleBuilder(examples.MATMUL).set_block_filter("group_0").module
UPDATES = ScheduleBuilder(examples.MATMUL).decompose_reduction("matmul", loop="i").module
STEPS = {
    "add_unit_loop": (examples.MATMUL, ("matmul",), {}),
    "align": (examples.SCALE, ("i",), {"buffer": "X", "lanes": 8}),
    "annotate": (examples.MATMUL, ("i",), {"key": "note", "value": True}),
    "bind": (examples.MATMUL, ("i",), {"thread": "blockIdx.x"}),
    "blockize": (IN_FOURS, ("l_1",), {}),
    "cache_index": (examples.SPMM, ("csrmm",), {"scope": "local", "buffer": "B"}),
    "cache_inplace": (UPDATES, ("matmul",), {"buffer": "C", "scope": "local"}),
    "cache_read": (examples.SPMM, (), ROWS | {"buffer": "B"}),
    "cache_write": (examples.SPMM, (), ROWS | {"buffer": "C"}),
    "compute_at": (MADE, ("gather_X_local",), {"loop": "i"}),
    "compute_inline": (MADE, ("gather_X_local",), {}),
    "decompose_reduction": (examples.MATMUL, ("matmul",), {"loop": "j"}),
    "decompose_padding": (examples.PADDED, ("pad",), {"loop": "i"}),
    "fission": (examples.STAGED, ("i",), {"after": "j"}),
    "fuse": (EXCHANGED, ("i", "l"), {}),
    "fuse_reduction_epilogue": (examples.BIASED, ("sum",), {"epilogue": "bias"}),
    "store_nontemporal": (examples.SCALE, ("scale",), {"buffer": "Y"}),
    "hide_buffer_access": (examples.GATHER, ("gather",), {"access": "read", "buffers": ("P",)}),
    "lift_loop": (examples.NESTED, ("j",), {}),
    "loop_partition": (examples.MATMUL, ("l",), {"points": (2, "k // 8 * 8")}),
    "parallel": (examples.MATMUL, ("i",), {"grain": 4, "weight": "i + 1"}),
    "pipeline": (examples.STAGED, ("i",), {"stages": 3}),
    "prefetch": (examples.GATHER, ("gather",), {"buffer": "X", "loop": "i", "distance": 4}),
    "reindex": (examples.SPMM, ("csrmm",), {"buffer": "B", "order": ("vk", "vj")}),
    "reindex_cache_read": (examples.SPMM, (), ROWS | {"buffer": "B", "order": ("vk", "vj")}),
    "reindex_cache_write": (examples.SPMM, (), ROWS | {"buffer": "C", "order": ("vk", "vi")}),
    "reorder": (examples.MATMUL, ("l", "j"), {}),
    "reverse_compute_at": (SUMS, ("row_sum_Y_local",), {"loop": "i"}),
    "reverse_compute_inline": (KEPT, ("scale_Y_local",), {}),
    "rfactor": (IN_FOURS, ("j",), {"axis": 1}),
    "rolling_buffer": (examples.WINDOWS, ("twice",), {"buffer": "W"}),
    "sample_categorical": (examples.MATMUL, ("tile",), {"candidates": (2, 4), "weights": (1, 3)}),
    "sample_compute_location": (MADE, ("gather_X_local",), {"name": "place", "seed": 3}),
    "sample_perfect_tile": (examples.MATMUL, ("l",), {"name": "t", "parts": 2, "largest": 8}),
    "set_block_filter": (examples.MATMUL, ("group_0",), {}),
    "set_scope": (MADE, ("X_local",), {"scope": "shared"}),
    "sparse_compute_at": (SHARES, ("sum",), {"into": "share", "var": "i_1"}),
    "sparse_fuse": (examples.SPMM_COORDINATE, ("csrmm",), {"axes": ("I", "J")}),
    "sparse_reorder": (examples.SPMM_COORDINATE, ("csrmm",), {"order": ("i", "k", "j")}),
    "sparse_tensorize": (SPARSE_FOURS, ("j_1",), {"intrinsic": "dot_4"}),
    "sparse_unfuse": (FUSED, ("csrmm",), {"axes": ("I", "J")}),
    "specialize": (examples.MATMUL, ("j",), {"condition": "k == 32"}),
    "split": (examples.MATMUL, ("l",), {"factors": (None, "4 * T.vscale()")}),
    "storage_align": (examples.STAGED, ("X_shared",), {"axis": 0, "factor": 16, "offset": 4}),
    "tensorize": (DOTS, ("j_1",), {"intrinsic": "dot_4"}),
    "transform_layout": (KEPT, ("Y_local",), {"index_map": "i -> i % 4, i // 4", "pad": "0.0"}),
    "unannotate": (LOOKED_UP, ("i",), {"key": "note"}),
    "unroll": (IN_FOURS, ("l_1",), {}),
    "unsafe_match_to_alloc": (examples.GATHER, ("gather",), {"buffer": "Y"}),
    "unsafe_parallel": (examples.MATMUL, ("j",), {}),
    "unsafe_reorder": (examples.MATMUL, ("j", "i"), {}),
    "unsafe_set_dtype": (KEPT, ("Y_local",), {"dtype": "float64"}),
    "unsafe_vectorize": (IN_FOURS, ("l_1",), {"rest": "masked"}),
    "unset_block_filter": (FILTERED, (), {}),
    "vectorize": (IN_FOURS, ("l_1",), {"rest": "masked"}),
}


def schedule_of(module):
    return ScheduleBuilder(module, intrinsics=DOT)


@pytest.mark.parametrize("op", sorted(PRIMITIVES))
def test_a_step_is_the_same_as_json_and_as_python(op):
    module, names, options = STEPS[op]
    builder = schedule_of(module)
    getattr(builder, op)(*names, **options)
    again = ScheduleBuilder.from_json(module, builder.to_json(), intrinsics=DOT)
    assert (again.module, again.trace) == (builder.module, builder.trace)

    found: dict = {}
    exec(builder.to_python(), found)
    written = found["schedule"](schedule_of(module))
    assert (written.module, written.trace) == (builder.module, builder.trace)
    assert loads(dumps(builder.module)) == builder.module
