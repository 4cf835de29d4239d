"""`unsafe_parallel`: a loop runs on several threads on the user's word."""

from __future__ import annotations

from gossamer_ir.nodes import Module
from gossamer_schedule.primitives.loops.parallel import parallelize_loop
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.unsafe_mark import marked_result, trusted


@primitive
def unsafe_parallel(
    module: Module,
    loop: str,
    *,
    weight: str | None = None,
    grain: int | None = None,
    function: str | None = None,
) -> Result:
    """As `parallel`, without the proof that different iterations touch different elements. Where they do
    not, results are undefined. The function is annotated `unsafe`.

    Raises `ScheduleError`: as `parallel`, but for `.race` and `.not_proved`.

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
    result = parallelize_loop(
        module,
        loop,
        weight,
        grain=grain,
        function=function,
        op="unsafe_parallel",
        require=trusted,
    )
    return marked_result(result)
