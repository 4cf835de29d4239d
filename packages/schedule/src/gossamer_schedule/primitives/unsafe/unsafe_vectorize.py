"""`unsafe_vectorize`: execute a loop as lanes of vectors, without a proof that lanes are independent."""

from __future__ import annotations

from gossamer_ir.nodes import Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.unsafe_mark import marked_unsafe, require_nothing
from gossamer_schedule.primitives.loops.vectorize import Remainder, vectorize_loop


@primitive(stages=LOOP_STAGES)
def unsafe_vectorize(
    root: Cursor[Function],
    loop: str,
    *,
    remainder: Remainder = "scalar",
    function: str | None = None,
) -> Change:
    """Vectorize an innermost loop without a proof that its lanes access different elements.

    `remainder` is that of `vectorize`. If two lanes store to one element, either value may remain; the value
    that a lane reads from an element that another lane writes is undefined. The function is annotated
    `unsafe`. The result's name is that of the loop.

    Raises `ScheduleError`: as for `vectorize`, except `.race`; `.not_proved` only for reductions.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_schedule.primitives.loops.split import split
    >>> from gossamer_testkit.show import body_text
    >>> blocked = split(SCALE, "i", factors=(None, 8)).module
    >>> result = unsafe_vectorize(blocked, "i_1")
    >>> print(body_text(result.module))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.vectorized(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    >>> result.module.functions[0].annotations
    (('unsafe', 'vectorize(i_1)'),)
    """
    return marked_unsafe(vectorize_loop(root, loop, remainder=remainder, require=require_nothing))
