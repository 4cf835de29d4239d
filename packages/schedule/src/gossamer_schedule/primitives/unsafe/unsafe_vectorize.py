"""`unsafe_vectorize`: a spatial loop becomes lanes on the user's word."""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_schedule.primitives.loops.vectorize import vectorize_loop
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.unsafe_mark import marked_result, trusted


@primitive
def unsafe_vectorize(
    module: Module, loop: str, *, rest: str = "scalar", function: str | None = None
) -> Result:
    """As `vectorize`, without the proof that the lanes of a spatial loop touch different elements one
    beside the other. Where two lanes store to one element, which of them stays is undefined, and so is
    what a lane reads that another one writes. The function is annotated `unsafe`.

    Raises `ScheduleError`: as `vectorize`, but for `.race` and `.not_proved`.

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
    result = vectorize_loop(
        module, loop, rest, function=function, op="unsafe_vectorize", require=trusted
    )
    return marked_result(result)
