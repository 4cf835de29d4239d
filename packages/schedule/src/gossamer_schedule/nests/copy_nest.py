"""A loop nest that runs statements at all points of some iterators, such as copies to a cache."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer_ir.core.build import ONE, ZERO, add, index_var
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.nodes import Block, BlockIter, Expr, For, IfThenElse, Range, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_schedule.made_names import copy_name


class IterationDomain(msgspec.Struct, frozen=True):
    """The points of some iterators at which the conditions hold.

    An iterator in `tiles` only has the values of its tile, and one in `existence` has none unless its
    conditions hold, which are in the order of evaluation.
    """

    iters: tuple[BlockIter, ...]
    conditions: tuple[Expr, ...] = ()
    tiles: Mapping[str, Range] = {}
    existence: Mapping[str, tuple[Expr, ...]] = {}

    @property
    def looped_iters(self) -> tuple[BlockIter, ...]:
        """The iterators that need a loop: all but those whose tile is one value."""
        units = {var for var, tile in self.tiles.items() if tile.extent == ONE}
        return tuple(iterator for iterator in self.iters if iterator.var not in units)


def copy_nest(
    name: str,
    points: IterationDomain,
    body: tuple[Stmt, ...],
    *,
    namer: Namer,
    init: tuple[Stmt, ...] = (),
    reduced: str | None = None,
) -> Stmt:
    """Return a loop nest around block `name` that runs `body` at some points, with one loop per iterator.

    The conditions become the predicate of the block. All iterators become spatial, except `reduced`.
    """
    fresh = {iterator.var: namer.fresh(copy_name(iterator.var)) for iterator in points.iters}
    loops = {
        iterator.var: namer.fresh(copy_name(_without_iterator_prefix(iterator.var)))
        for iterator in points.looped_iters
    }
    in_block, values = _index_vars(fresh), _iterator_values(points, loops)
    conditions = (substitute(condition, in_block) for condition in points.conditions)
    iters = (
        BlockIter(
            fresh[iterator.var],
            "R" if iterator.var == reduced else "S",
            substitute(iterator.domain, in_block),
            values[iterator.var],
        )
        for iterator in points.iters
    )
    nest: Stmt = Block(
        namer.fresh(name),
        tuple(iters),
        substitute_body(body, in_block),
        init=substitute_body(init, in_block),
        predicate=conjunction(*conditions),
    )
    for iterator in reversed(points.looped_iters):
        extent = substitute(_loop_extent(iterator, points), values)
        nest = For(loops[iterator.var], iterator.domain.start, extent, (nest,))
    return nest


def _iterator_values(points: IterationDomain, loops: Mapping[str, str]) -> dict[str, Expr]:
    """Return the values of the iterators in terms of their loops."""
    values = _index_vars(loops)
    for var, tile in points.tiles.items():
        values[var] = add(tile.start, values[var]) if var in loops else tile.start
    return values


def _loop_extent(iterator: BlockIter, points: IterationDomain) -> Expr:
    """Return the extent of the loop of an iterator.

    If the extent is loaded at an index in a tile, which may reach beyond its domain, the element may not
    exist there. The loop is then empty.
    """
    if iterator.var in points.tiles:
        return points.tiles[iterator.var].extent
    extent: Expr = iterator.domain.extent
    # Innermost first: a condition is evaluated only if those before it hold.
    for condition in reversed(points.existence.get(iterator.var, ())):
        extent = IfThenElse(condition, extent, ZERO)
    needed = free_vars(extent)
    if not needed & points.tiles.keys() or not buffers_accessed(extent):
        return extent
    others = {iterator.var for iterator in points.iters} - needed
    evaluable = (condition for condition in points.conditions if not free_vars(condition) & others)
    existence = conjunction(
        *(condition for condition in evaluable if free_vars(condition) & needed)
    )
    return extent if existence is None else IfThenElse(existence, extent, ZERO)


def _index_vars(names: Mapping[str, str]) -> dict[str, Expr]:
    return {old: index_var(new) for old, new in names.items()}


def _without_iterator_prefix(var_name: str) -> str:
    """Return the name of an iterator without the prefix "v" of iterators."""
    return var_name[1:] if var_name.startswith("v") and var_name[1:].isidentifier() else var_name


# Other statements: none is in the nests that this package makes.
def names_of_nest(nest: Stmt) -> tuple[str, ...]:
    """Return the names of the block of a nest and of its loops, from the outermost."""
    loops = []
    while isinstance(nest, For):
        loops.append(nest.var)
        (nest,) = nest.body
    return (nest.name, *loops) if isinstance(nest, Block) else ()
