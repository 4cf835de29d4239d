"""`cache_write`: a block writes a buffer of its own, which is copied afterwards."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import reduction_loops
from gossamer_ir.analysis.loops import loops_within
from gossamer_ir.core.build import dtype_of
from gossamer_ir.dependence.disjointness import verdict, written_accesses
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Block, For, Load, Module, Store
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import free_vars
from gossamer_schedule.cursor.cursor import Cursor, statements
from gossamer_schedule.cursor.resolve import find_block
from gossamer_schedule.dependence.access import mentioned, values_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.nests.block_nest import BlockNest, around, reduction_nest
from gossamer_schedule.nests.init_places import meeting_loops
from gossamer_schedule.reductions.unblocked import unblocked
from gossamer_schedule.result import Result
from gossamer_schedule.staging.cache import cached_buffer, with_cache
from gossamer_schedule.staging.copies import (
    cache_of,
    copy_nest,
    names_of_nest,
    require_lasting_size,
)
from gossamer_schedule.staging.stores import (
    Element,
    gives_values,
    is_initialising,
    redirected,
    require_existing,
    require_sole_user,
    required_element,
)
from gossamer_schedule.step.made_names import copy_block
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "cache_write"


@primitive
def cache_write(
    module: Module, block: str, *, buffer: str, scope: str, function: str | None = None
) -> Result:
    """Lets a block write the new buffer `<buffer>_<scope>` of the same shape, and copies what it
    wrote in block `<block>_<buffer>_<scope>`, directly after the outermost loop around the block. Conditions
    may stand between the loops of a reduction. The outer block that `blockize` makes is cached with the one
    inside.

    The copy visits exactly the elements that the block visits, in one loop for each spatial
    iterator that selects an element: `k_c` for iterator `vk`. What goes on from old values without an
    `init` gets one that loads them. The result's names are the buffer, the copy block and its loops.

    Raises `ScheduleError`: `schedule.cache_write.scope` (unknown), `.inner` (the
    buffer is allocated in the nest), `.stores` (the block does not
    store to the buffer in exactly one place), `.reads` (it reads other elements of it),
    `.element` (the element depends on a reduction iterator, or nothing initialises it),
    `.not_proved` (the loops may not visit the whole domain of an iterator, or an old value may not
    exist), `.predicate` (a
    condition is not about the element), `.domain` (a domain depends on more than the element, or a
    condition on what the nest writes), `.other_access` (the nest uses the buffer elsewhere, or a loop
    around it does in which points meet in an element), `.race` and
    `.not_proved` as in `cache_read`, `.no_buffer`, `.no_block`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import ROW_SUM
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(ROW_SUM))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    >>> print(body_text(cache_write(ROW_SUM, "row_sum", buffer="Y", scope="local").module))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y_local[vi] = 0.0
                Y_local[vi] = Y_local[vi] + A[indptr_data[vi] + vj]
    for i_c in T.serial(m):
        with T.block("row_sum_Y_local"):
            vi_c = T.axis.spatial(m, i_c)
            Y[vi_c] = Y_local[vi_c]
    """
    cursor, old = cached_buffer(
        module, _NAME, block=block, buffer=buffer, scope=scope, function=function
    )
    alone = unblocked(cursor) if _is_of_inner(cursor, buffer) else cursor
    element = required_element(alone, buffer)
    is_loading = _require_initialised(alone, element)
    if is_loading and alone is not cursor:
        raise _not_initialised(alone, buffer)

    require_lasting_size(old, cursor)
    place, dtype = element.store.indices, dtype_of(element.store.value)
    old_value = Load(buffer, place, dtype)
    loaded = (Store(buffer, place, old_value),) if is_loading else ()
    _require_kept(_with_init(alone, loaded), buffer)

    namer = namer_of(cursor.function)
    cache = cache_of(old, scope, namer=namer)
    caching = redirected(cursor.node, buffer, to=cache.name)
    if is_loading:
        caching = replace(caching, init=(*caching.init, Store(cache.name, place, old_value)))
    copy = copy_nest(
        copy_block(block, cache.name),
        element.iters,
        (Store(buffer, place, Load(cache.name, place, dtype)),),
        conditions=element.conditions,
        tiles=element.tiles,
        namer=namer,
    )

    rewritten = with_cache(
        cache,
        nest=_same_nest(cursor, reduction_nest(alone)),
        block=caching,
        after=(copy,),
    )

    taken = step(block=block, buffer=buffer, scope=scope, function=function)
    return Result(rewritten, (cache.name, *names_of_nest(copy)), Step(_NAME, taken))


def _is_of_inner(cursor: Cursor, buffer: str) -> bool:
    """Whether an inner block tells the element that a block writes."""
    inside = [found for found in statements(cursor.node.body) if isinstance(found, Block)]
    names = {item.var for found in inside for item in found.iters}
    stores = (store for store in statements(cursor.node.body) if isinstance(store, Store))
    return any(free_vars(*store.indices) & names for store in stores if store.buffer == buffer)


def _same_nest(cursor: Cursor, alone: BlockNest) -> BlockNest:
    """The nest of a block, up to where that of its inner block begins once the block is taken away."""
    found = around(cursor)
    count = len(cursor.path) - len(alone.top.path)
    return BlockNest(cursor, found[len(found) - count :])


def _not_initialised(cursor: Cursor, buffer: str) -> ScheduleError:
    return schedule_error(
        f"{_NAME}.element",
        f"Nothing that always runs initialises the element of '{buffer}' that block "
        f"'{cursor.node.name}' writes.",
        hint="Give the block an init, or apply reindex_cache_write, whose cache of a sum begins at 0.",
    )


def _require_initialised(cursor: Cursor, element: Element) -> bool:
    """Whether the cache must first load the old value."""
    block: Block = cursor.node
    store = element.store
    has_reduction = any(found.kind == "R" for found in block.iters)
    is_given = not has_reduction and gives_values(block, store.buffer)
    if is_given or is_initialising(block, store.buffer):
        return False
    is_changed = store.buffer in mentioned(block.init)
    if is_changed or not _is_loaded_once(cursor, store):
        raise _not_initialised(cursor, store.buffer)
    require_existing(cursor, element)
    return True


def _with_init(cursor: Cursor, init: tuple[Store, ...]) -> Cursor:
    """The cursor at a block that has some more inits."""
    block: Block = cursor.node
    changed = cursor.replaced_by((replace(block, init=(*block.init, *init)),))
    return find_block(changed, block=block.name)


def _require_kept(cursor: Cursor, buffer: str) -> None:
    """Where points meet in an element in iterations around the nest, the cache, which is initialised once for
    these, holds what the element does: nothing else in such a loop uses it."""
    meeting = meeting_loops(cursor, {loop.var for loop in reduction_nest(cursor).top.scope})
    outside_first = (cursor.up(count) for count in range(len(cursor.path), 0, -1))
    for top in outside_first:
        if isinstance(top.node, For) and top.node.var in meeting:
            require_sole_user(cursor, top, buffer)


def _is_loaded_once(cursor: Cursor, store: Store) -> bool:
    """Whether the old value is loaded once: each loop outside of the reduction selects elements."""
    values = values_at(cursor)
    fed = reduction_loops(cursor.node, values)
    nest, outside = reduction_nest(cursor), []
    for found in nest.loops:
        if found.var in fed:
            break
        outside.append(found.var)
    varying = {found.var for found in nest.loops} | loops_within(cursor.node.body)
    every = written_accesses((cursor.node,), values=values, function=cursor.function)
    touched = every[store.buffer]
    return not nest.has_let and all(
        verdict(name, touched, varying=varying, function=cursor.function) == "disjoint"
        for name in outside
    )
