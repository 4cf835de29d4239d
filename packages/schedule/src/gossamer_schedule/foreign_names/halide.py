"""Names of the schedules of Halide and TACO: their counterparts in gossamer."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_schedule.foreign_names.phrases import BY_NAME, LAYOUT, NONE

_STORED = "compute_at moves a block; the lowering decides where the buffer is allocated."
_GRID = 'bind(loop, thread="threadIdx.x") assigns a loop to threads of a grid.'
_BOUNDS = "A size is a number in the program, or specialize= of gossamer.compile fixes it."

METHODS: Mapping[str, str] = {
    "tile": "split splits the loops, and reorder moves the inner ones inside.",
    "divide": "It is called split(loop, factors=(8, None)).",
    "serial": "A loop is serial until a step changes its kind.",
    "parallelize": "It is called parallel(loop).",
    "atomic": 'It is an argument of other steps: parallel(loop, accumulate="atomic").',
    "allow_race_conditions": "unsafe_parallel(loop) skips the proof that iterations are independent.",
    "compute_root": "A block is computed on its own until compute_at or compute_inline moves it.",
    "compute_with": "fuse is for loops of one nest; reverse_compute_at moves a block into another's loop.",
    "store_at": _STORED,
    "store_root": _STORED,
    "hoist_storage": _STORED,
    "hoist_storage_root": _STORED,
    "store_in": "It is called set_scope(buffer, scope=...).",
    "fold_storage": "It is called rolling_buffer(block, buffer=...).",
    "ring_buffer": "pipeline(loop, stages=...) runs copies of later iterations ahead.",
    "align_storage": "It is called storage_align(buffer, axis=..., factor=..., offset=...).",
    "align_bounds": "align(loop, buffer=..., lanes=...) starts a loop at an aligned address of the buffer.",
    "reorder_storage": LAYOUT,
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
    "update": f"{BY_NAME}; decompose_reduction(block, loop=...) moves the init to its own block.",
    "memoize": f"{NONE}: a kernel has no state between calls.",
    "print_loop_nest": "show() returns the script of the module and its steps.",
    "realize": "Compile a kernel with gossamer.compile(program, schedule=builder).",
    "pos": "sparse_fuse(iteration, axes=...) makes one loop over elements, which split then splits.",
    "precompute": "cache_write(block, buffer=..., scope=...) computes into a workspace; rfactor into parts.",
}
"""Hints for methods, by name."""
