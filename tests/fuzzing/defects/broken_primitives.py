"""Primitives with one planted defect each: one check or one required step is removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from random import Random

from gossamer_schedule import ScheduleBuilder
from tests.fuzzing.defects.planted import Planted
from tests.fuzzing.loop_nests.chains import draw_chain
from tests.fuzzing.loop_nests.lookups import draw_lookup
from tests.fuzzing.loop_nests.nests import draw_nest
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.programs.program import Program


@dataclass(frozen=True)
class Defect(Planted):
    """A defect of a primitive. Primitives that must occur often to reveal it are drawn as often (`along`).
    Programs drawn by `draw` reveal it."""

    package = "gossamer_schedule"
    along: tuple[str, ...] = ()
    draw: Callable[[Random], Program] = draw_program

    def builder(self) -> type[ScheduleBuilder]:
        """The builder with the broken primitive."""
        builder: type[ScheduleBuilder] = self.imported(
            "gossamer_schedule.builder", "ScheduleBuilder", loading=_load_primitives
        )
        return builder

    @property
    def weights(self) -> dict[str, int]:
        """The primitives that are drawn more often than others."""
        return dict.fromkeys((self.of, *self.along), 60)


def _load_primitives() -> None:
    """Import all primitives, which are otherwise imported when they are first used."""
    tuple(import_module("gossamer_schedule.trace.primitive_table").PRIMITIVES.values())


DEFECTS = (
    Defect(
        "parallel iterations may write one element",
        of="parallel", home="primitives.loops.parallel",
        line="    require = require_no_race if accumulate is None else require_nothing\n",
        instead="    require = require_nothing\n",
    ),
    Defect(
        "what the parts of a loop have added up is not combined",
        of="parallel_reduction", home="reductions.parallel_parts",
        line="    function = function_with_replaced(parts.cursor, (fill, run, combine))\n",
        instead="    function = function_with_replaced(parts.cursor, (fill, run))\n",
        along=("decompose_reduction",),
    ),
    Defect(
        "iterations beyond the end of a loop run",
        of="split", home="primitives.loops.split",
        line="        body = with_bounded_iterations(cursor.node.body, loop, extent=cursor.node.extent)\n",
        instead="        body = cursor.node.body\n",
    ),
    Defect(
        "a loop stands around one that its extent depends on",
        of="reorder", home="primitives.loops.reorder",
        line="    _require_bounds(moved)\n",
        instead="",
    ),
    Defect(
        "iterations run that only the longest row has",
        of="uniform_extent", home="predicates.bounded_body",
        line="            return with_conditional_bound(node, loop_name, extent=extent)\n",
        instead="            return node\n",
        along=("reorder",),
    ),
    Defect(
        "any predicate counts as one that skips the iterations past the end",
        of="uniform_extent", home="primitives.loops.uniform_extent",
        line="    return point.proves(less_than(index_var(name), inner.node.extent))\n",
        instead="    return True\n",
        along=("reorder",),
    ),
    Defect(
        "loops that run at once may access one element",
        of="horizontal_fuse", home="primitives.loops.horizontal_fuse",
        line="        require_independent(first, second)\n",
        instead="        pass\n",
        along=("parallel",),
    ),
    Defect(
        "an init is lost where the fused loop is empty",
        of="fuse", home="primitives.loops.fuse",
        line="    require_inits_of_fused(cursors)\n",
        instead="",
    ),
    Defect(
        "a buffer that is used elsewhere becomes one of each iteration",
        of="compute_at", home="primitives.blocks.compute_at",
        line="    _require_no_other_use(cursor, target, own_loops=own_loops, produced=produced)\n",
        instead="",
        along=("cache_read",),
    ),
    Defect(
        "a reduction without an init begins with nothing in its cache",
        of="cache_write", home="primitives.buffers.cache_write",
        line="    if is_loading:\n",
        instead="    if False:\n",
    ),
    Defect(
        "an element is initialized again in each iteration",
        of="decompose_reduction", home="primitives.blocks.decompose_reduction",
        line="    _require_outside_reduction(cursor, top)\n",
        instead="",
    ),
    Defect(
        "the parts of a reduction begin with what was there",
        of="rfactor", home="reductions.factored_block",
        line="        init=tuple(filled),\n",
        instead="",
        along=("split",),
    ),
    Defect(
        "an init inside runs in each iteration of the loop that leaves the block",
        of="lift_loop", home="primitives.loops.lift_loop",
        line="    _require_no_reduction(cursor, block)\n",
        instead="",
    ),
    Defect(
        "an axis stands before the one that it depends on",
        of="sparse_reorder", home="primitives.coordinate.sparse_reorder",
        line="    _require_parents_first(cursor, items)\n",
        instead="",
    ),
    Defect(
        "an aligned loop runs over what lies around it",
        of="align", home="primitives.loops.align",
        line="    bounded = tuple(with_range_condition(block, loop, extent=extent) for block in blocks)\n",
        instead="    bounded = blocks\n",
    ),
    Defect(
        "an element is used before it is complete",
        of="reverse_compute_at", home="regions.consumer_ranges",
        line="    return ranges if all(loop.var in captured for loop in move.path) else None\n",
        instead="    return ranges\n",
        along=("cache_write",),
    ),
    Defect(
        "lanes of a vector may write one element",
        of="vectorize", home="primitives.loops.vectorize",
        line="is_reduction=is_reduction, require=require)\n",
        instead="is_reduction=is_reduction, require=lambda cursor: None)\n",
        along=("split",),
    ),
    Defect(
        "a part of a reduction begins again",
        of="loop_partition", home="primitives.loops.loop_partition",
        line="            body = _without_inits(body, {copy.blocks[name] for name in once})\n",
        instead="            pass\n",
    ),
    Defect(
        "a statement runs before one that changes what it uses",
        of="fission", home="primitives.loops.fission",
        line="        _require_independent(before, parts[cut], cursor)\n",
        instead="",
        draw=draw_nest,
    ),
    Defect(
        "padding is stored where another point has stored a value",
        of="decompose_padding", home="primitives.blocks.decompose_padding",
        line="    require_distinct_stores(cursor, padded.buffer, nest=nest.loops)\n",
        instead="",
        draw=draw_nest,
    ),
    Defect(
        "a version that a loop chooses begins a reduction again",
        of="loop_version", home="primitives.loops.loop_version",
        line="    _require_inits(cursor, test)\n",
        instead="",
        draw=draw_nest,
    ),
    Defect(
        "a buffer disappears that is searched, prefetched or guarded",
        of="compute_inline", home="primitives.blocks.compute_inline",
        line="    _require_only_loads(without, store)\n",
        instead="",
        along=("cache_read", "prefetch"),
    ),
    Defect(
        "a copy that is worked on begins with nothing",
        of="cache_inplace", home="primitives.buffers.cache_inplace",
        line="        before=copies[:1],\n",
        instead="",
    ),
    Defect(
        "a copied region ends beyond the buffer",
        of="cache_region", home="primitives.buffers.cache_region",
        line="    if _end(tile) != _end(clamped):\n",
        instead="    if False:\n",
        along=("split",),
    ),
    Defect(
        "an index is computed before where it may not exist",
        of="cache_index", home="primitives.buffers.cache_index",
        line="    if not are_loads_safe(cursor.function, (lookup,), iters=iters, conditions=conditions):\n",
        instead="    if False:\n",
        draw=draw_lookup,
    ),
    Defect(
        "a sum starts from what is written after that",
        of="fuse_reduction_epilogue", home="primitives.blocks.fuse_reduction_epilogue",
        line="    conflicts = ({target} & buffers_named(*passed)) | (reads & outer_writes(passed))\n",
        instead="    conflicts: set[str] = set()\n",
        draw=draw_chain,
    ),
    Defect(
        "a value of an earlier iteration is kept that depends on the iteration",
        of="rolling_buffer", home="regions.sliding_window",
        line="    if window is None or _depends_otherwise(cursor, window_loop, own_loops, window):\n",
        instead="    if window is None:\n",
        draw=draw_chain,
    ),
    Defect(
        "an element is not made again after what it is made of has changed",
        of="rolling_buffer", home="primitives.buffers.rolling_buffer",
        line="    if changed:\n",
        instead="    if False:\n",
        draw=draw_chain,
    ),
    Defect(
        "the sum of a cache replaces what was there",
        of="reindex_cache_write", home="staging.scatter",
        line="    if reduction is not None:\n        value = ",
        instead="    if False:\n        value = ",
    ),
    Defect(
        "an axis is fused with one that is not its parent",
        of="sparse_fuse", home="primitives.coordinate.sparse_fuse",
        line="    _require_chain(cursor, axes)\n",
        instead="",
    ),
    Defect(
        "axes that were fused are iterated in the reverse order",
        of="sparse_unfuse", home="primitives.coordinate.sparse_unfuse",
        line="single = tuple(OverAxis(name) for name in axes)",
        instead="single = tuple(OverAxis(name) for name in reversed(axes))",
        along=("sparse_fuse",),
    ),
    Defect(
        "a buffer is prefetched that later iterations allocate",
        of="prefetch", home="primitives.loops.prefetch",
        line="    _require_allocated_outside(target, cursor)\n",
        instead="",
        along=("cache_read", "compute_at"),
    ),
)  # fmt: skip
