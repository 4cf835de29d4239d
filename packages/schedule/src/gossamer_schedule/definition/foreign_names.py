"""Hints for names that other compilers use: their counterpart in gossamer.

The names are those of schedules of TVM and SparseTIR, and of the scheduling operators of Exo, Halide and
TACO. A test checks that no name in the tables is an attribute of a builder.
"""

from __future__ import annotations

from collections.abc import Mapping

_BY_NAME = "Loops, blocks and buffers are addressed by their names"
_MODULE = "builder.module is the module with all steps applied."
_NONE = "There is no counterpart"

_TVM: Mapping[str, str] = {
    "mod": _MODULE,
    "state": _MODULE,
    "func": _MODULE,
    "script": "show() returns the script of the module and its steps.",
    "func_working_on": "ScheduleBuilder(module, function=...) chooses the function.",
    "work_on": "ScheduleBuilder(module, function=...) chooses the function.",
    "get": f"{_BY_NAME}; builder.module contains them.",
    "get_sref": f"{_BY_NAME}; builder.module contains them.",
    "remove_rv": "Handles need not be removed.",
    "seed": "sample_categorical and sample_perfect_tile take seed=.",
    "fork_seed": "sample_categorical and sample_perfect_tile take seed=.",
    "get_block": f"{_BY_NAME}: give the block's, or one of get_blocks().",
    "get_sblock": f"{_BY_NAME}: give the block's, or one of get_blocks().",
    "get_sparse_iteration": "Iterations are addressed by their names: give it, or one of "
    "get_iterations().",
    "get_sp_iteration": "Iterations are addressed by their names: give it, or one of get_iterations().",
    "get_sp_iters": "get_loops(name) lists the variables of an iteration.",
    "get_output_blocks": "get_blocks() lists the blocks, get_consumers(block) the blocks that read "
    "its results.",
    "merge": "fuse is for the loops of one nest.",
    "reverse_cache_read": "reindex_cache_read(block, buffer=..., scope=..., order=...) copies the "
    "elements that the block reads, in any order of its iterators.",
    "reverse_cache_write": "reindex_cache_write(block, buffer=..., scope=..., order=...) caches the "
    "results in any order of the block's iterators.",
    "read_at": "cache_region(block, buffer=..., loop=..., scope=...) copies the region that an iteration "
    "of a loop reads.",
    "write_at": "Apply cache_write, then reverse_compute_at.",
    "sample_partitioned_tile": "sample_perfect_tile draws factors.",
    "reorder_block_iter_var": "reorder moves loops; the order of iterators does not matter.",
    "transform_block_layout": "fuse, split and reorder transform the loops of a block.",
    "transform_sblock_layout": "fuse, split and reorder transform the loops of a block.",
    "set_axis_separator": "Buffers are flattened by the lowering.",
    "pad_einsum": "align peels a loop, split guards the rest of one.",
    "annotate_buffer_access": "Regions are derived from what a block accesses.",
    "annotate_block_access": "Regions are derived from what a block accesses.",
    "match_to_alloc": "unsafe_match_to_alloc(block, buffer=...) does so, if you guarantee that "
    "the caller does not need the buffer.",
    "unsafe_hide_buffer_access": "hide_buffer_access takes buffers out of the regions of a block.",
    "enter_postproc": "Postprocessing is not marked in a trace.",
    "can_compute_at": "A primitive that is refused raises ScheduleError and leaves the builder as it was.",
    "can_reverse_compute_at": "A primitive that is refused raises ScheduleError and leaves the builder as "
    "it was.",
    "can_decompose_padding": "A primitive that is refused raises ScheduleError and leaves the builder as "
    "it was.",
    "lower_sparse_iter": "lower() lowers the module to the next stage.",
    "lower_sparse_buffer": "lower() lowers the module to the next stage.",
    "lower_iterations": "lower() lowers the module to the next stage.",
    "lower_buffers": "lower() lowers the module to the next stage.",
    "build": "Compile a kernel with gossamer.compile(program, schedule=builder).",
    "compile": "Compile a kernel with gossamer.compile(program, schedule=builder).",
}
"""Names of TVM and SparseTIR."""

