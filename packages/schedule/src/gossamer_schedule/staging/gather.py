"""Gathers the elements that a block reads into a buffer over its iterators, before its nest."""

from __future__ import annotations

from gossamer_ir.nodes import Block, Function
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.definition.change import Change
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.regions.iterator_dimensions import cache_with_dimensions, required_dimensions
from gossamer_schedule.staging.cache import ReindexedBuffer, required_block_and_buffer
from gossamer_schedule.staging.cache_checks import selecting_iters
from gossamer_schedule.staging.cached_reads import with_cached_reads
from gossamer_schedule.staging.read_elements import ReadElements, required_elements


def with_gathered_reads(root: Cursor[Function], block_name: str, new: ReindexedBuffer) -> Change:
    """Let a block read a new buffer over its iterators.

    The new names are those of the buffer, of the block that fills it, and of its loops.
    """
    buffer_name = new.elements_of
    cursor, old = required_block_and_buffer(root, block_name=block_name, buffer_name=buffer_name)
    elements = required_elements(cursor, buffer_name)
    _require_one_read(cursor, elements, buffer_name=buffer_name)
    # Only the selecting iterators become dimensions: lanes that share an element must still share it.
    indices = [read.indices for read in elements.reads]
    selecting = selecting_iters(cursor.node, elements.reads[0].indices)
    dimensions = required_dimensions(cursor, selecting, new.order, elements=indices)

    namer = namer_of(cursor.function)
    cache = cache_with_dimensions(old, new.scope, dimensions, name=namer.fresh(new.name))
    cache_indices = tuple(dimension.index for dimension in dimensions)
    return with_cached_reads(
        cursor, elements, buffer_name, cache=cache, namer=namer, indices=cache_indices
    )


def _require_one_read(cursor: Cursor[Block], elements: ReadElements, *, buffer_name: str) -> None:
    if len(elements.reads) != 1:
        raise schedule_error(
            f"{cursor.primitive}.single",
            f"Block '{cursor.node.name}' reads {len(elements.reads)} elements of '{buffer_name}' "
            "at each point, and the cache has one element for each point.",
            hint="Apply cache_read instead.",
        )
