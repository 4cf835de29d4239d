"""`parallel_reduction`: run equal parts of a reduction on several threads, and combine their results."""

from __future__ import annotations

from typing import Literal

from gossamer_ir.nodes import Block, For, Function
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import require_between, require_serial
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.primitives.loops.split import split
from gossamer_schedule.reductions.loop_reduction import (
    required_loop_reduction,
    required_segment_dimension,
)
from gossamer_schedule.reductions.parallel_parts import with_parallel_parts

DEFAULT_PARTS = 8
"""The default number of parts. It is a constant, since results would otherwise depend on the number of
threads, and small, since each part may have a copy of the buffer."""
MAX_PARTS = 2**16
"""The largest number of parts, each of which may have a copy of the buffer."""


@primitive(stages=("loop",))
def parallel_reduction(
    root: Cursor[Function],
    loop: str,
    *,
    form: Literal["privatized", "segmented"] = "privatized",
    parts: int = DEFAULT_PARTS,
    function: str | None = None,
) -> Change:
    """Cut a serial loop that is a reduction into equal parts, which run on several threads.

    The loop consists of one reduction `X[...] = X[...] op value` without an init, with any `op`; its
    iterations may share elements of `X`. There are two forms:

    * "privatized": each part has its own copy of `X`.
    * "segmented": the loop visits the elements in order. A part shares only its first element with earlier
      parts, so it has its own copy of that element only.

    Copies are combined after the loop, in order, so results do not depend on the number of threads. The
    iterations of a part are consecutive, and each part has the same number of them.

    The names of the result are those of the loop over parts, the loop inside it and the blocks that fill
    and combine the copies.

    Raises `ScheduleError` with a code `schedule.parallel_reduction.*`:

    * `.form`: neither of the forms
    * `.parts`: fewer than two, or too many
    * `.nested`: another loop around or inside it is parallel or bound to threads
    * `.no_reduction`: the loop contains more than a reduction
    * `.not_proved`: "segmented" for elements that may be visited in another order

    >>> from gossamer_testkit.examples import VECTOR_SUM
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(VECTOR_SUM))
    for i in T.serial(n):
        with T.block("total"):
            vi = T.axis.reduce(n, i)
            Y[0] = Y[0] + A[vi]
    >>> result = parallel_reduction(VECTOR_SUM, "i", parts=4)
    >>> result.names
    ('i_0', 'i_1', 'total_fill', 'total_combine')
    >>> print(body_text(result.module))
    for p_c in T.serial(4):
        for e1_c in T.serial(1):
            with T.block("total_fill"):
                vp_c, ve1_c = T.axis.remap("SS", [p_c, e1_c])
                Y_private[vp_c, ve1_c] = 0.0
    for i_0 in T.parallel(4):
        for i_1 in T.serial((n + 3) // 4):
            with T.block("total"):
                vi = T.axis.reduce(n, i_0 * ((n + 3) // 4) + i_1)
                vi_0 = T.axis.spatial(4, i_0)
                T.where(vi < n)
                T.block_attr({"reassociates": True})
                Y_private[vi_0, 0] = Y_private[vi_0, 0] + A[vi]
    for e1_c_1 in T.serial(1):
        for p_c_1 in T.serial(4):
            with T.block("total_combine"):
                ve1_c_1, vp_c_1 = T.axis.remap("SS", [e1_c_1, p_c_1])
                Y[ve1_c_1] = Y[ve1_c_1] + Y_private[vp_c_1, ve1_c_1]
    """
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    _require_not_nested(cursor)
    require_between(root, "parts", parts, 2, MAX_PARTS)

    reduction = required_loop_reduction(cursor)
    dimension = required_segment_dimension(reduction) if form == "segmented" else None
    # Equal numbers of iterations: a constant number of parts gives the same rounding with any
    # number of threads.
    divided = split(root.module, loop, factors=(parts, None), function=root.function.name)

    in_parts = root.function_in(divided.module)
    outer = find_loop(in_parts, loop=divided.names[0])
    changed = with_parallel_parts(reduction, outer, dimension=dimension, count=parts)
    # The blocks that fill and combine copies are those that were not there before.
    old = set(_block_names(in_parts.function))
    added = (name for name in _block_names(changed) if name not in old)
    return Change(in_parts.with_function(changed), (*divided.names, *added), divided.forwards)


def _block_names(function: Function) -> tuple[str, ...]:
    return tuple(stmt.name for stmt in addressable_stmts(function.body) if isinstance(stmt, Block))


def _require_not_nested(cursor: Cursor[For]) -> None:
    """Refuse parts inside a parallel or bound loop, whose threads would share the copies and combine all of
    them, and around one, which would run serially."""
    for stmt in (*cursor.loops, *addressable_stmts(cursor.node.body)):
        if isinstance(stmt, For) and stmt.kind in ("parallel", "thread_binding"):
            raise schedule_error(
                "parallel_reduction.nested",
                f"Parts of loop '{cursor.node.var}' cannot run in parallel, because loop '{stmt.var}' "
                "around or inside it is parallel or bound to threads.",
                hint="Use parallel with accumulate='atomic', or make only one of the loops parallel.",
                place=cursor.place,
            )
