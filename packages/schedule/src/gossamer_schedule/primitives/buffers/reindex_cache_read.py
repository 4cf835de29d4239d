"""`reindex_cache_read`: gather the elements that a block reads into a buffer over its iterators."""

from __future__ import annotations

from gossamer_ir.nodes import Function, Scope
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.made_names import cache_name
from gossamer_schedule.staging.cache import ReindexedBuffer
from gossamer_schedule.staging.gather import with_gathered_reads


@primitive(stages=LOOP_STAGES)
def reindex_cache_read(
    root: Cursor[Function],
    block: str,
    *,
    buffer: str,
    scope: Scope,
    order: tuple[str, ...] = (),
    function: str | None = None,
) -> Change:
    """Gather the elements that a block reads into a new buffer that is indexed by the block's iterators.

    As `cache_read`, except that the new buffer has one dimension for each iterator that selects the
    element, in `order` (by default that of the block). Rows that are read through an index array thus
    become contiguous.

    For an iterator over a fiber, the dimension numbers the elements of all fibers, `indptr[vi] + vj`, which
    also covers `vi`. After `compute_at`, only the part of the buffer in use is allocated.

    Raises `ScheduleError` with a code `schedule.reindex_cache_read.*`:

    * `.single`: the block reads several elements
    * `.order`: it does not name each of these iterators once
    * `.shape`: a domain is not a fiber, and its extent is not known before the function runs
    * `.scope`, `.inner`, `.loads`, `.written`, `.domain`, `.race`, `.not_proved`: as for `cache_read`

    >>> from gossamer_testkit.examples import GATHER
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(GATHER))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
    >>> print(body_text(reindex_cache_read(GATHER, "gather", buffer="X", scope="local").module))
    for i_c in T.serial(n):
        with T.block("gather_X_local"):
            vi_c = T.axis.spatial(n, i_c)
            X_local[vi_c] = X[P[vi_c]]
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X_local[vi]
    """
    new = ReindexedBuffer(cache_name(buffer, scope), scope, elements_of=buffer, order=order)
    return with_gathered_reads(root, block, new)
