"""The primitives as methods of builders.

`python -m tools.generate primitives` writes the imports and the methods, one for each module in `primitives`
that defines a primitive.
"""

from __future__ import annotations

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
from gossamer_schedule.primitives.sampling.sample_compute_location import sample_compute_location
from gossamer_schedule.primitives.sampling.sample_perfect_tile import sample_perfect_tile
from gossamer_schedule.primitives.unsafe.unsafe_match_to_alloc import unsafe_match_to_alloc
from gossamer_schedule.primitives.unsafe.unsafe_parallel import unsafe_parallel
from gossamer_schedule.primitives.unsafe.unsafe_reorder import unsafe_reorder
from gossamer_schedule.primitives.unsafe.unsafe_set_dtype import unsafe_set_dtype
from gossamer_schedule.primitives.unsafe.unsafe_vectorize import unsafe_vectorize
from gossamer_schedule.trace.fluent import AppliesPrimitives, fluent


class Fluent(AppliesPrimitives):
    """The primitives as methods that take the arguments after the module and return the object."""

    add_unit_loop = fluent(add_unit_loop)
    align = fluent(align)
    annotate = fluent(annotate)
    bind = fluent(bind)
    blockize = fluent(blockize)
    cache_index = fluent(cache_index)
    cache_inplace = fluent(cache_inplace)
    cache_read = fluent(cache_read)
    cache_region = fluent(cache_region)
    cache_write = fluent(cache_write)
    compute_at = fluent(compute_at)
    compute_inline = fluent(compute_inline)
    convert_lanes = fluent(convert_lanes)
    decompose_format = fluent(decompose_format)
    decompose_padding = fluent(decompose_padding)
    decompose_reduction = fluent(decompose_reduction)
    fission = fluent(fission)
    fuse = fluent(fuse)
    fuse_reduction_epilogue = fluent(fuse_reduction_epilogue)
    hide_buffer_access = fluent(hide_buffer_access)
    horizontal_fuse = fluent(horizontal_fuse)
    lift_loop = fluent(lift_loop)
    loop_partition = fluent(loop_partition)
    loop_version = fluent(loop_version)
    parallel = fluent(parallel)
    parallel_reduction = fluent(parallel_reduction)
    pipeline = fluent(pipeline)
    prefetch = fluent(prefetch)
    reindex = fluent(reindex)
    reindex_cache_read = fluent(reindex_cache_read)
    reindex_cache_write = fluent(reindex_cache_write)
    reorder = fluent(reorder)
    reverse_compute_at = fluent(reverse_compute_at)
    reverse_compute_inline = fluent(reverse_compute_inline)
    rfactor = fluent(rfactor)
    rolling_buffer = fluent(rolling_buffer)
    sample_categorical = fluent(sample_categorical)
    sample_compute_location = fluent(sample_compute_location)
    sample_perfect_tile = fluent(sample_perfect_tile)
    set_block_filter = fluent(set_block_filter)
    set_scope = fluent(set_scope)
    sparse_compute_at = fluent(sparse_compute_at)
    sparse_fuse = fluent(sparse_fuse)
    sparse_reorder = fluent(sparse_reorder)
    sparse_tensorize = fluent(sparse_tensorize)
    sparse_unfuse = fluent(sparse_unfuse)
    split = fluent(split)
    storage_align = fluent(storage_align)
    store_nontemporal = fluent(store_nontemporal)
    tensorize = fluent(tensorize)
    transform_layout = fluent(transform_layout)
    unannotate = fluent(unannotate)
    uniform_extent = fluent(uniform_extent)
    unroll = fluent(unroll)
    unsafe_match_to_alloc = fluent(unsafe_match_to_alloc)
    unsafe_parallel = fluent(unsafe_parallel)
    unsafe_reorder = fluent(unsafe_reorder)
    unsafe_set_dtype = fluent(unsafe_set_dtype)
    unsafe_vectorize = fluent(unsafe_vectorize)
    unset_block_filter = fluent(unset_block_filter)
    vectorize = fluent(vectorize)
