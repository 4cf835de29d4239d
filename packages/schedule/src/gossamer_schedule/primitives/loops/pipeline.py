"""`pipeline`: what later iterations of a loop copy is copied while earlier ones compute."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.accesses import accesses
from gossamer_ir.analysis.regions import regions_of
from gossamer_ir.analysis.software_pipelining import (
    FEWEST_STAGES,
    MOST_STAGES,
    PIPELINE,
    copies_ahead,
)
from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Allocate, For, Module, Stmt
from gossamer_ir.traversal.walk import free_vars
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step


@primitive
def pipeline(module: Module, loop: str, *, stages: int = 2, function: str | None = None) -> Result:
    """Records that so many iterations of a serial loop are under way at once: the first statements of
    its body, which fill buffers for the others from what the loop does not write, may run up to
    `stages - 1` iterations ahead of these. The buffers are allocated in the loop, or of the function
    and used nowhere else. A backend without asynchronous copies ignores it.

    Raises `ScheduleError`: `schedule.pipeline.stages` (not from 2 to 8), `.no_producer` (the body does
    not begin with such a copy), `.not_proved` (an iteration may read what others have filled), `.kind`,
    `.no_loop`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import STAGED
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(STAGED))
    for i in T.serial(m):
        for j in T.serial(8):
            with T.block("fetch"):
                vi, vj = T.axis.remap("SS", [i, j])
                X_shared[vi, vj] = X[vi, vj]
        for k in T.serial(8):
            with T.block("scale"):
                wi, wk = T.axis.remap("SS", [i, k])
                Y[wi, wk] = X_shared[wi, wk] * 2.0
    >>> print(body_text(pipeline(STAGED, "i", stages=3).module).splitlines()[0])
    for i in T.serial(m, annotations={"pipeline": 3}):
    """
    require_stage(module, "pipeline", stages=LOOP_STAGES)
    root = find_function(module, "pipeline", function=function)
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    _require_stages(stages)
    copies = _require_copies(cursor)
    _require_own_values(cursor, copies)

    others = tuple(item for item in cursor.node.annotations if item[0] != PIPELINE)
    marked = replace(cursor.node, annotations=(*others, (PIPELINE, stages)))

    rewritten = cursor.replaced_by((marked,)).module

    taken = step(loop=loop, stages=None if stages == 2 else stages, function=function)
    return Result(rewritten, (loop,), Step("pipeline", taken))


def _require_stages(stages: int) -> None:
    if not FEWEST_STAGES <= stages <= MOST_STAGES:
        raise schedule_error(
            "pipeline.stages",
            f"A pipeline has from {FEWEST_STAGES} to {MOST_STAGES} stages, and {stages} are asked for.",
        )


def _require_copies(cursor: Cursor) -> tuple[Stmt, ...]:
    """The first statements of the loop's body, which may run ahead."""
    found = copies_ahead(cursor.node, cursor.function)
    if not found:
        raise schedule_error(
            "pipeline.no_producer",
            f"The body of loop '{cursor.node.var}' does not begin with a copy that may run ahead.",
            hint="Expected a statement that fills a buffer of the function, which only the others in the "
            "loop read, from what the loop does not write; cache_read makes one.",
            place=cursor.place,
        )
    return found


def _require_own_values(cursor: Cursor, copies: tuple[Stmt, ...]) -> None:
    """What the others read of a buffer that is filled ahead was filled in the same iteration."""
    loop: For = cursor.node
    inside = {found.buffer.name for found in copies if isinstance(found, Allocate)}
    others = regions_of(cursor.function, loop.body[len(copies) :])
    for filled in regions_of(cursor.function, copies).writes:
        name = filled.region.buffer
        read = None if name in inside else others.read(name)
        is_filled = filled.is_exact and not _may_be_idle(copies, name)
        if read is not None and not (is_filled and read.region == filled.region):
            raise schedule_error(
                "pipeline.not_proved",
                f"It is not proved that each iteration of loop '{loop.var}' fills all that it reads of "
                f"'{name}'.",
                needs=f"an element of {name} that an iteration reads is written in it",
                hint="Move what fills it into the loop by compute_at, so that each iteration has its own.",
                place=cursor.place,
            )


def _may_be_idle(copies: tuple[Stmt, ...], name: str) -> bool:
    """Whether a store to a buffer is in a loop that selects no element and may have no iteration."""
    return any(
        (integer_value(loop.extent) or 0) < 1
        for access in accesses(copies)
        if access.buffer == name and access.is_store
        for loop in access.held.loops
        if not any(loop.var in free_vars(at) for at in access.indices)
    )
