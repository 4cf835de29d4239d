"""The primitives by name. A primitive is imported when it is looked up, since a program needs few of them.

`python -m tools.generate primitives` writes the names, one for each module in `primitives` that defines a
primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from gossamer_schedule.primitive_result import PrimitiveResult

_HOMES = {
    "add_unit_loop": "gossamer_schedule.primitives.loops.add_unit_loop",
    "align": "gossamer_schedule.primitives.loops.align",
    "annotate": "gossamer_schedule.primitives.annotations.annotate",
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
    "fuse": "gossamer_schedule.primitives.loops.fuse",
    "fuse_reduction_epilogue": "gossamer_schedule.primitives.blocks.fuse_reduction_epilogue",
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


class PrimitiveTable(Mapping[str, Callable[..., PrimitiveResult]]):
    """Functions by name, of modules that have their names.

    >>> table = PrimitiveTable({"split": "gossamer_schedule.primitives.loops.split"})
    >>> table["split"].__name__, "fuse" in table
    ('split', False)
    """

    def __init__(self, homes: Mapping[str, str]) -> None:
        self._homes = homes
        self._imported: dict[str, Callable[..., PrimitiveResult]] = {}

    def __getitem__(self, name: str) -> Callable[..., PrimitiveResult]:
        if name not in self._imported:
            self._imported[name] = getattr(import_module(self._homes[name]), name)
        return self._imported[name]

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


PRIMITIVES = PrimitiveTable(_HOMES)
"""Every primitive by the name that steps give it."""
