"""The primitives as methods that record a step, for rules.

`python -m tools.generate primitives` writes the imports and the methods, one for each module in `primitives`
that defines a primitive. They are written out, so that type checkers check the arguments of steps without an
import of the primitives, which takes longer than to plan a schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from gossamer_ir.interchange.records import Arg, Step

if TYPE_CHECKING:
    from gossamer_ir.nodes import Scope, ThreadTag
    from gossamer_schedule.primitives.annotations.hide_buffer_access import AccessKind
    from gossamer_schedule.primitives.loops.vectorize import Remainder


class StepRecorder:
    """Gives steps to a function. Each method takes the arguments of a primitive after the module; None is not
    recorded.

    >>> recorder = StepRecorder(print)
    >>> recorder.parallel("i", grain=8)
    Step(op='parallel', args={'loop': 'i', 'grain': 8})
    """

    def __init__(self, receive: Callable[[Step], None]) -> None:
        self._receive = receive

    def _record(self, op: str, **args: Arg | None) -> None:
        step_args: dict[str, Arg] = {
            name: value for name, value in args.items() if value is not None
        }
        self._receive(Step(op, step_args))

    # --- primitives

    def add_unit_loop(self, name: str) -> None:
        self._record("add_unit_loop", name=name)

    def align(self, loop: str, *, buffer: str, lanes: int) -> None:
        self._record("align", loop=loop, buffer=buffer, lanes=lanes)

    def annotate(self, name: str, *, key: str, value: bool | int | str) -> None:
        self._record("annotate", name=name, key=key, value=value)

    def bind(
        self, loop: str, *, thread: ThreadTag, accumulate: Literal["atomic"] | None = None
    ) -> None:
        self._record("bind", loop=loop, thread=thread, accumulate=accumulate)

    def blockize(self, loop: str) -> None:
        self._record("blockize", loop=loop)

    def cache_index(self, block: str, *, scope: Scope, buffer: str | None = None) -> None:
        self._record("cache_index", block=block, scope=scope, buffer=buffer)

    def cache_inplace(self, block: str, *, buffer: str, scope: Scope) -> None:
        self._record("cache_inplace", block=block, buffer=buffer, scope=scope)

    def cache_read(self, block: str, *, buffer: str, scope: Scope) -> None:
        self._record("cache_read", block=block, buffer=buffer, scope=scope)

    def cache_region(self, block: str, *, buffer: str, loop: str, scope: Scope) -> None:
        self._record("cache_region", block=block, buffer=buffer, loop=loop, scope=scope)

    def cache_write(self, block: str, *, buffer: str, scope: Scope) -> None:
        self._record("cache_write", block=block, buffer=buffer, scope=scope)

    def compute_at(self, block: str, *, loop: str) -> None:
        self._record("compute_at", block=block, loop=loop)

    def compute_inline(self, block: str) -> None:
        self._record("compute_inline", block=block)

    def convert_lanes(self, outer: str, loop: str, *, lanes: int | str) -> None:
        self._record("convert_lanes", outer=outer, loop=loop, lanes=lanes)

    def decompose_format(
        self,
        buffers: tuple[str, ...],
        *,
        names: tuple[str, ...],
        formats: tuple[str, ...],
        converts: bool | None = None,
    ) -> None:
        self._record(
            "decompose_format", buffers=buffers, names=names, formats=formats, converts=converts
        )

    def decompose_padding(self, block: str, *, loop: str) -> None:
        self._record("decompose_padding", block=block, loop=loop)

    def decompose_reduction(self, block: str, *, loop: str) -> None:
        self._record("decompose_reduction", block=block, loop=loop)

    def fission(self, loop: str, *, after: str | None = None) -> None:
        self._record("fission", loop=loop, after=after)

    def fuse(self, *loops: str) -> None:
        self._record("fuse", loops=loops)

    def fuse_reduction_epilogue(self, block: str, *, epilogue: str) -> None:
        self._record("fuse_reduction_epilogue", block=block, epilogue=epilogue)

    def hide_buffer_access(
        self, block: str, *, access: AccessKind, buffers: tuple[str, ...]
    ) -> None:
        self._record("hide_buffer_access", block=block, access=access, buffers=buffers)

    def horizontal_fuse(self, *loops: str) -> None:
        self._record("horizontal_fuse", loops=loops)

    def lift_loop(self, loop: str) -> None:
        self._record("lift_loop", loop=loop)

    def loop_partition(self, loop: str, *, points: tuple[int | str, ...]) -> None:
        self._record("loop_partition", loop=loop, points=points)

    def loop_version(self, name: str, *, condition: str) -> None:
        self._record("loop_version", name=name, condition=condition)

    def parallel(
        self,
        loop: str,
        *,
        weight: str | None = None,
        grain: int | None = None,
        accumulate: Literal["atomic"] | None = None,
    ) -> None:
        self._record("parallel", loop=loop, weight=weight, grain=grain, accumulate=accumulate)

    def parallel_reduction(
        self,
        loop: str,
        *,
        form: Literal["privatized", "segmented"] | None = None,
        parts: int | None = None,
    ) -> None:
        self._record("parallel_reduction", loop=loop, form=form, parts=parts)

    def pipeline(self, loop: str, *, stages: int | None = None) -> None:
        self._record("pipeline", loop=loop, stages=stages)

    def prefetch(self, block: str, *, buffer: str, loop: str, distance: int) -> None:
        self._record("prefetch", block=block, buffer=buffer, loop=loop, distance=distance)

    def reindex(self, block: str, *, buffer: str, order: tuple[str, ...] | None = None) -> None:
        self._record("reindex", block=block, buffer=buffer, order=order)

    def reindex_cache_read(
        self, block: str, *, buffer: str, scope: Scope, order: tuple[str, ...] | None = None
    ) -> None:
        self._record("reindex_cache_read", block=block, buffer=buffer, scope=scope, order=order)

    def reindex_cache_write(
        self, block: str, *, buffer: str, scope: Scope, order: tuple[str, ...] | None = None
    ) -> None:
        self._record("reindex_cache_write", block=block, buffer=buffer, scope=scope, order=order)

    def reorder(self, *loops: str) -> None:
        self._record("reorder", loops=loops)

    def reverse_compute_at(self, block: str, *, loop: str) -> None:
        self._record("reverse_compute_at", block=block, loop=loop)

    def reverse_compute_inline(self, block: str) -> None:
        self._record("reverse_compute_inline", block=block)

    def rfactor(self, loop: str, *, axis: int | None = None) -> None:
        self._record("rfactor", loop=loop, axis=axis)

    def rolling_buffer(self, block: str, *, buffer: str) -> None:
        self._record("rolling_buffer", block=block, buffer=buffer)

    def sample_categorical(
        self,
        name: str,
        *,
        candidates: tuple[int, ...],
        weights: tuple[int, ...] | None = None,
        decision: int | None = None,
        seed: int | None = None,
    ) -> None:
        self._record(
            "sample_categorical",
            name=name,
            candidates=candidates,
            weights=weights,
            decision=decision,
            seed=seed,
        )

    def sample_compute_location(
        self,
        block: str,
        *,
        name: str,
        move: Literal["compute_at", "reverse_compute_at"] | None = None,
        decision: str | None = None,
        seed: int | None = None,
    ) -> None:
        self._record(
            "sample_compute_location",
            block=block,
            name=name,
            move=move,
            decision=decision,
            seed=seed,
        )

    def sample_perfect_tile(
        self,
        loop: str,
        *,
        name: str,
        parts: int,
        largest: int | None = None,
        decision: tuple[int | None, ...] | None = None,
        seed: int | None = None,
    ) -> None:
        self._record(
            "sample_perfect_tile",
            loop=loop,
            name=name,
            parts=parts,
            largest=largest,
            decision=decision,
            seed=seed,
        )

    def set_block_filter(self, key: str) -> None:
        self._record("set_block_filter", key=key)

    def set_scope(self, buffer: str, *, scope: Scope) -> None:
        self._record("set_scope", buffer=buffer, scope=scope)

    def sparse_compute_at(self, iteration: str, *, into: str, var: str) -> None:
        self._record("sparse_compute_at", iteration=iteration, into=into, var=var)

    def sparse_fuse(self, iteration: str, *, axes: tuple[str, ...]) -> None:
        self._record("sparse_fuse", iteration=iteration, axes=axes)

    def sparse_reorder(self, iteration: str, *, order: tuple[str, ...]) -> None:
        self._record("sparse_reorder", iteration=iteration, order=order)

    def sparse_tensorize(self, loop: str, *, intrinsic: str) -> None:
        self._record("sparse_tensorize", loop=loop, intrinsic=intrinsic)

    def sparse_unfuse(self, iteration: str, *, axes: tuple[str, ...]) -> None:
        self._record("sparse_unfuse", iteration=iteration, axes=axes)

    def split(self, loop: str, *, factors: tuple[int | str | None, ...]) -> None:
        self._record("split", loop=loop, factors=factors)

    def storage_align(
        self, buffer: str, *, axis: int, factor: int, offset: int | None = None
    ) -> None:
        self._record("storage_align", buffer=buffer, axis=axis, factor=factor, offset=offset)

    def store_nontemporal(self, block: str, *, buffer: str) -> None:
        self._record("store_nontemporal", block=block, buffer=buffer)

    def tensorize(self, loop: str, *, intrinsic: str) -> None:
        self._record("tensorize", loop=loop, intrinsic=intrinsic)

    def transform_layout(self, buffer: str, *, index_map: str, pad: str | None = None) -> None:
        self._record("transform_layout", buffer=buffer, index_map=index_map, pad=pad)

    def unannotate(self, name: str, *, key: str) -> None:
        self._record("unannotate", name=name, key=key)

    def uniform_extent(self, loop: str, *, over: str, inline: bool | None = None) -> None:
        self._record("uniform_extent", loop=loop, over=over, inline=inline)

    def unroll(self, loop: str) -> None:
        self._record("unroll", loop=loop)

    def unsafe_match_to_alloc(self, block: str, *, buffer: str) -> None:
        self._record("unsafe_match_to_alloc", block=block, buffer=buffer)

    def unsafe_parallel(
        self, loop: str, *, weight: str | None = None, grain: int | None = None
    ) -> None:
        self._record("unsafe_parallel", loop=loop, weight=weight, grain=grain)

    def unsafe_reorder(self, *loops: str) -> None:
        self._record("unsafe_reorder", loops=loops)

    def unsafe_set_dtype(self, buffer: str, *, dtype: str) -> None:
        self._record("unsafe_set_dtype", buffer=buffer, dtype=dtype)

    def unsafe_vectorize(self, loop: str, *, remainder: Remainder | None = None) -> None:
        self._record("unsafe_vectorize", loop=loop, remainder=remainder)

    def unset_block_filter(self) -> None:
        self._record("unset_block_filter")

    def vectorize(
        self,
        loop: str,
        *,
        lanes: int | str | None = None,
        remainder: Remainder | None = None,
        accumulate: Literal["atomic"] | None = None,
    ) -> None:
        self._record(
            "vectorize", loop=loop, lanes=lanes, remainder=remainder, accumulate=accumulate
        )
