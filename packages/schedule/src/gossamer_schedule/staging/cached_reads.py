"""Makes a block read its elements from a cache that is filled before its nest."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import AnyBuffer, Block, Expr
from gossamer_ir.traversal.names import Namer
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.definition.change import Change
from gossamer_schedule.made_names import copy_block_name
from gossamer_schedule.nests.block_nest import loop_nest
from gossamer_schedule.nests.copy_nest import copy_nest, names_of_nest
from gossamer_schedule.staging.cache import with_cache
from gossamer_schedule.staging.read_elements import ReadElements, copy_stmts
from gossamer_schedule.staging.redirected_accesses import with_redirected_loads


def with_cached_reads(
    cursor: Cursor[Block],
    elements: ReadElements,
    buffer_name: str,
    *,
    cache: AnyBuffer,
    namer: Namer,
    indices: tuple[Expr, ...] | None = None,
) -> Change:
    """Return the change that copies elements of a buffer into a cache, from which the block reads them.

    The elements are at the same indices in the cache, or all at `indices`. The new names are those of the
    cache, of the block that fills it, and of its loops.
    """
    cache_indices: Sequence[tuple[Expr, ...]] = [
        read.indices if indices is None else indices for read in elements.reads
    ]
    copy = copy_nest(
        copy_block_name(cursor.node.name, cache.name),
        elements.points,
        copy_stmts(elements, buffer_name, to=cache.name, cache_indices=cache_indices),
        namer=namer,
    )
    reading = with_redirected_loads(cursor.node, buffer_name, to=cache.name, at=indices)
    rewritten = with_cache(cache, nest=loop_nest(cursor), block=reading, before=(copy,))
    return Change(rewritten, (cache.name, *names_of_nest(copy)))
