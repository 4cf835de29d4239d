"""Copies between a buffer and its cache: the elements that are copied, and the nest that copies them."""

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
from gossamer_ir.traversal.walk import buffers_read, free_vars, substitute, substitute_body
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.dependence.access import mentioned
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.nests.block_nest import BlockNest


def require_scope(scope: str, cursor: Cursor) -> None:
    """Refuses what is no storage scope."""
    if scope not in get_args(Scope):
        raise schedule_error(
            f"{cursor.primitive}.scope",
            f"'{scope}' is not a scope.",
            hint=listing("scopes", get_args(Scope)),
        )


def require_outside(nest: BlockNest, buffer: str) -> None:
    """A buffer must be there outside of the nest of a block, where it will be used, too.

    Raises `.inner`.
    """
    if buffer in buffers_allocated((nest.top.node,)):
        raise schedule_error(
            f"{nest.block.primitive}.inner",
            f"Buffer '{buffer}' is allocated in the loops around block '{nest.name}', outside of "
            "which it would be used.",
            hint=f"Apply {nest.block.primitive} before what makes it moves there.",
        )


def selecting_iters(block: Block, selectors: Iterable[Node]) -> tuple[BlockIter, ...]:
    """The iterators that expressions mention, and those that the domains of these depend on."""
    needed = {name for found in selectors for name in free_vars(found)}
    for found in reversed(block.iters):
        if found.var in needed:
            needed |= free_vars(found.domain)
    return tuple(found for found in block.iters if found.var in needed)


def require_own_selectors(
    nest: BlockNest, iters: Sequence[BlockIter], selectors: Sequence[Node]
) -> None:
    """What selects elements must be the same outside of the nest: it depends on iterators, on what is
    bound around the nest, and on buffers that the nest neither writes nor allocates; domains start at 0."""
    domains = [found.domain for found in iters]
    needed = {name for found in (*selectors, *domains) for name in free_vars(found)}
    known = {found.var for found in iters} | nest.known_above
    inside = (nest.top.node,)
    reads = buffers_read(*selectors, *domains)
    changing = written_in(inside, nest.block.function) | buffers_allocated(inside)
    if (
        needed - known
        or reads & changing
        or any(integer_value(found.domain.start) != 0 for found in iters)
    ):
        raise schedule_error(
            f"{nest.block.primitive}.domain",
            f"The elements of block '{nest.name}' depend on more than its iterators, what is bound "
            "around its nest, and buffers that its nest does not write.",
        )


def require_lasting_size(buffer: AnyBuffer, cursor: Cursor) -> None:
    """A new buffer of the function as large as another one: its size may depend on nothing that is bound
    only where the other one is allocated, or that changes before.

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
            f"The size of buffer '{buffer.name}' depends on {', '.join(sorted(others))}, and a buffer of "
            "the function cannot have it.",
        )


def cache_of(old: AnyBuffer, scope: str, *, namer: Namer) -> AnyBuffer:
    """A new buffer of the same shape in a scope."""
    return replace(old, name=namer.fresh(f"{old.name}_{scope}"), handle=None, scope=scope)


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
    """A block of the stores for all values of some iterators, in one loop each, or for those in `tiles`,
    in no loop where that is one; all but the one that is `reduced` become spatial."""
    tiles, conditions = tiles or {}, tuple(conditions)
    fresh = {found.var: namer.fresh(f"{found.var}_c") for found in iters}
    looped = [found for found in iters if found.var not in tiles or tiles[found.var].extent != ONE]
    loops = {found.var: namer.fresh(f"{_stem(found.var)}_c") for found in looped}
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
        whole = substitute(_whole(item, iters, tiles, conditions), in_loops)
        extent = tiles[item.var].extent if item.var in tiles else whole
        nest = For(loops[item.var], item.domain.start, extent, (nest,))
    return nest


def _whole(
    item: BlockIter,
    iters: Sequence[BlockIter],
    tiles: Mapping[str, Range],
    conditions: Sequence[Expr],
) -> Expr:
    """How often the loop of an iterator runs; never where a tile that tells it reaches beyond a domain,
    and what it is read from may have no element."""
    extent, needed = item.domain.extent, free_vars(item.domain.extent)
    if not needed & tiles.keys() or not mentioned((extent,)):
        return extent
    others = {found.var for found in iters} - needed
    told = (part for part in conditions if not free_vars(part) & others)
    held = conjoined(part for part in told if free_vars(part) & needed)
    return extent if held is None else IfThenElse(held, extent, ZERO)


def _variables(names: Mapping[str, str]) -> dict[str, Expr]:
    return {old: index_var(new) for old, new in names.items()}


def _stem(var: str) -> str:
    return var[1:] if var.startswith("v") and var[1:].isidentifier() else var


def names_of_nest(nest: Stmt) -> tuple[str, ...]:
    """The block of a nest and its loops."""
    loops = []
    while isinstance(nest, For):
        loops.append(nest.var)
        (nest,) = nest.body
    return (nest.name, *loops) if isinstance(nest, Block) else ()