_NO_REWRITING = f"{_NONE}: steps do not rewrite expressions."
_ALLOCATION = "The lowering decides where a buffer is allocated and how large it is."
_LAYOUT = (
    "transform_layout(buffer, index_map=...) changes the dimensions of a buffer of the function."
)
_INTRINSIC = (
    "tensorize(loop, intrinsic=...) replaces a nest; the target's plugin defines intrinsics."
)
_NO_STATE = f"{_NONE}: there is no configuration state."
_NO_WINDOWS = f"{_NONE}: blocks address whole buffers."

_EXO: Mapping[str, str] = {
    "proc": _MODULE,
    "simplify": "The lowering simplifies expressions.",
    "rename": "A step derives the names that it makes from those of the program.",
    "make_instr": _INTRINSIC,
    "replace": _INTRINSIC,
    "replace_all": _INTRINSIC,
    "call_eqv": _INTRINSIC,
    "insert_pass": f"{_NONE}: there are no empty statements.",
    "delete_pass": f"{_NONE}: there are no empty statements.",
    "insert_noop_call": f"{_NONE}; prefetch(block, ...) prefetches data.",
    "reorder_stmts": "compute_at and reverse_compute_at move a block into a loop.",
    "parallelize_loop": "It is called parallel(loop).",
    "commute_expr": _NO_REWRITING,
    "left_reassociate_expr": _NO_REWRITING,
    "rewrite_expr": _NO_REWRITING,
    "lift_reduce_constant": _NO_REWRITING,
    "fold_into_reduce": f"{_NONE}: C[i] = C[i] + x is recognized as a reduction.",
    "bind_expr": "cache_read(block, buffer=..., scope=...) copies a buffer that the block reads; "
    "cache_index(block, ...) computes index expressions in advance.",
    "stage_mem": "cache_read, cache_region, cache_write and cache_inplace copy the buffers that a "
    "block accesses.",
    "stage_window": "cache_region(block, buffer=..., loop=..., scope=...) copies the region that an "
    "iteration of a loop reads.",
    "extract_subproc": f"{_NONE}: a schedule works on one function.",
    "inline": "compute_inline(block) computes the values of a block where they are read.",
    "inline_assign": "compute_inline(block) computes the values of a block where they are read.",
    "set_precision": "unsafe_set_dtype(buffer, dtype=...) sets the dtype of a buffer of the function; "
    "gossamer.compile takes dtypes= for those of the caller.",
    "set_memory": "It is called set_scope(buffer, scope=...).",
    "set_window": _NO_WINDOWS,
    "inline_window": _NO_WINDOWS,
    "bind_config": _NO_STATE,
    "delete_config": _NO_STATE,
    "write_config": _NO_STATE,
    "expand_dim": _LAYOUT,
    "rearrange_dim": _LAYOUT,
    "divide_dim": _LAYOUT,
    "mult_dim": _LAYOUT,
    "resize_dim": _ALLOCATION,
    "bound_alloc": _ALLOCATION,
    "lift_alloc": _ALLOCATION,
    "sink_alloc": _ALLOCATION,
    "autolift_alloc": _ALLOCATION,
    "delete_buffer": f"{_NONE}: a step that makes a buffer unnecessary, such as compute_inline, removes it.",
    "reuse_buffer": f"{_NONE}: steps do not merge buffers.",
    "unroll_buffer": "A small buffer that unrolled loops address by constants is kept in registers.",
    "divide_loop": "It is called split(loop, factors=(None, 8)).",
    "divide_with_recompute": "split splits the consumer's loop, and compute_at(block, loop=...) computes "
    "the elements that each part needs.",
    "mult_loops": "It is called fuse.",
    "join_loops": f"{_NONE}; undo() reverts a loop_partition.",
    "cut_loop": "It is called loop_partition(loop, points=...).",
    "shift_loop": f"{_NONE}: loops keep their start.",
    "reorder_loops": "It is called reorder.",
    "merge_writes": "fuse_reduction_epilogue makes the other operand of a sum its initial value.",
    "split_write": "decompose_reduction(block, loop=...) moves the init to its own block.",
    "autofission": "fission(loop, after=...) distributes one loop.",
    "fission_after": "It is called fission(loop, after=...).",
    "remove_loop": f"{_NONE}: loops of one iteration cost nothing.",
    "add_loop": "add_unit_loop(name) adds a loop of one iteration.",
    "unroll_loop": "It is called unroll(loop).",
    "lift_scope": "reorder moves a loop out of another, loop_version(loop, condition=...) a condition.",
    "lift_if": "loop_version(loop, condition=...) moves a condition out of a loop.",
    "specialize": "It is called loop_version(name, condition=...); gossamer.compile takes specialize= for "
    "sizes.",
    "eliminate_dead_code": "The lowering removes conditions that are proved.",
    "add_unsafe_guard": f"{_NONE}: the unsafe_ primitives skip proofs that you guarantee.",
}

