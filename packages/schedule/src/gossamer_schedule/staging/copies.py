"""Copies between a buffer and its cache: checks of the copied elements, and the nest that copies them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from msgspec.structs import replace

from gossamer_ir.analysis.invariants import changed_in, written_in
from gossamer_ir.core.build import ONE, ZERO, add, conjoined, index_var, integer_value
from gossamer_ir.nodes import (
    AnyBuffer,
    Block,
    BlockIter,
    Buffer,
    Expr,
    For,
    IfThenElse,
    Node,
    Range,
    Scope,
    Stmt,
)
from gossamer_ir.traversal.effects import buffers_allocated
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.references import buffers_read, free_vars
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.dependence.access import buffers_accessed
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.nests.block_nest import BlockNest
from gossamer_schedule.step.made_names import cache_name, copy_name


def require_scope(scope: str, cursor: Cursor) -> None:
    """Refuse an unknown storage scope."""
    if scope not in get_args(Scope):
        raise schedule_error(
            f"{cursor.primitive}.scope",
            f"'{scope}' is not a scope.",
            hint=listing("scopes", get_args(Scope)),
        )


def require_allocated_outside(nest: BlockNest, buffer: str) -> None:
    """Refuse a buffer that is allocated inside the nest of a block; it will be used outside, too.

    Raises `.inner`.
    """
    if buffer in buffers_allocated((nest.top.node,)):
        raise schedule_error(
            f"{nest.block.primitive}.inner",
            f"Buffer '{buffer}' is allocated inside the loop nest of block '{nest.name}', and "
            f"{nest.block.primitive} would use it outside of the nest.",
            hint=f"Apply {nest.block.primitive} before moving the writer of '{buffer}' into the nest.",
        )


def selecting_iters(block: Block, selectors: Iterable[Node]) -> tuple[BlockIter, ...]:
    """Return the iterators that expressions use, and those that the domains of these depend on."""
    needed = {name for found in selectors for name in free_vars(found)}
    for iterator in reversed(block.iters):
        if iterator.var in needed:
            needed |= free_vars(iterator.domain)
    return tuple(iterator for iterator in block.iters if iterator.var in needed)


def require_invariant_selectors(
    nest: BlockNest, iters: Sequence[BlockIter], selectors: Sequence[Node]
) -> None:
    """Refuse selectors of elements whose values may differ outside of the nest.

    They may depend on iterators, on variables bound around the nest, and on buffers that the nest neither
    writes nor allocates. The domains of the iterators must start at 0.
    """
    domains = [iterator.domain for iterator in iters]
    needed = {name for found in (*selectors, *domains) for name in free_vars(found)}
    known = {iterator.var for iterator in iters} | nest.known_above
    inside = (nest.top.node,)
    reads = buffers_read(*selectors, *domains)
    changing = written_in(inside, nest.block.function) | buffers_allocated(inside)
    if (
        needed - known
        or reads & changing
        or any(integer_value(iterator.domain.start) != 0 for iterator in iters)
    ):
        raise schedule_error(
            f"{nest.block.primitive}.domain",
            f"The elements that block '{nest.name}' selects depend on more than its iterators, variables "
            "bound around its nest, and buffers that the nest does not write.",
        )


def require_constant_size(buffer: AnyBuffer, cursor: Cursor) -> None:
    """Refuse a buffer whose size is not constant in the function, where a buffer of this size is added.

    Raises `.inner`.
    """
    function = cursor.function
    if buffer in function.buffers or not isinstance(buffer, Buffer):
        return
    params = {param.name for param in function.params}
    changed = changed_in(function.body, *buffer.shape, function=function)
    others = free_vars(*buffer.shape) - params | changed
    if others:
        raise schedule_error(
            f"{cursor.primitive}.inner",
            f"The size of buffer '{buffer.name}' depends on {', '.join(sorted(others))}, which is not "
            "constant in the function; a buffer that the function declares cannot have this size.",
        )


def cache_of(old: AnyBuffer, scope: str, *, namer: Namer) -> AnyBuffer:
    """Return a new buffer of the same shape in a scope."""
    return replace(old, name=namer.fresh(cache_name(old.name, scope)), handle=None, scope=scope)


def copy_nest(
    name: str,
    iters: Sequence[BlockIter],
    stores: tuple[Stmt, ...],
    *,
    conditions: Iterable[Expr] = (),
    init: tuple[Stmt, ...] = (),
    reduced: str = "",
    tiles: Mapping[str, Range] | None = None,
    namer: Namer,
) -> Stmt:
    """Return a loop nest that runs `stores` at all points of the iterators, with one loop for each iterator.

    An iterator in `tiles` only has the values of its tile, and no loop if that is one value. The `conditions`
    become the predicate of the block. All iterators become spatial, except `reduced`.
    """
    tiles, conditions = tiles or {}, tuple(conditions)
    fresh = {iterator.var: namer.fresh(copy_name(iterator.var)) for iterator in iters}
    looped = [
        iterator
        for iterator in iters
        if iterator.var not in tiles or tiles[iterator.var].extent != ONE
    ]
    loops = {found.var: namer.fresh(copy_name(_stem(found.var))) for found in looped}
    in_block, in_loops = _variables(fresh), _variables(loops)
    for var, tile in tiles.items():
        in_loops[var] = add(tile.start, in_loops[var]) if var in loops else tile.start
    copied = tuple(
        BlockIter(
            fresh[item.var],
            "R" if item.var == reduced else "S",
            substitute(item.domain, in_block),
            in_loops[item.var],
        )
        for item in iters
    )
    nest: Stmt = Block(
        namer.fresh(name),
        copied,
        substitute_body(stores, in_block),
        init=substitute_body(init, in_block),
        predicate=conjoined(substitute(part, in_block) for part in conditions),
    )
    for item in reversed(looped):
        whole = substitute(_loop_extent(item, iters, tiles, conditions), in_loops)
        extent = tiles[item.var].extent if item.var in tiles else whole
        nest = For(loops[item.var], item.domain.start, extent, (nest,))
    return nest


def _loop_extent(
    item: BlockIter,
    iters: Sequence[BlockIter],
    tiles: Mapping[str, Range],
    conditions: Sequence[Expr],
) -> Expr:
    """Return the extent of the loop of an iterator.

    If the extent is loaded at an index in a tile, which may reach beyond its domain, the element may not
    exist there. The loop is then empty.
    """
    extent, needed = item.domain.extent, free_vars(item.domain.extent)
    if not needed & tiles.keys() or not buffers_accessed((extent,)):
        return extent
    others = {iterator.var for iterator in iters} - needed
    evaluable = (part for part in conditions if not free_vars(part) & others)
    condition = conjoined(part for part in evaluable if free_vars(part) & needed)
    return extent if condition is None else IfThenElse(condition, extent, ZERO)


def _variables(names: Mapping[str, str]) -> dict[str, Expr]:
    return {old: index_var(new) for old, new in names.items()}


def _stem(var: str) -> str:
    """Return the name of an iterator without the prefix "v" of iterators."""
    return var[1:] if var.startswith("v") and var[1:].isidentifier() else var


def names_of_nest(nest: Stmt) -> tuple[str, ...]:
    """Return the names of the block of a nest and of its loops, from the outermost."""
    loops = []
    while isinstance(nest, For):
        loops.append(nest.var)
        (nest,) = nest.body
    return (nest.name, *loops) if isinstance(nest, Block) else ()
