"""Names and arguments of other compilers: each exists, or its error says what to use instead."""

from __future__ import annotations

import inspect
import re

import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.script import parse_module
from gossamer_schedule import PRIMITIVES, ScheduleBuilder
from gossamer_schedule.foreign_names.hints import METHODS
from gossamer_schedule.foreign_names.tvm import ARGUMENTS
from gossamer_testkit import examples

NAMES_ELSEWHERE = """
mod state trace func_working_on work_on copy seed fork_seed show get get_sref remove_rv
sample_categorical sample_perfect_tile sample_partitioned_tile sample_compute_location get_block
get_sblock get_loops get_child_blocks get_producers get_consumers get_output_blocks merge fuse split
loop_partition reorder reorder_block_iter_var add_unit_loop parallel vectorize bind unroll cache_read
cache_write reindex_cache_read reindex_cache_write cache_inplace cache_index reindex read_at write_at
compute_at reverse_compute_at compute_inline reverse_compute_inline fuse_reduction_epilogue
decompose_reduction rfactor storage_align set_scope unsafe_set_dtype blockize tensorize annotate
unannotate transform_layout transform_block_layout transform_sblock_layout set_axis_separator
decompose_padding can_decompose_padding pad_einsum rolling_buffer enter_postproc
unsafe_hide_buffer_access annotate_buffer_access annotate_block_access func script
set_block_filter unset_block_filter lift_loop reverse_cache_read reverse_cache_write match_to_alloc
get_sparse_iteration get_sp_iters sparse_reorder sparse_fuse hide_buffer_access
simplify rename make_instr insert_pass insert_noop_call delete_pass reorder_stmts parallelize_loop
commute_expr left_reassociate_expr rewrite_expr bind_expr extract_subproc inline replace replace_all
call_eqv set_precision set_window set_memory bind_config delete_config write_config resize_dim
expand_dim rearrange_dim divide_dim mult_dim unroll_buffer lift_alloc sink_alloc autolift_alloc
bound_alloc delete_buffer reuse_buffer inline_window stage_window stage_mem divide_with_recompute
divide_loop mult_loops join_loops cut_loop shift_loop reorder_loops merge_writes split_write
fold_into_reduce inline_assign lift_reduce_constant fission fission_after autofission remove_loop
add_loop unroll_loop lift_scope lift_if eliminate_dead_code specialize add_unsafe_guard proc
tile serial atomic allow_race_conditions compute_root compute_with store_at store_root hoist_storage
hoist_storage_root store_in fold_storage ring_buffer align_storage align_bounds reorder_storage bound
bound_extent set_estimate set_estimates partition prefetch gpu gpu_blocks gpu_threads gpu_lanes
gpu_tile in_ clone_in update memoize print_loop_nest realize divide pos precompute parallelize
"""
"""All public names of TVM's schedule and of SparseTIR's (their `tir/schedule/schedule.py`), of Exo's
operators (`API_scheduling.py`), and most of Halide's and TACO's."""


@pytest.mark.parametrize("name", NAMES_ELSEWHERE.split())
def test_each_name_of_another_compiler_is_there_or_has_a_hint(name):
    builder = ScheduleBuilder(examples.SPMM)
    assert hasattr(builder, name) != (name in METHODS)
    if name in METHODS:
        with pytest.raises(ScheduleError) as caught:
            getattr(builder, name)
        assert caught.value.diagnostics[0].hint == METHODS[name]
        assert caught.value.code == "schedule.builder.unknown"


STEP = re.compile(r"(?<![\w.])(\w+)\(([^()]*)")


@pytest.mark.parametrize("name", [name for name in METHODS if STEP.search(METHODS[name])])
def test_a_hint_names_steps_and_arguments_that_exist(name):
    for step, arguments in STEP.findall(METHODS[name]):
        assert hasattr(ScheduleBuilder, step) or step == "ScheduleBuilder"
        parameters = inspect.signature(getattr(ScheduleBuilder, step, ScheduleBuilder)).parameters
        assert {*re.findall(r"(\w+)=", arguments)} <= {*parameters}


def test_names_with_a_hint_are_not_primitives():
    builder = ScheduleBuilder(examples.SPMM)
    assert [name for name in METHODS if hasattr(builder, name)] == []
    assert [op for op, _ in ARGUMENTS if op not in PRIMITIVES] == []


def test_a_misspelled_name_has_a_hint():
    builder = ScheduleBuilder(examples.SPMM)
    with pytest.raises(ScheduleError, match=r"Did you mean vectorize\?"):
        _ = builder.vectorise
    with pytest.raises(ScheduleError, match=r"Primitives are .*, align, annotate"):
        _ = builder.quux


AS_IN_TVM = [
    ("bind", ("k", "threadIdx.x"), {}, r"Write bind\('k', thread='threadIdx.x'\)\."),
    ("bind", ("k",), {"thread_axis": "threadIdx.x"}, "It is called thread."),
    ("split", ("k", [None, 8]), {}, r"Write split\('k', factors=\[None, 8\]\)\."),
    ("compute_at", ("csrmm", "i"), {"preserve_unit_loops": True}, "compute_at takes 1 argument by"),
    ("compute_at", ("csrmm",), {"loop": "i", "preserve_unit_loops": True}, "are always kept"),
    ("cache_read", ("csrmm", 0, "shared"), {}, "addressed by its name, not by its index"),
    (
        "cache_read",
        ("csrmm",),
        {"buffer": 0, "scope": "shared"},
        "addressed by its name: buffer='B'",
    ),
    ("storage_align", ("csrmm", 0, 0, 32, 8), {}, "addressed by its name, without a block"),
    ("rfactor", ("j",), {"factor_axis": 1}, "It is called axis"),
    ("sample_perfect_tile", ("k",), {"n": 2}, "It is called parts"),
    ("transform_layout", ("C",), {"index_map": lambda i, j: (j, i)}, "It is a text such as"),
    ("vectorize", ("k",), {"accumlate": "atomic"}, "Did you mean 'accumulate'"),
]


@pytest.mark.parametrize(("op", "args", "keywords", "hint"), AS_IN_TVM)
def test_calls_as_in_tvm_have_a_hint(op, args, keywords, hint):
    with pytest.raises(ScheduleError, match=hint) as caught:
        getattr(ScheduleBuilder(examples.SPMM), op)(*args, **keywords)
    assert caught.value.code == "schedule.replay.arguments"


SCATTERED = """
@T.prim_func
def scatter(p: T.handle, x: T.handle, y: T.handle, n: T.int64, m: T.int64) -> None:
    P = T.match_buffer(p, (n,), "int32")
    X = T.match_buffer(x, (n, 8), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(in_range(P, 0, m))
    for i in T.serial(n):
        for j in T.serial(8):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                Y[T.int64(P[vi])] = Y[T.int64(P[vi])] + X[vi, vj]
"""


def test_what_has_no_init_is_hinted_to_be_cached_by_iterators():
    module = parse_module(SCATTERED)
    with pytest.raises(ScheduleError, match="or apply reindex_cache_write") as caught:
        ScheduleBuilder(module).cache_write("sum", buffer="Y", scope="local")
    assert caught.value.code == "schedule.cache_write.element"
    ScheduleBuilder(module).reindex_cache_write("sum", buffer="Y", scope="local")
