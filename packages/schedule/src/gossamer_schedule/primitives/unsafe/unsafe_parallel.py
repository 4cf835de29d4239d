"""`unsafe_parallel`: run a loop on several threads, without a proof that it has no race."""

from __future__ import annotations

from gossamer_ir.nodes import Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.unsafe_mark import marked_unsafe, require_nothing
from gossamer_schedule.primitives.loops.parallel import parallelize_loop


@primitive(stages=LOOP_STAGES)
def unsafe_parallel(
    root: Cursor[Function],
    loop: str,
    *,
    weight: str | None = None,
    grain: int | None = None,
    function: str | None = None,
) -> Change:
    """Mark a serial loop as parallel without a proof that different iterations access different elements.

    `weight` and `grain` are those of `parallel`. If iterations access the same element and one of them
    writes it, results are undefined. The function is annotated `unsafe`. The result's name is that of the
    loop.

    Raises `ScheduleError`: as for `parallel`, except `.race`; `.not_proved` only for the weight.

    >>> from gossamer_testkit.examples import GATHER
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(GATHER))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
    >>> result = unsafe_parallel(GATHER, "i")
    >>> print(body_text(result.module))
    for i in T.parallel(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
    >>> result.module.functions[0].annotations
    (('unsafe', 'parallel(i)'),)
    """
    return marked_unsafe(parallelize_loop(root, loop, weight, grain=grain, require=require_nothing))
