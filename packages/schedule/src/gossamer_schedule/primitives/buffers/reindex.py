"""`reindex`: make a block access a new buffer that is indexed by its iterators."""

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
    """Make a block access a new buffer `<buffer>_reindex` that is indexed by the iterators of the block.

    As `reindex_cache_write` if the block stores to the buffer, otherwise as `reindex_cache_read`. The new
    buffer has the scope of the old one. This prepares a block for `tensorize`, `blockize` and
    `transform_layout`, which work on accesses that are indexed by iterators alone.

    Raises `ScheduleError`: the errors of `reindex_cache_read` and `reindex_cache_write`, with codes such as
    `schedule.reindex.order`.

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
    rewritten, names = through(
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
    return Result(rewritten, names, Step(_NAME, taken))