_STORED = "compute_at moves a block; the lowering decides where the buffer is allocated."
_GRID = 'bind(loop, thread="threadIdx.x") assigns a loop to threads of a grid.'
_BOUNDS = "A size is a number in the program, or specialize= of gossamer.compile fixes it."

_HALIDE: Mapping[str, str] = {
    "tile": "split splits the loops, and reorder moves the inner ones inside.",
    "divide": "It is called split(loop, factors=(8, None)).",
    "serial": "A loop is serial until a step changes its kind.",
    "parallelize": "It is called parallel(loop).",
    "atomic": 'It is an argument of other steps: parallel(loop, accumulate="atomic").',
    "allow_race_conditions": "unsafe_parallel(loop) skips the proof that iterations are independent.",
    "compute_root": "A block is computed on its own until compute_at or compute_inline moves it.",
    "compute_with": "fuse is for the loops of one nest; reverse_compute_at moves a block into another's loop.",
    "store_at": _STORED,
    "store_root": _STORED,
    "hoist_storage": _STORED,
    "hoist_storage_root": _STORED,
    "store_in": "It is called set_scope(buffer, scope=...).",
    "fold_storage": "It is called rolling_buffer(block, buffer=...).",
    "ring_buffer": "pipeline(loop, stages=...) runs copies of later iterations ahead.",
    "align_storage": "It is called storage_align(buffer, axis=..., factor=..., offset=...).",
    "align_bounds": "align(loop, buffer=..., lanes=...) starts a loop at an aligned address of the buffer.",
    "reorder_storage": _LAYOUT,
    "bound": _BOUNDS,
    "bound_extent": _BOUNDS,
    "set_estimate": "The rules use the statistics of the matrix; a schedule needs no estimates.",
    "set_estimates": "The rules use the statistics of the matrix; a schedule needs no estimates.",
    "partition": "It is called loop_partition(loop, points=...).",
    "gpu": _GRID,
    "gpu_blocks": _GRID,
    "gpu_threads": _GRID,
    "gpu_lanes": _GRID,
    "gpu_tile": _GRID,
    "in_": "cache_read(block, buffer=..., scope=...) puts a copy between a buffer and the block.",
    "clone_in": "cache_read(block, buffer=..., scope=...) puts a copy between a buffer and the block.",
    "update": f"{_BY_NAME}; decompose_reduction(block, loop=...) moves the init to its own block.",
    "memoize": f"{_NONE}: a kernel has no state between calls.",
    "print_loop_nest": "show() returns the script of the module and its steps.",
    "realize": "Compile a kernel with gossamer.compile(program, schedule=builder).",
    "pos": "sparse_fuse(iteration, axes=...) makes one loop over elements, which split then splits.",
    "precompute": "cache_write(block, buffer=..., scope=...) computes into a workspace; rfactor into parts.",
}
"""Names of Halide and TACO."""

METHODS: Mapping[str, str] = {**_HALIDE, **_EXO, **_TVM}
"""Names of methods and attributes that a builder does not have."""

