"""Steps that a rule plans, with handles for the loops and blocks that they will make.

A rule sees a module of the coordinate stage, but most of its steps apply to the loop stage. A `TraceBuilder`
therefore records steps without applying them. Its methods return the names that the primitives will make, so
that rules pass these on to later steps as they would pass on the handles of a `ScheduleBuilder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gossamer_ir.core.lowered_names import fused_name
from gossamer_ir.interchange.records import Arg, Step, Trace
from gossamer_schedule.definition.made_names import (
    cache_name,
    copy_block_name,
    copy_name,
    init_name,
    partial_name,
    region_loop_name,
    split_loop_names,
    unit_loop_name,
)


class VectorLoops(NamedTuple):
    """The loops over tiles, over the vectors of a tile and over lanes; "" for a loop that does not exist."""

    tile: str
    vector: str
    lane: str


class MadeNest(NamedTuple):
    """A block that a primitive makes, and the loops around it by the loops that they were copied from."""

    block: str
    loops: Mapping[str, str]


class AccumulatorLoops(NamedTuple):
    """The loops that initialize the local buffer of a block, and those that copy it to the output, by the
    loops of the block that they were copied from; `copy_block` is the block that copies."""

    init: Mapping[str, str]
    copy: Mapping[str, str]
    copy_block: str

    def init_of(self, loops: VectorLoops) -> VectorLoops:
        """Return the loops of the init for the vectors and lanes of the block."""
        return VectorLoops("", self.init.get(loops.vector, ""), self.init.get(loops.lane, ""))


class PartialSums(NamedTuple):
    """The block of partial results that `rfactor` makes, and the buffer that has them."""

    block: str
    buffer: str


class RegionCopy(NamedTuple):
    """The block that copies a region of a buffer, and its loops: one for each dimension of the buffer."""

    block: str
    loops: tuple[str, ...]


class TraceBuilder:
    """A list of steps. Methods record one or more of them and return the names that the steps will make.

    >>> trace = TraceBuilder()
    >>> outer, lane = trace.split("j", factors=(None, 8))
    >>> trace.add("vectorize", loop=lane)
    >>> trace.steps[1]
    Step(op='vectorize', args={'loop': 'j_1'})
    """

    def __init__(self) -> None:
        self._steps: list[Step] = []

    @property
    def steps(self) -> Trace:
        """The steps that were recorded, in order."""
        return tuple(self._steps)

    def add(self, op: str, **args: Arg) -> None:
        """Record a step from which the rule needs no names."""
        self._steps.append(Step(op, args))

    def sparse_fuse(self, iteration: str, *, axes: Sequence[str], variables: Sequence[str]) -> str:
        """Fuse axes at the coordinate stage. Return the loop over the fused variables at the loop stage."""
        self.add("sparse_fuse", iteration=iteration, axes=tuple(axes))
        return fused_name(variables)

    def split(self, loop: str, *, factors: tuple[int | None, ...]) -> tuple[str, ...]:
        """Split a loop. Return the new loops, outermost first."""
        self.add("split", loop=loop, factors=factors)
        return split_loop_names(loop, len(factors))

    def split_in_vectors(
        self, loop: str, *, tiles: int | None, vectors: int, lanes: int, exact: bool
    ) -> VectorLoops:
        """Split a loop into tiles (None: as many as needed) of vectors of lanes. Return the loops.

        Loops of one iteration are not made. The loop is not split if it is exactly one vector.
        """
        outer = tuple(count for count in (tiles, vectors) if count != 1)
        if not outer and exact:
            return VectorLoops("", "", loop)
        made = iter(self.split(loop, factors=(*outer, lanes)))
        tile = next(made) if tiles != 1 else ""
        vector = next(made) if vectors != 1 else ""
        return VectorLoops(tile, vector, next(made))

    def cache_write(
        self,
        block: str,
        *,
        buffer: str,
        scope: str,
        elements: Sequence[str],
        over_iterators: bool = False,
    ) -> MadeNest:
        """Let a block write a cache of a buffer. Return the nest that copies the cache to the buffer.

        `elements` are the loops, before any split, whose iterators select an element of the buffer. The cache
        has the dimensions of the buffer, or one for each iterator.
        """
        op = "reindex_cache_write" if over_iterators else "cache_write"
        self.add(op, block=block, buffer=buffer, scope=scope)
        name = copy_block_name(block, cache_name(buffer, scope))
        return MadeNest(name, {loop: copy_name(loop) for loop in elements})

    def decompose_reduction(
        self, block: str, *, loop: str, elements: Sequence[str] = ()
    ) -> MadeNest:
        """Move the init of a block into its own nest before `loop`. Return that nest.

        `elements` are the loops from `loop` down to the block that select an element.
        """
        self.add("decompose_reduction", block=block, loop=loop)
        return MadeNest(init_name(block), {name: init_name(name) for name in elements})

    def rfactor(self, block: str, *, buffer: str, loop: str) -> PartialSums:
        """Compute a partial result of a block in each iteration of a loop. The block of this name then
        combines them."""
        self.add("rfactor", loop=loop)
        return PartialSums(partial_name(block), partial_name(buffer))

    def add_unit_loop(self, name: str) -> str:
        """Insert a loop of one iteration around a loop or block. Return it."""
        self.add("add_unit_loop", name=name)
        return unit_loop_name(name)

    def cache_region(
        self, block: str, *, buffer: str, loop: str, scope: str, dimensions: int
    ) -> RegionCopy:
        """Copy the region of a buffer that a block reads in an iteration of a loop. Return the nest that
        copies. A dimension of the buffer along which only one element is read gets no loop."""
        self.add("cache_region", block=block, buffer=buffer, loop=loop, scope=scope)
        loops = tuple(region_loop_name(buffer, dimension) for dimension in range(dimensions))
        return RegionCopy(copy_block_name(block, cache_name(buffer, scope)), loops)

    def accumulate_locally(
        self,
        block: str,
        *,
        buffer: str,
        holder: str,
        reduction: str,
        inside: Sequence[str] = (),
        elements: Sequence[str] = (),
        over_iterators: bool = False,
    ) -> AccumulatorLoops:
        """Accumulate the results of a block in a local buffer during each iteration of loop `holder`.

        The buffer is initialized before loop `reduction` and copied to the output at the end of the
        iteration. `inside` are the loops of the block inside of `reduction` that select an element.
        `elements` are the loops, before any split, whose iterators select an element inside of `holder`.
        The local buffer has the dimensions of the buffer, or one for each iterator.
        """
        copy = self.cache_write(
            block, buffer=buffer, scope="local", elements=elements, over_iterators=over_iterators
        )
        self.add("reverse_compute_at", block=copy.block, loop=holder)
        init = self.decompose_reduction(block, loop=reduction, elements=inside)
        return AccumulatorLoops(init.loops, copy.loops, copy.block)
