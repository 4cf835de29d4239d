"""`bind`: the iterations of a loop run on the threads of a grid."""

from __future__ import annotations

from typing import get_args

from msgspec.structs import replace

from gossamer_ir.analysis.loops import loops_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import For, Module, ThreadTag
from gossamer_ir.traversal.walk import free_vars
from gossamer_schedule.cursor.cursor import Cursor, statements
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.dependence.races import require_no_race
from gossamer_schedule.errors import listing, schedule_error, text_of
from gossamer_schedule.reductions.reassociation import reassociating
from gossamer_schedule.reductions.terms import is_reduction_loop, require_reducers
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

TAGS: tuple[str, ...] = get_args(ThreadTag)
MOST_THREADS = 1024
"""The threads of a block along one axis."""


@primitive
def bind(module: Module, loop: str, *, thread: str, function: str | None = None) -> Result:
    """Binds a serial loop that starts at 0 to a thread axis such as "blockIdx.x" or "threadIdx.x".

    Different iterations must touch different elements, as in `parallel`; or, for threads of one block,
    the loop feeds only reduction iterators of reductions, whose terms the threads then combine: such a
    block is annotated `reassociates`. Below the outermost loop that is bound to any axis, which is what
    a device runs at once, all loops on one axis have one extent, and none is in another.

    Raises `ScheduleError`: `schedule.bind.thread` (no thread axis), `.twice` (a loop around or inside
    has the axis), `.extent` (another loop on the axis has another extent; or the threads of a block
    are no constant from 1 to 1024; or an extent differs inside of what is started), `.start`, `.race`,
    `.not_proved`, `.not_reducer`, `.kind`, `.no_loop`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(SCALE))
    for i in T.serial(n):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    >>> print(body_text(bind(SCALE, "i", thread="blockIdx.x").module))
    for i in T.thread_binding(n, thread="blockIdx.x"):
        with T.block("scale"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[vi] * 2.0
    """
    require_stage(module, "bind", stages=LOOP_STAGES)
    root = find_function(module, "bind", function=function)
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    _require_axis(thread)
    _require_start(cursor)
    _require_free(cursor, thread=thread)
    _require_extent(cursor, thread=thread)
    is_reduction = thread.startswith("threadIdx") and is_reduction_loop(cursor)
    if is_reduction:
        require_reducers(cursor)
    else:
        require_no_race(cursor)

    body = reassociating(cursor.node.body) if is_reduction else cursor.node.body
    bound = replace(cursor.node, kind="thread_binding", thread=thread, body=body)

    rewritten = cursor.replaced_by((bound,)).module

    taken = step(loop=loop, thread=thread, function=function)
    return Result(rewritten, (loop,), Step("bind", taken))


def _require_axis(thread: str) -> None:
    if thread not in TAGS:
        raise schedule_error(
            "bind.thread", f"'{thread}' is not a thread axis.", hint=listing("thread axes", TAGS)
        )


def _require_start(cursor: Cursor) -> None:
    if integer_value(cursor.node.start) != 0:
        raise schedule_error(
            "bind.start",
            f"Loop '{cursor.node.var}' does not start at 0, as threads do.",
            place=cursor.place,
        )


def _require_free(cursor: Cursor, *, thread: str) -> None:
    for found in (*cursor.loops, *statements(cursor.node.body)):
        if isinstance(found, For) and found.thread == thread:
            raise schedule_error(
                "bind.twice",
                f"Loop '{cursor.node.var}' and loop '{found.var}', of which one is inside the other, "
                f"cannot both be bound to {thread}.",
                place=cursor.place,
            )


def _require_extent(cursor: Cursor, *, thread: str) -> None:
    count = integer_value(cursor.node.extent)
    if thread.startswith("threadIdx") and (count is None or not 1 <= count <= MOST_THREADS):
        raise schedule_error(
            "bind.extent",
            f"Loop '{cursor.node.var}' has {text_of(cursor.node.extent)} iterations; the threads of a "
            f"block are a constant from 1 to {MOST_THREADS}.",
            hint="Split it by a constant factor and bind the inner loop.",
            place=cursor.place,
        )
    inside = _kernel(cursor)
    _require_launch(cursor, inside=inside)
    for found in inside:
        if found.thread == thread and found.extent != cursor.node.extent:
            raise schedule_error(
                "bind.extent",
                f"Loop '{found.var}' is bound to {thread} with extent {text_of(found.extent)}, and "
                f"loop '{cursor.node.var}' has {text_of(cursor.node.extent)}.",
                place=cursor.place,
            )


def _require_launch(cursor: Cursor, *, inside: list[For]) -> None:
    """How many threads there are is known before any of them runs."""
    outermost = next((loop for loop in cursor.loops if loop.thread is not None), cursor.node)
    varying = {outermost.var, *(found.var for found in inside)}
    loops = loops_of(cursor.function)
    for found in (cursor.node, *(loop for loop in inside if loop.thread is not None)):
        extent = loops[found.var].extent
        if free_vars(extent) & varying:
            raise schedule_error(
                "bind.extent",
                f"Loop '{found.var}' has {text_of(extent)} iterations, which differ inside of what is "
                f"started for loop '{outermost.var}'.",
                hint="Bind a loop whose extent is the same for all of them.",
                place=cursor.place,
            )


def _kernel(cursor: Cursor) -> list[For]:
    """The loops below the outermost loop that is bound to a thread axis, or will be."""
    outermost = next((loop for loop in cursor.loops if loop.thread is not None), cursor.node)
    return [found for found in statements(outermost.body) if isinstance(found, For)]