ARGUMENTS: Mapping[tuple[str, str], str] = {
    ("compute_at", "preserve_unit_loops"): "Loops of one iteration are always kept.",
    ("reverse_compute_at", "preserve_unit_loops"): "Loops of one iteration are always kept.",
    ("compute_at", "index"): "A block moves directly before the statement that uses it.",
    ("reverse_compute_at", "index"): "A block moves directly after its producers.",
    ("split", "preserve_unit_iters"): "Loops of one iteration are always kept.",
    ("fuse", "preserve_unit_iters"): "Loops of one iteration are always kept.",
    ("split", "disable_predication"): "The predicate is omitted if the factors divide the extent.",
    ("bind", "thread_axis"): "It is called thread.",
    ("rfactor", "factor_axis"): "It is called axis.",
    ("cache_read", "read_buffer_index"): "A buffer is addressed by its name: buffer='B'.",
    ("cache_write", "write_buffer_index"): "A buffer is addressed by its name: buffer='C'.",
    ("cache_read", "buffer"): "A buffer is addressed by its name: buffer='B'.",
    ("cache_write", "buffer"): "A buffer is addressed by its name: buffer='C'.",
    ("reindex_cache_read", "buffer"): "A buffer is addressed by its name: buffer='B'.",
    ("reindex_cache_write", "buffer"): "A buffer is addressed by its name: buffer='C'.",
    ("cache_read", "storage_scope"): "It is called scope.",
    ("cache_write", "storage_scope"): "It is called scope.",
    ("reindex_cache_read", "storage_scope"): "It is called scope.",
    ("reindex_cache_write", "storage_scope"): "It is called scope.",
    ("set_scope", "storage_scope"): "It is called scope.",
    ("cache_read", "consumer_blocks"): "The cache is for this one block.",
    ("cache_write", "consumer_blocks"): "The cache is for this one block.",
    ("reindex_cache_read", "index_map"): "order= lists the iterators of the block.",
    ("reindex_cache_write", "index_map"): "order= lists the iterators of the block.",
    ("storage_align", "block"): "A buffer is addressed by its name.",
    ("storage_align", "buffer_index"): "A buffer is addressed by its name.",
    ("set_scope", "block"): "A buffer is addressed by its name.",
    ("set_scope", "buffer_index"): "A buffer is addressed by its name.",
    ("transform_layout", "block"): "A buffer is addressed by its name.",
    ("transform_layout", "pad_value"): "It is called pad.",
    ("transform_layout", "index_map"): 'It is a text such as "i, j -> j // 8, i, j % 8".',
    ("tensorize", "tensor_intrin"): "It is called intrinsic.",
    ("sparse_tensorize", "tensor_intrin"): "It is called intrinsic.",
    ("sample_perfect_tile", "n"): "It is called parts.",
    ("sample_perfect_tile", "max_innermost_factor"): "It is called largest.",
    ("sample_categorical", "probs"): "weights are integers in proportion to the probabilities.",
    ("annotate", "ann_key"): "It is called key.",
    ("annotate", "ann_val"): "It is called value.",
    ("unannotate", "ann_key"): "It is called key.",
    ("blockize", "preserve_unit_iters"): "Loops of one iteration are always kept.",
    ("sparse_fuse", "loops"): "axes are names of axes of the iteration.",
}
"""Hints for arguments of other compilers, and for wrong values of arguments, by primitive and argument."""

_POSITIONS: Mapping[str, str] = {
    "cache_read": "A buffer is addressed by its name, not by its index among those the block reads.",
    "cache_write": "A buffer is addressed by its name, not by its index among those the block writes.",
    "storage_align": "A buffer is addressed by its name, without a block.",
    "set_scope": "A buffer is addressed by its name, without a block.",
    "transform_layout": "A buffer is addressed by its name, without a block.",
}
"""Hints for too many positional arguments, by primitive."""


def argument_hint(op: str, name: str = "") -> str:
    """Return the hint for an argument, after a space; without a name, the hint for positional arguments. ""
    if none.

    >>> argument_hint("bind", "thread_axis")
    ' It is called thread.'
    """
    hint = ARGUMENTS.get((op, name), "") if name else _POSITIONS.get(op, "")
    return f" {hint}" if hint else ""
