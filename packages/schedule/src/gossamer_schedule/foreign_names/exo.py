"""Names of the scheduling operators of Exo: their counterparts in gossamer."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_schedule.foreign_names.phrases import LAYOUT, MODULE, NONE

_NO_REWRITING = f"{NONE}: steps do not rewrite expressions."
_ALLOCATION = "The lowering decides where a buffer is allocated and how large it is."
_INTRINSIC = (
    "tensorize(loop, intrinsic=...) replaces a nest; the target's plugin defines intrinsics."
)
_NO_STATE = f"{NONE}: there is no configuration state."
_NO_WINDOWS = f"{NONE}: blocks address whole buffers."

METHODS: Mapping[str, str] = {
    "proc": MODULE,
    "simplify": "The lowering simplifies expressions.",
    "rename": "A step derives the names that it makes from those of the program.",
    "make_instr": _INTRINSIC,
    "replace": _INTRINSIC,
    "replace_all": _INTRINSIC,
    "call_eqv": _INTRINSIC,
    "insert_pass": f"{NONE}: there are no empty statements.",
    "delete_pass": f"{NONE}: there are no empty statements.",
    "insert_noop_call": f"{NONE}; prefetch(block, ...) prefetches data.",
    "reorder_stmts": "compute_at and reverse_compute_at move a block into a loop.",
    "parallelize_loop": "It is called parallel(loop).",
    "commute_expr": _NO_REWRITING,
    "left_reassociate_expr": _NO_REWRITING,
    "rewrite_expr": _NO_REWRITING,
    "lift_reduce_constant": _NO_REWRITING,
    "fold_into_reduce": f"{NONE}: C[i] = C[i] + x is recognized as a reduction.",
    "bind_expr": "cache_read(block, buffer=..., scope=...) copies a buffer that the block reads; "
    "cache_index(block, ...) computes index expressions in advance.",
    "stage_mem": "cache_read, cache_region, cache_write and cache_inplace copy the buffers that a "
    "block accesses.",
    "stage_window": "cache_region(block, buffer=..., loop=..., scope=...) copies the region that an "
    "iteration of a loop reads.",
    "extract_subproc": f"{NONE}: a schedule works on one function.",
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
    "expand_dim": LAYOUT,
    "rearrange_dim": LAYOUT,
    "divide_dim": LAYOUT,
    "mult_dim": LAYOUT,
    "resize_dim": _ALLOCATION,
    "bound_alloc": _ALLOCATION,
    "lift_alloc": _ALLOCATION,
    "sink_alloc": _ALLOCATION,
    "autolift_alloc": _ALLOCATION,
    "delete_buffer": f"{NONE}: a step that makes a buffer unnecessary, such as compute_inline, removes it.",
    "reuse_buffer": f"{NONE}: steps do not merge buffers.",
    "unroll_buffer": "A small buffer that unrolled loops address by constants is kept in registers.",
    "divide_loop": "It is called split(loop, factors=(None, 8)).",
    "divide_with_recompute": "split splits the consumer's loop, and compute_at(block, loop=...) computes "
    "the elements that each part needs.",
    "mult_loops": "It is called fuse.",
    "join_loops": f"{NONE}; undo() reverts a loop_partition.",
    "cut_loop": "It is called loop_partition(loop, points=...).",
    "shift_loop": f"{NONE}: loops keep their start.",
    "reorder_loops": "It is called reorder.",
    "merge_writes": "fuse_reduction_epilogue makes the other operand of a sum its initial value.",
    "split_write": "decompose_reduction(block, loop=...) moves the init to its own block.",
    "autofission": "fission(loop, after=...) distributes one loop.",
    "fission_after": "It is called fission(loop, after=...).",
    "remove_loop": f"{NONE}: loops of one iteration cost nothing.",
    "add_loop": "add_unit_loop(name) adds a loop of one iteration.",
    "unroll_loop": "It is called unroll(loop).",
    "lift_scope": "reorder moves a loop out of another, loop_version(loop, condition=...) a condition.",
    "lift_if": "loop_version(loop, condition=...) moves a condition out of a loop.",
    "specialize": "It is called loop_version(name, condition=...); gossamer.compile takes specialize= for "
    "sizes.",
    "eliminate_dead_code": "The lowering removes conditions that are proved.",
    "add_unsafe_guard": f"{NONE}: the unsafe_ primitives skip proofs that you guarantee.",
}
"""Hints for methods, by name."""
