"""Primitives with one check removed each, which random programs of the position and loop stage must
detect.
"""

from __future__ import annotations

from tests.fuzzing.defects.broken_primitives import Defect

DEFECTS = (
    Defect(
        "a value is computed after what it reads was written",
        of="compute_inline", home="primitives.blocks.compute_inline",
        line="    _require_unchanged_inputs(cursor)\n", instead="",
    ),
    Defect(
        "a value is read before the block that makes it",
        of="compute_inline", home="primitives.blocks.compute_inline",
        line="    _require_uses_after(cursor, store)\n", instead="",
    ),
    Defect(
        "values from an earlier iteration are lost",
        of="compute_at", home="primitives.blocks.compute_at",
        line="    require_recomputed(cursor, own_loops, target, produced=produced)\n", instead="",
    ),
    Defect(
        "a block moves past a write of what it reads",
        of="compute_at", home="primitives.blocks.compute_at",
        line="    _require_no_write_between(cursor, top, own_loops=own_loops)\n", instead="",
    ),
    Defect(
        "elements that the block does not store to are published",
        of="cache_write", home="primitives.buffers.cache_write",
        line="    is_loading = _is_old_value_needed(writer, element)\n", instead="    is_loading = False\n",
    ),
    Defect(
        "statements that depend on each other are in two loops",
        of="fission", home="primitives.loops.fission",
        line="        _require_independent(before, parts[cut], cursor)\n", instead="",
    ),
    Defect(
        "an init is made once for several iterations that need it",
        of="decompose_reduction", home="primitives.blocks.decompose_reduction",
        line="    _require_init_may_leave(nest, read_around)\n", instead="",
    ),
    Defect(
        "a loop of lanes depends on what the lanes before stored",
        of="vectorize", home="primitives.loops.vectorize",
        line="require=require)\n", instead="require=lambda cursor: None)\n",
    ),
    Defect(
        "iterations in another order change what others read",
        of="reorder", home="primitives.loops.reorder",
        line="    body = require(top, chain, moved)\n",
        instead="    body = chain[-1].body\n",
    ),
    Defect(
        "a loop begins at 0, wherever it begins",
        of="split", home="primitives.loops.split",
        line="    require_zero_start(cursor)\n",
        instead="",
    ),
    Defect(
        "a copy is read after the buffer has changed",
        of="cache_read", home="staging.read_elements",
        line="    if buffer_name in buffers_written((nest.top.node,)):\n", instead="    if False:\n",
    ),
    Defect(
        "an aligned buffer has the padding only",
        of="storage_align", home="primitives.buffers.storage_align",
        line="return index(count + padding)", instead="return index(padding)",
        along=("cache_read",),
    ),
    Defect(
        "a unit loop has no iteration",
        of="add_unit_loop", home="primitives.loops.add_unit_loop",
        line="ZERO, ONE, (cursor.node,)", instead="ZERO, ZERO, (cursor.node,)",
    ),
    Defect(
        "threads may write one element",
        of="bind", home="primitives.loops.bind",
        line="require=require_no_race, ", instead="require=lambda cursor: None, ",
    ),
    Defect(
        "an init stays in a block that runs again for each part of a reduction",
        of="blockize", home="tensorization.outer_block",
        line="if block.init and (instead is not None or _runs_before(cursor, around)):",
        instead="if block.init and instead is not None:",
        along=("split",),
    ),
    Defect(
        "an intrinsic stores elements that it also reads",
        of="tensorize", home="tensorization.apply_intrinsic",
        line="    _require_own_elements(nest, parsed, match)\n", instead="",
        along=("split",),
    ),
    Defect(
        "an intrinsic that gathers stores elements that it also reads",
        of="sparse_tensorize", home="tensorization.apply_intrinsic",
        line="    _require_own_elements(nest, parsed, match)\n", instead="",
        along=("split",),
    ),
    Defect(
        "elements are gathered that the nest changes afterward",
        of="reindex_cache_read", home="staging.read_elements",
        line="    if buffer_name in buffers_written((nest.top.node,)):\n", instead="    if False:\n",
    ),
    Defect(
        "scattered sums replace what was there",
        of="reindex", home="staging.scatter",
        line="    if reduction is not None:\n        value = ",
        instead="    if False:\n        value = ",
    ),
)  # fmt: skip
