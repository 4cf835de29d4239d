"""`reindex`: what a block reads or writes of a buffer goes through a buffer over the block's iterators."""

from __future__ import annotations

from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Module
from gossamer_ir.traversal.effects import outer_writes
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_block,
    find_buffer,
    find_function,
    require_stage,
)
from gossamer_schedule.primitives.buffers.reindex_cache_read import gathered
from gossamer_schedule.primitives.buffers.reindex_cache_write import scattered
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "reindex"


@primitive
def reindex(
    module: Module,
    block: str,
    *,
    buffer: str,
    order: tuple[str, ...] = (),
    function: str | None = None,
) -> Result:
    """As `reindex_cache_write` where the block stores to the buffer, else as `reindex_cache_read`; the new
    buffer is called `<buffer>_reindex` and has the scope of the old one.

    A block whose accesses are indexed by its iterators alone is what `tensorize`, `blockize` and
    `transform_layout` work on.

    Raises `ScheduleError`: as `reindex_cache_read` and `reindex_cache_write`, under the name `reindex`.

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
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    cursor = find_block(root, block=block)
    old = find_buffer(root, buffer=buffer)

    through = scattered if buffer in outer_writes((cursor.node,)) else gathered
    made, names = through(
        module,
        block,
        buffer=buffer,
        scope=old.scope,
        name=f"{buffer}_reindex",
        order=order,
        function=function,
        primitive=_NAME,
    )

    taken = step(block=block, buffer=buffer, order=order or None, function=function)
    return Result(made, names, Step(_NAME, taken))
