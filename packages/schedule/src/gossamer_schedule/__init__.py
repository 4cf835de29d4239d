"""Schedule primitives, traces, and the rules for default schedules.

Importing this package is cheap: modules are imported when a name is first used. `python -m tools.generate
primitives exports` writes the imports of primitives, `__all__` and `_HOMES`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_schedule.builder import ScheduleBuilder
    from gossamer_schedule.cursor.ambiguity import AmbiguousNameWarning
    from gossamer_schedule.cursor.name_queries import (
        get_blocks,
        get_child_blocks,
        get_consumers,
        get_iterations,
        get_loops,
        get_producers,
    )
    from gossamer_schedule.format_rewriting.format_decompose import format_decompose
    from gossamer_schedule.format_rewriting.format_rewrite_rule import FormatRewriteRule
    from gossamer_schedule.primitive_result import PrimitiveResult
    from gossamer_schedule.primitives.annotations.annotate import annotate
    from gossamer_schedule.primitives.annotations.hide_buffer_access import hide_buffer_access
    from gossamer_schedule.primitives.annotations.set_block_filter import set_block_filter
    from gossamer_schedule.primitives.annotations.store_nontemporal import store_nontemporal
    from gossamer_schedule.primitives.annotations.unannotate import unannotate
    from gossamer_schedule.primitives.annotations.unset_block_filter import unset_block_filter
    from gossamer_schedule.primitives.blocks.blockize import blockize
    from gossamer_schedule.primitives.blocks.compute_at import compute_at
    from gossamer_schedule.primitives.blocks.compute_inline import compute_inline
    from gossamer_schedule.primitives.blocks.decompose_padding import decompose_padding
    from gossamer_schedule.primitives.blocks.decompose_reduction import decompose_reduction
    from gossamer_schedule.primitives.blocks.fuse_reduction_epilogue import fuse_reduction_epilogue
    from gossamer_schedule.primitives.blocks.reverse_compute_at import reverse_compute_at
    from gossamer_schedule.primitives.blocks.reverse_compute_inline import reverse_compute_inline
    from gossamer_schedule.primitives.blocks.rfactor import rfactor
    from gossamer_schedule.primitives.blocks.sparse_tensorize import sparse_tensorize
    from gossamer_schedule.primitives.blocks.tensorize import tensorize
    from gossamer_schedule.primitives.buffers.cache_index import cache_index
    from gossamer_schedule.primitives.buffers.cache_inplace import cache_inplace
    from gossamer_schedule.primitives.buffers.cache_read import cache_read
    from gossamer_schedule.primitives.buffers.cache_region import cache_region
    from gossamer_schedule.primitives.buffers.cache_write import cache_write
    from gossamer_schedule.primitives.buffers.reindex import reindex
    from gossamer_schedule.primitives.buffers.reindex_cache_read import reindex_cache_read
    from gossamer_schedule.primitives.buffers.reindex_cache_write import reindex_cache_write
    from gossamer_schedule.primitives.buffers.rolling_buffer import rolling_buffer
    from gossamer_schedule.primitives.buffers.set_scope import set_scope
    from gossamer_schedule.primitives.buffers.storage_align import storage_align
    from gossamer_schedule.primitives.buffers.transform_layout import transform_layout
    from gossamer_schedule.primitives.coordinate.decompose_format import decompose_format
    from gossamer_schedule.primitives.coordinate.sparse_compute_at import sparse_compute_at
    from gossamer_schedule.primitives.coordinate.sparse_fuse import sparse_fuse
    from gossamer_schedule.primitives.coordinate.sparse_reorder import sparse_reorder
    from gossamer_schedule.primitives.coordinate.sparse_unfuse import sparse_unfuse
    from gossamer_schedule.primitives.loops.add_unit_loop import add_unit_loop
    from gossamer_schedule.primitives.loops.align import align
    from gossamer_schedule.primitives.loops.bind import bind
    from gossamer_schedule.primitives.loops.convert_lanes import convert_lanes
    from gossamer_schedule.primitives.loops.fission import fission
    from gossamer_schedule.primitives.loops.fuse import fuse
    from gossamer_schedule.primitives.loops.horizontal_fuse import horizontal_fuse
    from gossamer_schedule.primitives.loops.lift_loop import lift_loop
    from gossamer_schedule.primitives.loops.loop_partition import loop_partition
    from gossamer_schedule.primitives.loops.loop_version import loop_version
    from gossamer_schedule.primitives.loops.parallel import parallel
    from gossamer_schedule.primitives.loops.parallel_reduction import parallel_reduction
    from gossamer_schedule.primitives.loops.pipeline import pipeline
    from gossamer_schedule.primitives.loops.prefetch import prefetch
    from gossamer_schedule.primitives.loops.reorder import reorder
    from gossamer_schedule.primitives.loops.split import split
    from gossamer_schedule.primitives.loops.uniform_extent import uniform_extent
    from gossamer_schedule.primitives.loops.unroll import unroll
    from gossamer_schedule.primitives.loops.vectorize import vectorize
    from gossamer_schedule.primitives.sampling.sample_categorical import sample_categorical
    from gossamer_schedule.primitives.sampling.sample_compute_location import (
        sample_compute_location,
    )
    from gossamer_schedule.primitives.sampling.sample_perfect_tile import sample_perfect_tile
    from gossamer_schedule.primitives.unsafe.unsafe_match_to_alloc import unsafe_match_to_alloc
    from gossamer_schedule.primitives.unsafe.unsafe_parallel import unsafe_parallel
    from gossamer_schedule.primitives.unsafe.unsafe_reorder import unsafe_reorder
    from gossamer_schedule.primitives.unsafe.unsafe_set_dtype import unsafe_set_dtype
    from gossamer_schedule.primitives.unsafe.unsafe_vectorize import unsafe_vectorize
    from gossamer_schedule.trace.primitive_table import PRIMITIVES
    from gossamer_schedule.trace.replay import apply, replay

__all__ = [
    "AmbiguousNameWarning",
    "FormatRewriteRule",
    "PRIMITIVES",
    "PrimitiveResult",
    "ScheduleBuilder",
    "add_unit_loop",
    "align",
    "annotate",
    "apply",
    "bind",
    "blockize",
    "cache_index",
    "cache_inplace",
    "cache_read",
    "cache_region",
    "cache_write",
    "compute_at",
    "compute_inline",
    "convert_lanes",
    "decompose_format",
    "decompose_padding",
    "decompose_reduction",
    "fission",
    "format_decompose",
    "fuse",
    "fuse_reduction_epilogue",
    "get_blocks",
    "get_child_blocks",
    "get_consumers",
    "get_iterations",
    "get_loops",
    "get_producers",
    "hide_buffer_access",
    "horizontal_fuse",
    "lift_loop",
    "loop_partition",
    "loop_version",
    "parallel",
    "parallel_reduction",
    "pipeline",
    "prefetch",
    "reindex",
    "reindex_cache_read",
    "reindex_cache_write",
    "reorder",
    "replay",
    "reverse_compute_at",
    "reverse_compute_inline",
    "rfactor",
    "rolling_buffer",
    "sample_categorical",
    "sample_compute_location",
    "sample_perfect_tile",
    "set_block_filter",
    "set_scope",
    "sparse_compute_at",
    "sparse_fuse",
    "sparse_reorder",
    "sparse_tensorize",
    "sparse_unfuse",
    "split",
    "storage_align",
    "store_nontemporal",
    "tensorize",
    "transform_layout",
    "unannotate",
    "uniform_extent",
    "unroll",
    "unsafe_match_to_alloc",
    "unsafe_parallel",
    "unsafe_reorder",
    "unsafe_set_dtype",
    "unsafe_vectorize",
    "unset_block_filter",
    "vectorize",
]

_HOMES = {
    "AmbiguousNameWarning": "gossamer_schedule.cursor.ambiguity",
    "FormatRewriteRule": "gossamer_schedule.format_rewriting.format_rewrite_rule",
    "PRIMITIVES": "gossamer_schedule.trace.primitive_table",
    "PrimitiveResult": "gossamer_schedule.primitive_result",
    "ScheduleBuilder": "gossamer_schedule.builder",
    "add_unit_loop": "gossamer_schedule.primitives.loops.add_unit_loop",
    "align": "gossamer_schedule.primitives.loops.align",
    "annotate": "gossamer_schedule.primitives.annotations.annotate",
    "apply": "gossamer_schedule.trace.replay",
    "bind": "gossamer_schedule.primitives.loops.bind",
    "blockize": "gossamer_schedule.primitives.blocks.blockize",
    "cache_index": "gossamer_schedule.primitives.buffers.cache_index",
    "cache_inplace": "gossamer_schedule.primitives.buffers.cache_inplace",
    "cache_read": "gossamer_schedule.primitives.buffers.cache_read",
    "cache_region": "gossamer_schedule.primitives.buffers.cache_region",
    "cache_write": "gossamer_schedule.primitives.buffers.cache_write",
    "compute_at": "gossamer_schedule.primitives.blocks.compute_at",
    "compute_inline": "gossamer_schedule.primitives.blocks.compute_inline",
    "convert_lanes": "gossamer_schedule.primitives.loops.convert_lanes",
    "decompose_format": "gossamer_schedule.primitives.coordinate.decompose_format",
    "decompose_padding": "gossamer_schedule.primitives.blocks.decompose_padding",
    "decompose_reduction": "gossamer_schedule.primitives.blocks.decompose_reduction",
    "fission": "gossamer_schedule.primitives.loops.fission",
    "format_decompose": "gossamer_schedule.format_rewriting.format_decompose",
    "fuse": "gossamer_schedule.primitives.loops.fuse",
    "fuse_reduction_epilogue": "gossamer_schedule.primitives.blocks.fuse_reduction_epilogue",
    "get_blocks": "gossamer_schedule.cursor.name_queries",
    "get_child_blocks": "gossamer_schedule.cursor.name_queries",
    "get_consumers": "gossamer_schedule.cursor.name_queries",
    "get_iterations": "gossamer_schedule.cursor.name_queries",
    "get_loops": "gossamer_schedule.cursor.name_queries",
    "get_producers": "gossamer_schedule.cursor.name_queries",
    "hide_buffer_access": "gossamer_schedule.primitives.annotations.hide_buffer_access",
    "horizontal_fuse": "gossamer_schedule.primitives.loops.horizontal_fuse",
    "lift_loop": "gossamer_schedule.primitives.loops.lift_loop",
    "loop_partition": "gossamer_schedule.primitives.loops.loop_partition",
    "loop_version": "gossamer_schedule.primitives.loops.loop_version",
    "parallel": "gossamer_schedule.primitives.loops.parallel",
    "parallel_reduction": "gossamer_schedule.primitives.loops.parallel_reduction",
    "pipeline": "gossamer_schedule.primitives.loops.pipeline",
    "prefetch": "gossamer_schedule.primitives.loops.prefetch",
    "reindex": "gossamer_schedule.primitives.buffers.reindex",
    "reindex_cache_read": "gossamer_schedule.primitives.buffers.reindex_cache_read",
    "reindex_cache_write": "gossamer_schedule.primitives.buffers.reindex_cache_write",
    "reorder": "gossamer_schedule.primitives.loops.reorder",
    "replay": "gossamer_schedule.trace.replay",
    "reverse_compute_at": "gossamer_schedule.primitives.blocks.reverse_compute_at",
    "reverse_compute_inline": "gossamer_schedule.primitives.blocks.reverse_compute_inline",
    "rfactor": "gossamer_schedule.primitives.blocks.rfactor",
    "rolling_buffer": "gossamer_schedule.primitives.buffers.rolling_buffer",
    "sample_categorical": "gossamer_schedule.primitives.sampling.sample_categorical",
    "sample_compute_location": "gossamer_schedule.primitives.sampling.sample_compute_location",
    "sample_perfect_tile": "gossamer_schedule.primitives.sampling.sample_perfect_tile",
    "set_block_filter": "gossamer_schedule.primitives.annotations.set_block_filter",
    "set_scope": "gossamer_schedule.primitives.buffers.set_scope",
    "sparse_compute_at": "gossamer_schedule.primitives.coordinate.sparse_compute_at",
    "sparse_fuse": "gossamer_schedule.primitives.coordinate.sparse_fuse",
    "sparse_reorder": "gossamer_schedule.primitives.coordinate.sparse_reorder",
    "sparse_tensorize": "gossamer_schedule.primitives.blocks.sparse_tensorize",
    "sparse_unfuse": "gossamer_schedule.primitives.coordinate.sparse_unfuse",
    "split": "gossamer_schedule.primitives.loops.split",
    "storage_align": "gossamer_schedule.primitives.buffers.storage_align",
    "store_nontemporal": "gossamer_schedule.primitives.annotations.store_nontemporal",
    "tensorize": "gossamer_schedule.primitives.blocks.tensorize",
    "transform_layout": "gossamer_schedule.primitives.buffers.transform_layout",
    "unannotate": "gossamer_schedule.primitives.annotations.unannotate",
    "uniform_extent": "gossamer_schedule.primitives.loops.uniform_extent",
    "unroll": "gossamer_schedule.primitives.loops.unroll",
    "unsafe_match_to_alloc": "gossamer_schedule.primitives.unsafe.unsafe_match_to_alloc",
    "unsafe_parallel": "gossamer_schedule.primitives.unsafe.unsafe_parallel",
    "unsafe_reorder": "gossamer_schedule.primitives.unsafe.unsafe_reorder",
    "unsafe_set_dtype": "gossamer_schedule.primitives.unsafe.unsafe_set_dtype",
    "unsafe_vectorize": "gossamer_schedule.primitives.unsafe.unsafe_vectorize",
    "unset_block_filter": "gossamer_schedule.primitives.annotations.unset_block_filter",
    "vectorize": "gossamer_schedule.primitives.loops.vectorize",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
