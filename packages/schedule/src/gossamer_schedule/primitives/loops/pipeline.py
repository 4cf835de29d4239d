"""`pipeline`: overlap the copies of later iterations with the computation of earlier ones."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import accesses
from gossamer_ir.analysis.regions import regions_of
from gossamer_ir.analysis.statements.software_pipelining import MAX_STAGES, MIN_STAGES, copies_ahead
from gossamer_ir.core.annotations import PIPELINE, without_annotation
from gossamer_ir.core.build import integer_value
from gossamer_ir.nodes import For, Function, Stmt
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_between, require_serial
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error


@primitive(stages=LOOP_STAGES)
def pipeline(
    root: Cursor[Function], loop: str, *, stages: int = 2, function: str | None = None
) -> Change:
    """Mark a serial loop as a software pipeline: `stages` of its iterations may overlap.

    The first statements of the body are copies: they fill buffers from data that the loop does not write,
    for the other statements. They may run up to `stages - 1` iterations ahead of these. The buffers are
    allocated in the loop, or by the function and used nowhere else. On GPUs, buffers in shared memory get a
    copy for each stage, which asynchronous copies fill. Other backends ignore the annotation `pipeline`. The
    result's name is that of the loop.

    Raises `ScheduleError` with a code `schedule.pipeline.*`:

    * `.stages`: not from 2 to 8
    * `.no_producer`: the body does not begin with a copy
    * `.not_proved`: an iteration may read elements that another one has filled

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
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    # In a single stage nothing overlaps; the annotation may have no more than the maximum.
    require_between(cursor, "stages", stages, MIN_STAGES, MAX_STAGES)
    copies = _required_copies(cursor)
    _require_own_values(cursor, copies)

    others = without_annotation(cursor.node, PIPELINE).annotations
    marked = replace(cursor.node, annotations=(*others, (PIPELINE, stages)))

    return Change(cursor.replace_with((marked,)), (loop,))


def _required_copies(cursor: Cursor[For]) -> tuple[Stmt, ...]:
    """Return the first statements of the loop's body that may run ahead; refuse a loop without any."""
    copies = copies_ahead(cursor.node, cursor.function)
    if not copies:
        raise schedule_error(
            "pipeline.no_producer",
            f"The body of loop '{cursor.node.var}' does not begin with a copy that may run ahead.",
            hint="Expected a statement that fills an allocated buffer, which only later statements of the "
            "loop read, from data that the loop does not write; cache_read makes one.",
            place=cursor.place,
        )
    return copies


def _require_own_values(cursor: Cursor[For], copies: tuple[Stmt, ...]) -> None:
    """Refuse copies whose buffers the other statements read beyond what the same iteration has filled."""
    loop = cursor.node
    inside = {buffer.name for buffer in allocations(copies)}
    others = regions_of(cursor.function, loop.body[len(copies) :])
    for filled in regions_of(cursor.function, copies).writes:
        name = filled.region.buffer
        read = None if name in inside else others.read_region(name)
        is_filled = filled.is_exact and not _may_be_idle(copies, name)
        if read is not None and not (is_filled and read.region == filled.region):
            raise schedule_error(
                "pipeline.not_proved",
                f"Cannot prove that each iteration of loop '{loop.var}' fills all elements of '{name}' "
                "that it reads.",
                needs=f"an element of {name} that an iteration reads is written in it",
                hint="Move the block that fills it into the loop with compute_at.",
                place=cursor.place,
            )


def _may_be_idle(copies: tuple[Stmt, ...], name: str) -> bool:
    """Return whether a loop around a store to a buffer may be empty, and selects no element that is stored.

    The region of the stores then has elements that are not written.
    """
    return any(
        (integer_value(loop.extent) or 0) < 1
        for access in accesses(copies)
        if access.buffer == name and access.is_store
        for loop in access.context.loops
        if not any(loop.var in free_vars(at) for at in access.indices)
    )
