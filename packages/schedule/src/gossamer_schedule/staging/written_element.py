"""The element of a buffer that one point of a block writes, and what selects it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import conditions_of_init, vars_outside_init
from gossamer_ir.core.build import index_var
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.nodes import Block, BlockIter, Expr, Load, Stmt, Store, Var
from gossamer_ir.traversal.access_types import ACCESSES, ELEMENT_NODES
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import walk
from gossamer_schedule.cursor.cursor_at import ADDRESSED, Cursor, addressable_stmts, name_of
from gossamer_schedule.cursor.enclosed_block import enclosed_block
from gossamer_schedule.cursor.used_buffers import buffers_used_by, stmts_beside
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.covered_elements import required_tiles
from gossamer_schedule.legality.definite_assignment import always_stores, definitely_assigns
from gossamer_schedule.nests.block_nest import BlockNest, reduction_nest
from gossamer_schedule.nests.copy_nest import IterationDomain
from gossamer_schedule.nests.existence_conditions import existence_conditions
from gossamer_schedule.predicates.block_predicates import is_bound_of
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe
from gossamer_schedule.staging.cache_checks import (
    require_allocated_outside,
    require_invariant_selectors,
    selecting_iters,
)


class WrittenElement(msgspec.Struct, frozen=True):
    """The elements of a buffer that a block writes: that of `store` at some points."""

    store: Store
    points: IterationDomain


def required_element(cursor: Cursor[Block], buffer_name: str) -> WrittenElement:
    """Return the element that each point of a block writes, if all of them may be copied after its nest.

    Raises `.inner`, `.stores`, `.reads`, `.other_access`, `.element`, `.domain`, `.predicate` and
    `.not_proved`.
    """
    nest = reduction_nest(cursor)
    require_allocated_outside(nest, buffer_name)
    store = _required_store(cursor, buffer_name)
    _require_own_element(cursor, store)
    # Another user in the nest would see the old buffer, whose elements are copied only after the nest.
    require_sole_user(cursor, nest.top, buffer_name)
    iters = selecting_iters(cursor.node, store.indices)
    _require_spatial(cursor, iters, store=store)
    tiles = required_tiles(cursor, iters, loops=nest.loops)
    whole = [iterator for iterator in iters if iterator.var not in tiles]
    conditions = _required_conditions(nest, iters, whole, store=store)
    existence = existence_conditions(nest, iters, tiles=tiles)
    selectors = (*store.indices, *conditions, *tiles.values(), *chain(*existence.values()))
    require_invariant_selectors(nest, iters, selectors)
    return WrittenElement(store, IterationDomain(iters, conditions, tiles, existence))


def _required_store(cursor: Cursor[Block], buffer_name: str) -> Store:
    stores = [
        item
        for item in addressable_stmts(cursor.node.body)
        if isinstance(item, Store) and item.buffer == buffer_name
    ]
    if len(stores) != 1:
        raise schedule_error(
            f"{cursor.primitive}.stores",
            f"Block '{cursor.node.name}' has {len(stores)} stores to '{buffer_name}'; expected one.",
        )
    return stores[0]


def _require_own_element(cursor: Cursor[Block], store: Store) -> None:
    """Refuse a block that accesses elements other than that of the store, the only one in the new buffer."""
    for node in walk(replace(cursor.node, reads=None, writes=None)):
        if not isinstance(node, ACCESSES) or node.buffer != store.buffer:
            continue
        if not isinstance(node, ELEMENT_NODES) or node.indices != store.indices:
            raise schedule_error(
                f"{cursor.primitive}.reads",
                f"Block '{cursor.node.name}' accesses elements of '{store.buffer}' other than the one it "
                "writes.",
            )


def require_sole_user(cursor: Cursor[Block], top: Cursor[Stmt], buffer_name: str) -> None:
    """Refuse a buffer that the loop at `top` uses outside of the block at a cursor.

    Raises `.other_access`.
    """
    for stmt in stmts_beside(cursor, top):
        if buffer_name in buffers_used_by(stmt):
            kind = ADDRESSED.get(type(stmt))
            name = f"{kind.word.capitalize()} '{name_of(stmt)}'" if kind else "A statement"
            raise schedule_error(
                f"{cursor.primitive}.other_access",
                f"{name} uses '{buffer_name}' in the same nest as block '{cursor.node.name}'.",
                hint=f"Apply {cursor.primitive} before decompose_reduction; fission gives statements nests "
                "of their own.",
            )


def _require_spatial(cursor: Cursor[Block], iters: Sequence[BlockIter], *, store: Store) -> None:
    for iterator in iters:
        if iterator.kind == "R":
            raise schedule_error(
                f"{cursor.primitive}.element",
                f"The element of '{store.buffer}' that block '{cursor.node.name}' writes depends on "
                f"reduction iterator '{iterator.var}'.",
            )


def _required_conditions(
    nest: BlockNest, iters: Sequence[BlockIter], whole: Sequence[BlockIter], *, store: Store
) -> tuple[Expr, ...]:
    """Return the conditions that hold for the elements that the block visits.

    Bounds of iterators whose `whole` domain is visited are left out.
    """
    cursor = nest.block
    init_conditions = conditions_of_init(enclosed_block(cursor))
    bounded = [
        iterator for iterator in cursor.node.iters if iterator in whole or iterator not in iters
    ]
    kept = tuple(
        part for part in init_conditions if not any(is_bound_of(part, item) for item in bounded)
    )
    kept += tuple(_conditions_around(nest))
    allowed = {iterator.var for iterator in iters} | nest.known_above
    # A dropped condition means points that do not assign: copying their element would store garbage.
    is_dropping = len(tuple(conjuncts(cursor.node.predicate))) > len(init_conditions)
    is_assigned = is_assigning(cursor.node, store.buffer)
    if any(free_vars(part) - allowed for part in kept) or (is_dropping and is_assigned):
        raise schedule_error(
            f"{nest.block.primitive}.predicate",
            f"A condition of block '{cursor.node.name}' is not determined by the element that it writes.",
            hint=f"Apply {nest.block.primitive} before the loops are split again.",
        )
    return kept


def _conditions_around(nest: BlockNest) -> Iterator[Expr]:
    """Yield the conditions around a block that hold for the elements it visits, in terms of its iterators if
    these are bound to loops."""
    block = nest.block.node
    values = {
        iterator.value.name: index_var(iterator.var)
        for iterator in block.iters
        if isinstance(iterator.value, Var)
    }
    for part in nest.conditions:
        if not free_vars(part) & vars_outside_init(enclosed_block(nest.block)):
            yield substitute(part, values)


def require_element_exists(cursor: Cursor[Block], element: WrittenElement) -> None:
    """Refuse a block that updates an element which may be out of bounds.

    The old value is loaded before the block runs. The element must therefore exist even if the reduction
    is empty or the block does not store.

    Raises `.not_proved`.
    """
    block, store = cursor.node, element.store
    is_reducing = any(iterator.kind == "R" for iterator in block.iters)
    # The store itself proves that the element exists.
    if (not is_reducing and always_stores(block.body, store.buffer)) or _is_in_bounds(
        cursor, element
    ):
        return
    case = "its reduction is empty" if is_reducing else "it does not store"
    raise schedule_error(
        f"{cursor.primitive}.not_proved",
        f"Cannot prove that the element of '{store.buffer}' that block '{block.name}' updates is in bounds "
        f"if {case}.",
        needs=f"{', '.join(map(text_of, store.indices))} in bounds",
        hint="Give the block an init.",
    )


def _is_in_bounds(cursor: Cursor[object], element: WrittenElement) -> bool:
    """Return whether the element is in bounds at all points of the iterators that select it."""
    store = element.store
    above = [parent for parent in cursor.parents if isinstance(parent, Block)]
    iters = [iterator for block in above for iterator in block.iters]
    conditions = [part for block in above for part in conjuncts(block.predicate)]
    return are_loads_safe(
        cursor.function,
        (Load(store.buffer, store.indices, "int64"),),
        iters=(*iters, *element.points.iters),
        conditions=(*conditions, *element.points.conditions),
    )


def is_assigning(block: Block, buffer_name: str) -> bool:
    """Return whether a block without an init gives each element that it visits a new value."""
    return not block.init and definitely_assigns(block.body, buffer_name)


def is_initializing(block: Block, buffer_name: str) -> bool:
    """Return whether the init of a block gives its element of a buffer a new value."""
    return definitely_assigns(block.init, buffer_name)
