"""`reindex`: make a block access a new buffer that is indexed by its iterators."""

from __future__ import annotations

from gossamer_ir.nodes import Function
from gossamer_ir.traversal.buffer_uses import outer_writes
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block, find_buffer
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.staging.cache import ReindexedBuffer
from gossamer_schedule.staging.gather import with_gathered_reads
from gossamer_schedule.staging.scatter import with_scattered_writes


@primitive(stages=LOOP_STAGES)
def reindex(
    root: Cursor[Function],
    block: str,
    *,
    buffer: str,
    order: tuple[str, ...] = (),
    function: str | None = None,
) -> Change:
    """Make a block access a new buffer `<buffer>_reindex` that is indexed by the iterators of the block.

    As `reindex_cache_write` if the block stores to the buffer, otherwise as `reindex_cache_read`. The new
    buffer has the scope of the old one. This prepares a block for `tensorize`, `blockize` and
    `transform_layout`, which work on accesses that are indexed by iterators alone.

    Raises `ScheduleError`: as for `reindex_cache_read` if the block only reads the buffer, else as for
    `reindex_cache_write`.

    >>> from gossamer_testkit.examples import GATHER
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(GATHER))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
    >>> result = reindex(GATHER, "gather", buffer="X")
    >>> print(body_text(result.module))
    for i_c in T.serial(n):
        with T.block("gather_X_reindex"):
            vi_c = T.axis.spatial(n, i_c)
            X_reindex[vi_c] = X[P[vi_c]]
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X_reindex[vi]
    """
    cursor = find_block(root, block=block)
    old = find_buffer(root, buffer=buffer)

    through = (
        with_scattered_writes if buffer in outer_writes((cursor.node,)) else with_gathered_reads
    )
    new = ReindexedBuffer(f"{buffer}_reindex", old.scope, elements_of=buffer, order=order)
    return through(root, block, new)
