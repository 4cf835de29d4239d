"""`cache_read`: make a block read a copy of the elements that it needs of a buffer."""

from __future__ import annotations

from gossamer_ir.nodes import Function, Scope
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.staging.cache import cache_of, required_block_and_buffer
from gossamer_schedule.staging.cache_checks import require_constant_size
from gossamer_schedule.staging.cached_reads import with_cached_reads
from gossamer_schedule.staging.read_elements import require_stored, required_elements


@primitive(stages=LOOP_STAGES)
def cache_read(
    root: Cursor[Function], block: str, *, buffer: str, scope: Scope, function: str | None = None
) -> Change:
    """Copy the elements that a block reads to a new buffer `<buffer>_<scope>`, and make it read the copies.

    The new buffer has the same shape. Block `<block>_<buffer>_<scope>` fills it, directly before the
    outermost loop around the block. It has one loop for each iterator that selects elements: `k_c` for
    iterator `vk`. An element is copied under the condition under which the block reads it. If it is not
    proved to exist for all values of these iterators, the copy runs over all iterators of the block.

    Elements that the init, the predicate or the domains of the block read are not cached. The result's
    names are the buffer, the copy block and its loops.

    Raises `ScheduleError` with a code `schedule.cache_read.*`:

    * `.scope`: unknown scope
    * `.inner`: the buffer is allocated in the nest
    * `.loads`: the body of the block does not load from the buffer
    * `.written`: the nest writes the buffer
    * `.domain`: an element depends on more than the block's iterators, or on a buffer that its nest writes
    * `.race`: concurrent iterations around the nest would share the cache
    * `.not_proved`: they may, or an element may be read that the block does not read

    >>> from gossamer_testkit.examples import GATHER
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(GATHER))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
    >>> print(body_text(cache_read(GATHER, "gather", buffer="X", scope="local").module))
    for i_c in T.serial(n):
        with T.block("gather_X_local"):
            vi_c = T.axis.spatial(n, i_c)
            X_local[P[vi_c]] = X[P[vi_c]]
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X_local[P[vi]]
    """
    cursor, old = required_block_and_buffer(root, block_name=block, buffer_name=buffer)
    elements = required_elements(cursor, buffer)

    require_constant_size(old, cursor)
    instead = "Apply reindex_cache_read instead, whose buffer has an element for each iteration."
    require_stored(cursor, old, elements, hint=instead)

    namer = namer_of(cursor.function)
    cache = cache_of(old, scope, namer=namer)
    return with_cached_reads(cursor, elements, buffer, cache=cache, namer=namer)
