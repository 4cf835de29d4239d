"""`bind`: run the iterations of a loop on the threads of a grid."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from gossamer_ir.analysis.bounds.loops_by_name import loops_of
from gossamer_ir.analysis.statements.atomic_accumulation import atomic_annotation
from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.limits import MAX_BLOCK_THREADS
from gossamer_ir.nodes import Block, For, Function, ThreadTag
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial, require_zero_start
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.races import require_no_race
from gossamer_schedule.legality.shared_accumulation import required_accumulated_buffers
from gossamer_schedule.reductions.reduction_loops import is_reduction_loop, required_concurrent_body


@primitive(stages=LOOP_STAGES)
def bind(
    root: Cursor[Function],
    loop: str,
    *,
    thread: ThreadTag,
    accumulate: Literal["atomic"] | None = None,
    function: str | None = None,
) -> Change:
    """Bind a serial loop to a thread axis such as "blockIdx.x" or "threadIdx.x".

    The loop starts at 0, and different iterations access different elements, as in `parallel`. A loop bound
    to the threads of a block (a "threadIdx" axis) may instead feed only reduction iterators of reductions:
    the threads combine the terms, and the blocks are annotated `reassociates`. Serial loops inside may have
    further terms of the same elements: each thread adds up what it has before threads combine.

    With `accumulate="atomic"`, iterations of a loop on any axis may share elements that they only accumulate
    into, as in `parallel`. All updates of buffers that the loop only accumulates into are atomic then, since
    threads of another loop of the launch may have their elements, too (`horizontal_fuse`); it is annotated
    `atomic` with their names.

    The outermost bound loop launches a kernel. Within it, loops bound to one axis have the same extent and
    are not nested, and extents do not vary. The extent of a "threadIdx" axis is a constant from 1 to 1024.
    The result's name is that of the loop.

    Raises `ScheduleError` with a code `schedule.bind.*`:

    * `.thread`: not a thread axis
    * `.duplicate`: a loop around or inside is bound to the axis
    * `.extent`: another loop on the axis has another extent, the extent varies within the kernel, or the
      threads of a block are not a constant number from 1 to 1024
    * `.start`: the loop does not start at 0
    * `.race`: iterations access the same element
    * `.not_proved`: they may
    * `.not_reducer`: a block of a reduction loop is not a reduction
    * `.not_atomic`: atomic updates by another reducer, or of other values than numbers
    * `.no_reduction`: with atomic updates, the loop accesses shared elements otherwise

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
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    require_zero_start(cursor)  # as do the indices of threads, which replace the variable
    _require_no_nested_axis(cursor, thread=thread)
    _require_extent(cursor, thread=thread)
    bound = _atomic_loop(cursor) if accumulate == "atomic" else _plain_loop(cursor, thread=thread)

    changed = replace(bound, kind="thread_binding", thread=thread)

    return Change(cursor.replace_with((changed,)), (loop,))


def _plain_loop(cursor: Cursor[For], *, thread: str) -> For:
    """Return the loop whose iterations share no elements, or combine the terms of reductions."""
    # Only the threads of one block can combine terms.
    is_reduction = is_thread_axis(thread) and is_reduction_loop(cursor)
    body = required_concurrent_body(
        cursor, is_reduction=is_reduction, require=require_no_race, allows_loops=True
    )
    loop: For = replace(cursor.node, body=body)
    return loop


def _atomic_loop(cursor: Cursor[For]) -> For:
    """Return the loop with the annotation of the buffers that it only accumulates into, if any."""
    names = required_accumulated_buffers(cursor)
    loop = cursor.node
    marks = (*loop.annotations, atomic_annotation(names)) if names else loop.annotations
    return replace(loop, annotations=marks)


def _require_no_nested_axis(cursor: Cursor[For], *, thread: str) -> None:
    """Refuse a second loop on the axis in a nest.

    A thread has one index along an axis, so both variables would be equal, and the other combinations of
    iterations would not run.
    """
    for stmt in (*cursor.loops, *addressable_stmts(cursor.node.body)):
        if isinstance(stmt, For) and stmt.thread == thread:
            raise schedule_error(
                "bind.duplicate",
                f"Loops '{cursor.node.var}' and '{stmt.var}' are nested and cannot both be bound to "
                f"'{thread}'.",
                hint="Choose another thread axis.",
                place=cursor.place,
            )


def _require_extent(cursor: Cursor[For], *, thread: str) -> None:
    """Refuse an extent for which no kernel can be launched.

    A launch has one number of threads along each axis, which all loops on that axis share. The threads of a
    block are limited, so their number must be a known constant.
    """
    count = integer_value(cursor.node.extent)
    if is_thread_axis(thread) and (count is None or not 1 <= count <= MAX_BLOCK_THREADS):
        raise schedule_error(
            "bind.extent",
            f"The extent of loop '{cursor.node.var}' is {text_of(cursor.node.extent)}, and '{thread}' needs "
            f"a constant from 1 to {MAX_BLOCK_THREADS}.",
            hint="Split it by a constant factor and bind the inner loop.",
            place=cursor.place,
        )
    inside = _loops_of_kernel(cursor)
    _require_launch(cursor, inside=inside)
    for loop in inside:
        if loop.thread == thread and loop.extent != cursor.node.extent:
            raise schedule_error(
                "bind.extent",
                f"Loop '{loop.var}' is bound to '{thread}' with extent {text_of(loop.extent)}, and "
                f"loop '{cursor.node.var}' has extent {text_of(cursor.node.extent)}.",
                hint="Loops bound to one axis in a kernel need the same extent.",
                place=cursor.place,
            )


def _require_launch(cursor: Cursor[For], *, inside: list[For]) -> None:
    """Refuse extents that vary within the kernel: the numbers of threads are fixed when it is launched."""
    outermost = next((loop for loop in cursor.loops if loop.thread is not None), cursor.node)
    varying = {outermost.var, *(bound_loop.var for bound_loop in inside)}
    loops = loops_of(cursor.function)
    for bound_loop in (cursor.node, *(loop for loop in inside if loop.thread is not None)):
        extent = loops[bound_loop.var].extent
        if free_vars(extent) & varying:
            raise schedule_error(
                "bind.extent",
                f"The extent of loop '{bound_loop.var}', {text_of(extent)}, varies within the kernel of loop "
                f"'{outermost.var}'.",
                hint="Bind a loop whose extent is known when the kernel is launched.",
                place=cursor.place,
            )


def _loops_of_kernel(cursor: Cursor[Block | For]) -> list[For]:
    """Return the loops inside the outermost loop that is bound to a thread axis, or will be."""
    outermost = next((loop for loop in cursor.loops if loop.thread is not None), cursor.node)
    return [stmt for stmt in addressable_stmts(outermost.body) if isinstance(stmt, For)]
