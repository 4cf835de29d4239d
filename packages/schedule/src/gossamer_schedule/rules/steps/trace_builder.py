"""Steps that a rule plans, with handles for the loops and blocks that they will make.

A rule sees a module of the coordinate stage, but most of its steps apply to the loop stage. A `TraceBuilder`
therefore records steps without applying them. Its methods return the names that the primitives will make, so
that rules pass these on to later steps as they would pass on the handles of a `ScheduleBuilder`. A rule does
not lower the program and apply its steps, since a schedule is needed to find a kernel in the cache: planning
takes 0.4 ms for `spmm`, lowering and applying the steps 17 ms
(docs/decisions/0019-rules-plan-before-lowering.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from gossamer_ir.core.lowered_names import fused_name
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import (
    ChoiceValue,
    Decision,
    RuleChoice,
    ScheduledStage,
    SchedulePoint,
    Step,
    Trace,
)
from gossamer_ir.nodes import Scope
from gossamer_ir.traversal.names import Namer
from gossamer_schedule.made_names import (
    cache_name,
    copy_block_name,
    copy_name,
    extent_name,
    horizontally_fused_name,
    init_name,
    longest_block_name,
    outer_block_name,
    part_name,
    partial_name,
    region_loop_name,
    split_loop_names,
    unit_loop_name,
)
from gossamer_schedule.rules.steps.step_recorder import StepRecorder
from gossamer_schedule.rules.steps.vector_loops import VectorLoops, VectorTiles
from gossamer_support.message_texts import either

if TYPE_CHECKING:
    from gossamer_schedule.primitives.loops.vectorize import Remainder


Chosen = TypeVar("Chosen", bound=ChoiceValue)


class MadeNest(msgspec.Struct, frozen=True):
    """A block that a primitive makes, and the loops around it by the loops that they were copied from."""

    block: str
    loops: Mapping[str, str]

    def vectors(self, loops: VectorLoops) -> VectorLoops:
        """Return the loops that were copied from those over vectors and lanes."""
        return VectorLoops(None, self.loop(loops.vector), self.loop(loops.lane))

    def loop(self, copied: str | None) -> str | None:
        """Return the loop that was copied from this one; None if there is none."""
        return None if copied is None else self.loops.get(copied)


class CacheNest(MadeNest, frozen=True):
    """A block that copies a cache to its buffer, with its loops, and the cache."""

    buffer: str


class Accumulator(NamedTuple):
    """The nests that initialize the local buffer of a block, and copy it to the output."""

    init: MadeNest
    copy: CacheNest


class PartialResults(msgspec.Struct, frozen=True):
    """The block and the buffer of partial results, and the nest that combines these."""

    block: str
    buffer: str
    combining: MadeNest


class RegionCopy(msgspec.Struct, frozen=True):
    """The block that copies a region of a buffer, and its loops: one for each dimension of the buffer."""

    block: str
    loops: tuple[str, ...]


class TraceBuilder:
    """A list of steps. A method records a step of one primitive, or a few that belong together, and returns
    the names that they will make. `decide` gives the reason for the steps since the last decision.

    Loops that do not exist (None) are passed over. A primitive numbers a name that is `taken` already; so
    does its method. `choose` returns the value of a choice at the `point` of a space of schedules.

    >>> trace = TraceBuilder()
    >>> outer, lane = trace.split("j", factors=(None, 8))
    >>> trace.vectorize(lane)
    >>> trace.steps[1]
    Step(op='vectorize', args={'loop': 'j_1'})
    >>> trace.decide("vectors of 8 elements", "they are contiguous")
    >>> [len(decision.steps) for decision in trace.decisions]
    [2]
    >>> TraceBuilder(taken=["j_1"]).split("j", factors=(None, 8))
    ('j_0', 'j_1_1')
    >>> [TraceBuilder(point=point).choose("lanes", 8, 4) for point in ({}, {"lanes": 4})]
    [8, 4]
    """

    def __init__(self, taken: Iterable[str] = (), *, point: SchedulePoint | None = None) -> None:
        self._steps: list[Step] = []
        self._decisions: list[Decision] = []
        self._undecided: list[Step] = []
        self._names = set(taken)
        self._choices: list[RuleChoice] = []
        self._point = point or {}

    @property
    def steps(self) -> Trace:
        """The steps that were recorded, in order."""
        return tuple(self._steps)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions that were taken, in order."""
        return tuple(self._decisions)

    @property
    def choices(self) -> tuple[RuleChoice, ...]:
        """The choices that were made, in order."""
        return tuple(self._choices)

    @property
    def names(self) -> frozenset[str]:
        """The names that are taken after the steps."""
        return frozenset(self._names)

    @property
    def record(self) -> StepRecorder:
        """The primitives as methods that record a step from which the rule needs no names."""
        return StepRecorder(self.append)

    def append(self, step: Step) -> None:
        """Record a step."""
        self._steps.append(step)
        self._undecided.append(step)

    def decide(self, what: str, why: str, *, stage: ScheduledStage = "loop") -> None:
        """Record a decision, with the steps since the one before."""
        self._decisions.append(Decision(what, why, tuple(self._undecided), stage))
        self._undecided.clear()

    def choose(self, name: str, *values: Chosen) -> Chosen:
        """Return the value that a choice has at the point, by default the first; record it if there are
        several.

        Raises `ArgumentError` (`schedule.choice`) if the point has a value that is not among these.
        """
        distinct, wanted = tuple(dict.fromkeys(values)), self._point.get(name, values[0])
        value = next((other for other in distinct if other == wanted), None)
        if value is None:
            listed = either(repr(value) for value in distinct)
            raise ArgumentError(
                "schedule.choice",
                f"The point has {wanted!r} for the choice '{name}'; expected {listed}.",
            )
        if len(distinct) > 1:
            self._choices.append(RuleChoice(name, value, distinct))
        return value

    def adopt(
        self,
        decisions: Iterable[Decision],
        *,
        names: Iterable[str],
        choices: Iterable[RuleChoice] = (),
    ) -> None:
        """Record decisions and choices of a builder that started with the names of this one, and the names
        that are taken after them: a loop that was split has freed its name."""
        for decision in decisions:
            self._decisions.append(decision)
            self._steps.extend(decision.steps)
        self._names = set(names)
        self._choices.extend(choices)

    # --- loops

    def sparse_fuse(self, iteration: str, *, axes: Sequence[str], vars: Sequence[str]) -> str:
        """Fuse axes at the coordinate stage. Return the loop over the fused variables at the loop stage."""
        self.record.sparse_fuse(iteration, axes=tuple(axes))
        return self._fresh(fused_name(vars))

    def split(self, loop: str, *, factors: tuple[int | str | None, ...]) -> tuple[str, ...]:
        """Split a loop. Return the new loops, outermost first."""
        self.record.split(loop, factors=factors)
        made = tuple(map(self._fresh, split_loop_names(loop, len(factors))))
        self._names.discard(loop)
        return made

    def fuse(self, *loops: str) -> str:
        """Fuse directly nested loops. Return the fused loop."""
        self.record.fuse(*loops)
        self._names.difference_update(loops)
        return self._fresh(fused_name(loops))

    def loop_partition(
        self, loop: str, *, points: tuple[str, ...], inside: Sequence[str] = ()
    ) -> tuple[tuple[str, ...], ...]:
        """Cut a loop into consecutive loops. Return for each part its loop and the copies of the names
        `inside`, in the order in which the loop contains them."""
        self.record.loop_partition(loop, points=points)
        self._names.difference_update((loop, *inside))
        return tuple(
            tuple(self._fresh(part_name(name, part)) for name in (loop, *inside))
            for part in range(len(points) + 1)
        )

    def loop_version(
        self, loop: str, *, condition: str, inside: Sequence[str] = ()
    ) -> tuple[tuple[str, ...], ...]:
        """Duplicate a loop for a condition. Return for each version the loop and the copies of the names
        `inside`, in the order in which the loop contains them."""
        self.record.loop_version(loop, condition=condition)
        self._names.difference_update((loop, *inside))
        return tuple(
            tuple(self._fresh(part_name(name, version)) for name in (loop, *inside))
            for version in range(2)
        )

    def fission(self, loop: str, *, parts: int) -> tuple[str, ...]:
        """Distribute a loop over the statements of its body. Return the new loops."""
        self.record.fission(loop)
        self._names.discard(loop)
        return tuple(self._fresh(part_name(loop, part)) for part in range(parts))

    def split_in_vectors(self, loop: str | None, tiles: VectorTiles) -> VectorLoops:
        """Split a loop into tiles of vectors of lanes. Return the loops.

        Loops of one iteration are not made. The loop is not split if it is exactly one vector.
        """
        if loop is None:
            return VectorLoops(None, None, None)
        outer = tuple(count for count in (tiles.tiles, tiles.vectors) if count != 1)
        if not outer and tiles.is_exact:
            return VectorLoops(None, None, loop)
        made = iter(self.split(loop, factors=(*outer, tiles.lane_factor)))
        tile = next(made) if tiles.tiles != 1 else None
        vector = next(made) if tiles.vectors != 1 else None
        return VectorLoops(tile, vector, next(made))

    def run_in_lanes(
        self,
        loop: str,
        *,
        lanes: int | str,
        vectors: int | None = None,
        remainder: Remainder | None = None,
    ) -> str:
        """Split a loop into vectors (None: as many as needed) of lanes. Return the loop over the vectors."""
        outer, lane = self.split(loop, factors=(vectors, lanes))
        self.vectorize(lane, remainder=remainder)
        return outer

    def inline_uniform_extent(self, loop: str, *, over: str) -> None:
        """Give a loop the same extent, an expression, in all iterations of loop `over`."""
        self.record.uniform_extent(loop, over=over, inline=True)

    def uniform_extent(self, loop: str, *, over: str) -> str:
        """Give a loop the same extent in all iterations of loop `over`. Return the loop that computes it."""
        self.record.uniform_extent(loop, over=over)
        self._fresh(extent_name(loop))
        made = self._fresh(copy_name(over))
        self._fresh(longest_block_name(loop))
        return made

    def sparse_tensorize(self, block: str, *, loop: str, intrinsic: str) -> str:
        """Replace a loop around a block by an intrinsic. Return the block around the intrinsic."""
        self.record.sparse_tensorize(loop, intrinsic=intrinsic)
        return self._fresh(outer_block_name(block))

    def reorder(self, *loops: str | None) -> None:
        """Order loops, outermost first."""
        self.record.reorder(*filter(None, loops))

    def vectorize(self, *loops: str | None, remainder: Remainder | None = None) -> None:
        """Make the iterations of each loop lanes. `remainder` says how it runs (None: in a loop)."""
        for loop in filter(None, loops):
            self.record.vectorize(loop, remainder=remainder)

    def unroll(self, *loops: str | None) -> None:
        """Unroll each loop."""
        for loop in filter(None, loops):
            self.record.unroll(loop)

    def horizontal_fuse(self, *loops: str) -> str:
        """Run loops one after the other in one loop. Return it."""
        self.record.horizontal_fuse(*loops)
        return self._fresh(horizontally_fused_name(loops[0]))

    def add_unit_loop(self, name: str) -> str:
        """Insert a loop of one iteration around a loop or block. Return it."""
        self.record.add_unit_loop(name)
        return self._fresh(unit_loop_name(name))

    # --- blocks and buffers

    def cache_write(
        self,
        block: str,
        *,
        buffer: str,
        scope: Scope,
        elements: Sequence[str | None],
        over_iters: bool = False,
    ) -> CacheNest:
        """Let a block write a cache of a buffer. Return the nest that copies the cache to the buffer.

        `elements` are the loops, before any split, whose iterators select an element of the buffer. The cache
        has the dimensions of the buffer, or one for each iterator.
        """
        record = self.record.reindex_cache_write if over_iters else self.record.cache_write
        record(block, buffer=buffer, scope=scope)
        return self._cache_nest(block, buffer=buffer, scope=scope, elements=elements)

    def cache_read(
        self,
        block: str,
        *,
        buffer: str,
        scope: Scope,
        elements: Sequence[str | None],
        over_iters: bool = False,
        order: tuple[str, ...] | None = None,
    ) -> CacheNest:
        """Let a block read a cache of a buffer. Return the nest that fills it.

        `elements` are the loops, before any split, whose iterators select an element of the buffer. The cache
        has the dimensions of the buffer, or one for each iterator, in an `order` of these.
        """
        if over_iters:
            self.record.reindex_cache_read(block, buffer=buffer, scope=scope, order=order)
        else:
            self.record.cache_read(block, buffer=buffer, scope=scope)
        return self._cache_nest(block, buffer=buffer, scope=scope, elements=elements)

    def _cache_nest(
        self, block: str, *, buffer: str, scope: Scope, elements: Sequence[str | None]
    ) -> CacheNest:
        cache = self._fresh(cache_name(buffer, scope))
        loops = self._copies(elements)
        return CacheNest(self._fresh(copy_block_name(block, cache)), loops, cache)

    def decompose_reduction(
        self, block: str, *, loop: str, elements: Sequence[str | None] = ()
    ) -> MadeNest:
        """Move the init of a block into its own nest before `loop`. Return that nest.

        `elements` are the loops from `loop` down to the block that select an element.
        """
        self.record.decompose_reduction(block, loop=loop)
        loops = {name: self._fresh(init_name(name)) for name in filter(None, elements)}
        return MadeNest(self._fresh(init_name(block)), loops)

    def lowered_init(self, block: str, *, elements: Sequence[str]) -> MadeNest:
        """Return the nest of the init of a block if lowering makes one, over these loops (`split_init`).

        It must be called before other steps, which number the names that this nest has.
        """
        if not elements:
            return MadeNest(block, {})
        loops = {name: self._fresh(init_name(name)) for name in elements}
        return MadeNest(self._fresh(init_name(block)), loops)

    def rfactor(
        self,
        block: str,
        *,
        buffer: str,
        loop: str,
        elements: Sequence[str | None],
        axis: int = 0,
    ) -> PartialResults:
        """Compute a partial result of a block in each iteration of a loop. The block of this name then
        combines them, in loops over the `elements`, whose iterators select an element, and over the partial
        results, which are along this axis of their buffer."""
        self.record.rfactor(loop, axis=axis or None)
        partial = self._fresh(partial_name(buffer))
        made = self._fresh(partial_name(block))
        combining = MadeNest(block, self._copies((*elements, loop)))
        return PartialResults(made, partial, combining)

    def cache_region(
        self, block: str, *, buffer: str, loop: str, scope: Scope, ndim: int
    ) -> RegionCopy:
        """Copy the region of a buffer that a block reads in an iteration of a loop. Return the nest that
        copies. A dimension of the buffer along which only one element is read gets no loop."""
        self.record.cache_region(block, buffer=buffer, loop=loop, scope=scope)
        cache = self._fresh(cache_name(buffer, scope))
        loops = (region_loop_name(buffer, dimension) for dimension in range(ndim))
        made = tuple(map(self._fresh, loops))
        return RegionCopy(self._fresh(copy_block_name(block, cache)), made)

    def accumulate_locally(
        self,
        block: str,
        *,
        buffer: str,
        holder: str,
        reduction: str,
        inside: Sequence[str | None] = (),
        elements: Sequence[str | None] = (),
        over_iters: bool = False,
    ) -> Accumulator:
        """Accumulate the results of a block in a local buffer during each iteration of loop `holder`.

        The buffer is initialized before loop `reduction` and copied to the output at the end of the
        iteration. `inside` are the loops of the block inside of `reduction` that select an element.
        `elements` are the loops, before any split, whose iterators select an element inside of `holder`.
        The local buffer has the dimensions of the buffer, or one for each iterator.
        """
        copy = self.cache_write(
            block, buffer=buffer, scope="local", elements=elements, over_iters=over_iters
        )
        self.record.reverse_compute_at(copy.block, loop=holder)
        init = self.decompose_reduction(block, loop=reduction, elements=inside)
        return Accumulator(init, copy)

    def _copies(self, loops: Sequence[str | None]) -> dict[str, str]:
        return {loop: self._fresh(copy_name(loop)) for loop in filter(None, loops)}

    def _fresh(self, name: str) -> str:
        """Return the name that a primitive makes: the first of `name`, `name_1`, ... that is free."""
        # Each primitive has a `Namer` of its own, which does not know the numbers that others have used.
        made = Namer(self._names).fresh(name)
        self._names.add(made)
        return made
