"""Makes a block write a buffer over its iterators, and scatters the elements after its nest."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops, spatial_loops
from gossamer_ir.analysis.statements.reductions import Reduction, identity
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.nodes import Binary, Block, Expr, Function, Load, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.walk import collect, contains
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.legality.distinct_stores import require_distinct_stores
from gossamer_schedule.made_names import copy_block_name
from gossamer_schedule.nests.block_nest import reduction_nest
from gossamer_schedule.nests.copy_nest import copy_nest, names_of_nest
from gossamer_schedule.nests.init_checks import require_init_of_nest
from gossamer_schedule.reductions.reassociation import reduction_of, with_reassociation_marks
from gossamer_schedule.regions.iterator_dimensions import cache_with_dimensions, required_dimensions
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe
from gossamer_schedule.staging.cache import ReindexedBuffer, required_block_and_buffer, with_cache
from gossamer_schedule.staging.cache_checks import selecting_iters
from gossamer_schedule.staging.redirected_accesses import with_redirected_accesses
from gossamer_schedule.staging.written_element import (
    WrittenElement,
    is_assigning,
    is_initializing,
    require_element_exists,
    required_element,
)


def with_scattered_writes(root: Cursor[Function], block_name: str, new: ReindexedBuffer) -> Change:
    """Let a block write a new buffer over its iterators.

    The new names are those of the buffer, of the block that copies it afterward, and of its loops.
    """
    buffer_name = new.elements_of
    cursor, old = required_block_and_buffer(root, block_name=block_name, buffer_name=buffer_name)
    # First: reduction iterators that select the element would be missing among the dimensions of the cache.
    cursor = _with_spatial_selectors(cursor, buffer_name)
    element = required_element(cursor, buffer_name)
    elements = (element.store.indices,)
    dimensions = required_dimensions(cursor, element.points.iters, new.order, elements=elements)
    reduction = _required_reduction(cursor, element)
    require_init_of_nest(reduction_nest(cursor))

    namer = namer_of(cursor.function)
    cache = cache_with_dimensions(old, new.scope, dimensions, name=namer.fresh(new.name))
    cached = Load(cache.name, tuple(dimension.index for dimension in dimensions), old.dtype)
    caching = _caching_block(cursor, element, cached, reduction)
    name = copy_block_name(block_name, cache.name)
    copy = _scatter_nest(name, element, cached, reduction, namer=namer)

    rewritten = with_cache(cache, nest=reduction_nest(cursor), block=caching, after=(copy,))
    names = names_of_nest(copy)
    if reduction is not None:
        require_init_of_nest(reduction_nest(find_block(rewritten, block=block_name)))
    else:
        # Without a reduction, the copy overwrites: two points of one element would store in another order.
        require_distinct_stores(find_block(rewritten, block=names[0]), buffer_name)
    return Change(rewritten, (cache.name, *names))


def _caching_block(
    cursor: Cursor[Block], element: WrittenElement, cached: Load, reduction: Reduction | None
) -> Block:
    """Return the block that writes the cache instead of the element."""
    block = with_redirected_accesses(
        cursor.node, element.store.buffer, to=cached.buffer, at=cached.indices
    )
    block = _without_loaded_conditions(cursor, block, element)
    return block if reduction is None else _starting_from_identity(block, cached, reduction)


# Other statements: nothing is concluded from them.
def _without_loaded_conditions(
    cursor: Cursor[Block], block: Block, element: WrittenElement
) -> Block:
    """Return a block that writes the cache, without the conditions of the copied elements that load.

    Elements of the cache for which they do not hold are computed, too, but not copied. Without them, no
    branch is in the loops of a reduction. The loads of the block must be in bounds in any case, and the block
    must do nothing but store.
    """
    parts = tuple(conjuncts(block.predicate))
    dropped = [part for part in parts if contains(Load, part) and part in element.points.conditions]
    if not dropped or not all(isinstance(stmt, Store) for stmt in (*block.init, *block.body)):
        return block
    kept = tuple(part for part in parts if part not in dropped)
    above = [parent for parent in cursor.parents if isinstance(parent, Block)]
    iters = [iterator for parent in above for iterator in parent.iters]
    around = [part for parent in above for part in conjuncts(parent.predicate)]
    node = cursor.node
    reads = [
        load
        for load in collect(Load, *node.init, *node.body)
        if load.buffer != element.store.buffer
    ]
    is_safe = are_loads_safe(
        cursor.function, reads, iters=(*iters, *block.iters), conditions=(*around, *kept)
    )
    return replace(block, predicate=conjunction(*kept)) if is_safe else block


def _starting_from_identity(block: Block, cached: Load, reduction: Reduction) -> Block:
    """Return the block, whose init stores the identity of the reduction in the cache, too."""
    start = Store(cached.buffer, cached.indices, identity(reduction.op, cached.dtype))
    return replace(block, init=(*block.init, start))


def _scatter_nest(
    name: str, element: WrittenElement, cached: Load, reduction: Reduction | None, *, namer: Namer
) -> Stmt:
    """Return the nest that stores the cached elements, or combines them with the old values."""
    store = element.store
    value: Expr = cached
    if reduction is not None:
        value = Binary(reduction.op, Load(store.buffer, store.indices, cached.dtype), cached)
    copied = (Store(store.buffer, store.indices, value),)
    copy = copy_nest(name, element.points, copied, namer=namer)
    return copy if reduction is None else with_reassociation_marks((copy,))[0]


def _with_spatial_selectors(cursor: Cursor[Block], buffer_name: str) -> Cursor[Block]:
    """Return the cursor at the block after the iterators that select the element are made spatial.

    This applies to reductions without an init only. The iterators also select the element of the cache, in
    which each combination of their values has a reduction of its own.
    """
    block = cursor.node
    reduction = reduction_of(block)
    if reduction is None or reduction.store.buffer != buffer_name or block.init:
        return cursor
    selecting = {iterator.var for iterator in selecting_iters(block, reduction.store.indices)}
    iters = tuple(
        replace(iterator, kind="S") if iterator.var in selecting else iterator
        for iterator in block.iters
    )
    points = cursor.replace_with((replace(block, iters=iters),))
    return find_block(points, block=block.name)


def _required_reduction(cursor: Cursor[Block], element: WrittenElement) -> Reduction | None:
    """Return the reduction whose identity initializes the cache, or None if the block initializes it."""
    block = cursor.node
    is_reducing = any(iterator.kind == "R" for iterator in block.iters)
    buffer = element.store.buffer
    if is_initializing(block, buffer) or (not is_reducing and is_assigning(block, buffer)):
        return None
    reduction = None if buffer in buffers_accessed(*block.init) else reduction_of(block)
    if reduction is None or not _is_initialized_once(cursor, element):
        raise schedule_error(
            f"{cursor.primitive}.initialized",
            f"Block '{block.name}' neither assigns a value to its element of '{buffer}', nor reduces "
            "it in a single run of its reduction loops.",
            hint="Give the block an init.",
        )
    require_element_exists(cursor, element)
    return reduction


def _is_initialized_once(cursor: Cursor[Block], element: WrittenElement) -> bool:
    """Return whether each loop outside of the reduction selects elements of the cache."""
    values = values_at(cursor)
    selecting = spatial_loops(replace(cursor.node, iters=element.points.iters), values)
    fed = reduction_loops(cursor.node, values)
    nest = reduction_nest(cursor)
    for loop in nest.loops:
        if loop.var in fed:
            break
        # The loop would initialize the cached sum again in each iteration.
        if loop.var not in selecting and integer_value(loop.extent) != 1:
            return False
    return not nest.has_let
