"""Names of the schedules of TVM and SparseTIR: their counterparts in gossamer."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_schedule.foreign_names.phrases import BY_NAME, MODULE

METHODS: Mapping[str, str] = {
    "mod": MODULE,
    "state": MODULE,
    "func": MODULE,
    "script": "show() returns the script of the module and its steps.",
    "func_working_on": "ScheduleBuilder(module, function=...) chooses the function.",
    "work_on": "ScheduleBuilder(module, function=...) chooses the function.",
    "get": f"{BY_NAME}; builder.module contains them.",
    "get_sref": f"{BY_NAME}; builder.module contains them.",
    "remove_rv": "Handles need not be removed.",
    "seed": "sample_categorical and sample_perfect_tile take seed=.",
    "fork_seed": "sample_categorical and sample_perfect_tile take seed=.",
    "get_block": f"{BY_NAME}: give the block's, or one of get_blocks().",
    "get_sblock": f"{BY_NAME}: give the block's, or one of get_blocks().",
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
"""Hints for methods and attributes, by name."""


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

POSITIONS: Mapping[str, str] = {
    "cache_read": "A buffer is addressed by its name, not by its index among those the block reads.",
    "cache_write": "A buffer is addressed by its name, not by its index among those the block writes.",
    "storage_align": "A buffer is addressed by its name, without a block.",
    "set_scope": "A buffer is addressed by its name, without a block.",
    "transform_layout": "A buffer is addressed by its name, without a block.",
}
"""Hints for too many positional arguments, by primitive."""
