"""`reindex_cache_write`: make a block write a buffer over its iterators, and scatter the elements."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import reduction_loops, spatial_loops
from gossamer_ir.analysis.reductions import Reduction, identity
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import Binary, Block, Expr, Load, Store
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.cursor.resolve import LOOP_STAGES, find_block
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.made_names import cache_name, copy_block
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.dependence.access import buffers_accessed, values_at
from gossamer_schedule.dependence.distinct_stores import require_distinct
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.nests.block_nest import reduction_nest
from gossamer_schedule.nests.copy_nest import copy_nest, names_of_nest
from gossamer_schedule.nests.init_places import require_init_of_nest
from gossamer_schedule.reductions.reassociation import reassociating, reduction_of
from gossamer_schedule.regions.iterator_dimensions import cache_over, required_dimensions
from gossamer_schedule.staging.cache import cached_buffer, with_cache
from gossamer_schedule.staging.cache_checks import selecting_iters
from gossamer_schedule.staging.written_element import (
    Element,
    gives_values,
    is_initializing,
    redirected,
    require_element_exists,
    required_element,
)


@primitive(stages=LOOP_STAGES)
def reindex_cache_write(
    root: Cursor,
    block: str,
    *,
    buffer: str,
    scope: str,
    order: tuple[str, ...] = (),
    function: str | None = None,
) -> Change:
    """Make a block write a new buffer that is indexed by its iterators, and scatter the elements afterwards.

    As `cache_write`, except that the new buffer has one dimension for each iterator that selects the
    element, in `order` (by default that of the block), as in `reindex_cache_read`.

    A reduction without an `init` starts at the identity of its reducer in the cache, and the copy combines
    the result with the old value of the element; several points, also of the reduction, may then share one
    element. In all other cases the copy stores, and different points must select different elements.

    Raises `ScheduleError` with a code `schedule.reindex_cache_write.*`:

    * `.initialised`: an element is neither assigned nor reduced, or the cache would be initialized several
      times
    * `.order`, `.shape`: as for `reindex_cache_read`
    * `.scope`, `.inner`, `.stores`, `.reads`, `.element`, `.predicate`, `.domain`, `.other_access`, `.race`:
      as for `cache_write`
    * `.not_proved`: as for `cache_write`; or two points may select one element, also in iterations around the
      nest that share an init

    >>> from gossamer_testkit.examples import ROW_SUM
    >>> from gossamer_testkit.show import body_text
    >>> cached = reindex_cache_write(ROW_SUM, "row_sum", buffer="Y", scope="local")
    >>> print(body_text(cached.module))
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
    name = cache_name(buffer, scope)
    return scattered(root, block, buffer=buffer, scope=scope, name=name, order=order)


def scattered(
    root: Cursor, block: str, *, buffer: str, scope: str, name: str, order: tuple[str, ...]
) -> Change:
    """Let a block write a new buffer `name` over its iterators instead of `buffer`.

    The new names are those of the buffer, of the block that copies it afterwards, and of its loops.
    """
    cursor, old = cached_buffer(root, block=block, buffer=buffer, scope=scope)
    cursor = _with_spatial_selectors(cursor, buffer)
    element = required_element(cursor, buffer)
    dimensions = required_dimensions(
        cursor, element.points.iters, order, elements=(element.store.indices,)
    )
    reduction = _require_initialized(cursor, element)
    require_init_of_nest(reduction_nest(cursor))

    namer = namer_of(cursor.function)
    cache = cache_over(old, scope, dimensions, name=namer.fresh(name))
    indices = tuple(dimension.index for dimension in dimensions)
    caching = redirected(cursor.node, buffer, to=cache.name, at=indices)
    value: Expr = Load(cache.name, indices, old.dtype)
    if reduction is not None:
        start = Store(cache.name, indices, identity(reduction.op, old.dtype))
        caching = replace(caching, init=(*caching.init, start))
        value = Binary(reduction.op, Load(buffer, element.store.indices, old.dtype), value)
    copy = copy_nest(
        copy_block(block, cache.name),
        element.points,
        (Store(buffer, element.store.indices, value),),
        namer=namer,
    )
    if reduction is not None:
        (copy,) = reassociating((copy,))

    rewritten = with_cache(
        cache,
        nest=reduction_nest(cursor),
        block=caching,
        after=(copy,),
    )
    if reduction is not None:
        require_init_of_nest(reduction_nest(find_block(rewritten, block=block)))
    else:
        scattering = find_block(rewritten, block=names_of_nest(copy)[0])
        require_distinct(scattering, buffer)
    return Change(rewritten, (cache.name, *names_of_nest(copy)))


def _with_spatial_selectors(cursor: Cursor, buffer: str) -> Cursor:
    """Return the cursor at the block after the iterators that select the element are made spatial.

    This applies to reductions without an init only. The iterators also select the element of the cache, in
    which each combination of their values has a reduction of its own.
    """
    block: Block = cursor.node
    reduction = reduction_of(block)
    if reduction is None or reduction.store.buffer != buffer or block.init:
        return cursor
    selecting = {item.var for item in selecting_iters(block, reduction.store.indices)}
    iters = tuple(
        replace(item, kind="S") if item.var in selecting else item for item in block.iters
    )
    points = cursor.replaced_by((replace(block, iters=iters),))
    return find_block(points, block=block.name)


def _require_initialized(cursor: Cursor, element: Element) -> Reduction | None:
    """Return the reduction whose identity initializes the cache, or None if the block initializes it."""
    block: Block = cursor.node
    is_reducing = any(item.kind == "R" for item in block.iters)
    buffer = element.store.buffer
    if is_initializing(block, buffer) or (not is_reducing and gives_values(block, buffer)):
        return None
    reduction = None if buffer in buffers_accessed(block.init) else reduction_of(block)
    if reduction is None or not _is_initialized_once(cursor, element):
        raise schedule_error(
            f"{cursor.primitive}.initialised",
            f"Block '{block.name}' neither assigns a value to its element of '{buffer}', nor reduces "
            "it in a single run of its reduction loops.",
            hint="Give the block an init.",
        )
    require_element_exists(cursor, element)
    return reduction


def _is_initialized_once(cursor: Cursor, element: Element) -> bool:
    """Return whether each loop outside of the reduction selects elements of the cache."""
    values = values_at(cursor)
    selecting = spatial_loops(replace(cursor.node, iters=element.points.iters), values)
    fed = reduction_loops(cursor.node, values)
    nest = reduction_nest(cursor)
    for loop in nest.loops:
        if loop.var in fed:
            break
        if loop.var not in selecting and integer_value(loop.extent) != 1:
            return False
    return not nest.has_let
