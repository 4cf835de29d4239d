"""`reindex_cache_write`: make a block write a buffer over its iterators, and scatter the elements."""

from __future__ import annotations

from gossamer_ir.nodes import Function, Scope
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.made_names import cache_name
from gossamer_schedule.staging.cache import ReindexedBuffer
from gossamer_schedule.staging.scatter import with_scattered_writes


@primitive(stages=LOOP_STAGES)
def reindex_cache_write(
    root: Cursor[Function],
    block: str,
    *,
    buffer: str,
    scope: Scope,
    order: tuple[str, ...] = (),
    function: str | None = None,
) -> Change:
    """Make a block write a new buffer that is indexed by its iterators, and scatter the elements afterward.

    As `cache_write`, except that the new buffer has one dimension for each iterator that selects the
    element, in `order` (by default that of the block), as in `reindex_cache_read`.

    A reduction without an `init` starts at the identity of its reducer in the cache, and the copy combines
    the result with the old value of the element; several points, also of the reduction, may then share one
    element. In all other cases the copy stores, and different points must select different elements.

    Raises `ScheduleError` with a code `schedule.reindex_cache_write.*`:

    * `.initialized`: an element is neither assigned nor reduced, or the cache would be initialized several
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
    new = ReindexedBuffer(cache_name(buffer, scope), scope, elements_of=buffer, order=order)
    return with_scattered_writes(root, block, new)
