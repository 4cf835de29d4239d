"""What users of other compilers type, and what gossamer calls it.

Names are those of the schedules of TVM and SparseTIR. A test compares the table with what a builder
has, so that nothing stands here that works.
"""

from __future__ import annotations

from collections.abc import Mapping

_BY_NAME = "Loops, blocks and buffers are addressed by their names"

METHODS: Mapping[str, str] = {
    "mod": "builder.module is the module with all steps applied.",
    "state": "builder.module is the module with all steps applied.",
    "func_working_on": "ScheduleBuilder(module, function=...) chooses the function.",
    "work_on": "ScheduleBuilder(module, function=...) chooses the function.",
    "get": f"{_BY_NAME}; builder.module holds what they name.",
    "get_sref": f"{_BY_NAME}; builder.module holds what they name.",
    "remove_rv": "Handles need not be removed.",
    "seed": "sample_categorical and sample_perfect_tile take seed=.",
    "fork_seed": "sample_categorical and sample_perfect_tile take seed=.",
    "get_block": f"{_BY_NAME}: give the block's, or one of get_blocks().",
    "get_sparse_iteration": "Iterations are addressed by their names: give it, or one of "
    "get_iterations().",
    "get_sp_iteration": "Iterations are addressed by their names: give it, or one of get_iterations().",
    "get_output_blocks": "get_blocks() lists the blocks, get_consumers(block) those that read what one "
    "writes.",
    "merge": "fuse joins the loops of one nest.",
    "reverse_cache_read": "reindex_cache_read(block, buffer=..., scope=..., order=...) reads what the "
    "block needs in an order of its own.",
    "reverse_cache_write": "reindex_cache_write(block, buffer=..., scope=..., order=...) writes it in an "
    "order of its own.",
    "read_at": "cache_read and compute_at do it in two steps.",
    "write_at": "cache_write and reverse_compute_at do it in two steps.",
    "sample_partitioned_tile": "sample_perfect_tile draws factors.",
    "reorder_block_iter_var": "reorder moves loops; the order of iterators does not matter.",
    "transform_block_layout": "fuse, split and reorder transform the loops of a block.",
    "set_axis_separator": "Buffers are flattened by the lowering.",
    "pad_einsum": "align peels a loop, split guards the rest of one.",
    "annotate_buffer_access": "Regions are derived from what a block accesses.",
    "unsafe_hide_buffer_access": "hide_buffer_access takes buffers out of the regions of a block.",
    "enter_postproc": "Postprocessing is not marked in a trace.",
    "can_compute_at": "A primitive that is refused raises ScheduleError and leaves the builder as it was.",
    "can_reverse_compute_at": "A primitive that is refused raises ScheduleError and leaves the builder as "
    "it was.",
    "lower_sparse_iter": "lower() moves on to the next stage.",
    "lower_sparse_buffer": "lower() moves on to the next stage.",
    "lower_iterations": "lower() moves on to the next stage.",
    "lower_buffers": "lower() moves on to the next stage.",
    "build": "gossamer.compile(program, schedule=builder) makes a kernel.",
    "compile": "gossamer.compile(program, schedule=builder) makes a kernel.",
}
"""Names of methods and attributes that a builder does not have."""

ARGUMENTS: Mapping[tuple[str, str], str] = {
    ("compute_at", "preserve_unit_loops"): "Loops of one iteration are always kept.",
    ("reverse_compute_at", "preserve_unit_loops"): "Loops of one iteration are always kept.",
    ("compute_at", "index"): "A block moves directly before what uses it.",
    ("reverse_compute_at", "index"): "A block moves directly after what it uses.",
    ("split", "preserve_unit_iters"): "Loops of one iteration are always kept.",
    ("fuse", "preserve_unit_iters"): "Loops of one iteration are always kept.",
    ("split", "disable_predication"): "A predicate is left out where the factors provably divide.",
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
    ("cache_read", "consumer_blocks"): "The cache is of the one block.",
    ("cache_write", "consumer_blocks"): "The cache is of the one block.",
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
    ("sparse_fuse", "loops"): "axes are those of the iteration, by their names.",
}
"""What is said about an argument of another compiler, or about a wrong value of one of ours."""

_POSITIONS: Mapping[str, str] = {
    "cache_read": "A buffer is addressed by its name, not by its place among those the block reads.",
    "cache_write": "A buffer is addressed by its name, not by its place among those the block writes.",
    "storage_align": "A buffer is addressed by its name, without a block.",
    "set_scope": "A buffer is addressed by its name, without a block.",
    "transform_layout": "A buffer is addressed by its name, without a block.",
}
"""What is said where more arguments are given by position than a primitive takes."""


def argument_hint(op: str, name: str = "") -> str:
    """A sentence about an argument (without a name: about places of arguments), after a space; or nothing.

    >>> argument_hint("bind", "thread_axis")
    ' It is called thread.'
    """
    found = ARGUMENTS.get((op, name), "") if name else _POSITIONS.get(op, "")
    return f" {found}" if found else ""
