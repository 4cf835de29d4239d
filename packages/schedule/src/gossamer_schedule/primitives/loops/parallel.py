"""`parallel`: run the iterations of a loop on several threads."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec.structs import replace

from gossamer_ir.analysis.statements.atomic_accumulation import atomic_annotation
from gossamer_ir.core.annotations import ATOMIC
from gossamer_ir.core.build import ONE, add, index
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.nodes import Block, Expr, For, Function
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import (
    LOOP_STAGES,
    require_between,
    require_scheduled_stage,
    require_serial,
)
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.unsafe_mark import Requirement, require_nothing
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.loop_invariance import require_unchanged
from gossamer_schedule.legality.monotone_loops import is_monotone_along
from gossamer_schedule.legality.races import require_no_race
from gossamer_schedule.primitives.loops.split import split
from gossamer_schedule.safe_accesses.expression_arguments import expr_of_text
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe_in_loops

Accumulation: TypeAlias = Literal["atomic", "privatized", "segmented"]
"""The ways in which iterations share elements."""
DEFAULT_PARTS = 8
"""The default number of parts. It is a constant, since results would otherwise depend on the number of
threads, and small, since each part may have a copy of the buffer."""
MAX_PARTS = 2**16
"""The largest number of parts, each of which may have a copy of the buffer."""


@primitive(stages=LOOP_STAGES)
def parallel(
    root: Cursor,
    loop: str,
    *,
    weight: str | None = None,
    grain: int | None = None,
    accumulate: Accumulation | None = None,
    parts: int | None = None,
    function: str | None = None,
) -> Change:
    """Mark a serial loop as parallel: its iterations run on several threads.

    Different iterations must write different elements, unless `accumulate` says how they share them:

    * "atomic": each update is atomic. The loop updates shared buffers only by reductions
      `X[...] = X[...] op value` with addition, minimum or maximum; it is annotated `atomic` with the names
      of these buffers. Updates run in any order, so sums of floats vary between runs.
    * "privatized": the loop contains one such reduction, with any `op`. It is cut into `parts` equal parts
      (8 by default), which run in parallel; each has its own copy of `X`.
    * "segmented": as "privatized", if the loop visits the elements in order. A part shares only its first
      element with earlier parts, so it has its own copy of that element only.

    Copies are combined after the loop, in order, so results do not depend on the number of threads.

    `weight` is the text of an int64 expression in the loop variable: the cumulative work before an
    iteration, used to give each thread equal work. It must not decrease, and is also evaluated at the end
    of the loop. `grain` is the minimum weight for each thread or, without `weight`, the minimum number of
    iterations.

    Inside a parallel loop, further parallel loops run serially. To distribute the iterations of both,
    apply `fuse` first. The result's name is that of the loop; with parts, the names are those of the
    loop over parts, the loop inside it and the blocks that fill and combine the copies.

    Raises `ScheduleError` with a code `schedule.parallel.*`:

    * `.race`: two iterations write the same element
    * `.not_proved`: they may, or the weight may read out of bounds
    * `.weight`: not int64, or may decrease
    * `.text`: the weight is not an expression
    * `.grain`: less than one, or too large
    * `.nested`: parts inside or around another loop that is parallel or bound to threads
    * `.accumulate`: none of the forms, or parts with a weight or grain
    * `.parts`: fewer than two, too many, or with "atomic"
    * `.not_atomic`: another reducer, or not numbers
    * `.no_reduction`: the loop contains more than a reduction, or other accesses to shared elements

    >>> from gossamer_testkit.examples import ROW_SUM
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(ROW_SUM))
    for i in T.serial(m):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    >>> rows = parallel(ROW_SUM, "i", weight="indptr_data[i] + 4 * i", grain=8192)
    >>> print(body_text(rows.module))
    for i in T.parallel(m, weight=indptr_data[i] + 4 * i, grain=8192):
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    """
    # Without a form, iterations may share nothing, and the plain check below suffices.
    if accumulate is not None or parts is not None:
        _require_accumulation_form(accumulate, parts, weight or grain, root)
        if accumulate == ATOMIC:
            return parallelize_loop(
                root, loop, weight, grain=grain, require=require_nothing, accumulate=ATOMIC
            )
        return _parallelize_parts(root, loop, accumulate, parts=parts or DEFAULT_PARTS)
    return parallelize_loop(root, loop, weight, grain=grain, require=require_no_race)


def _require_accumulation_form(
    accumulate: Accumulation | None, parts: int | None, weight: str | int | None, root: Cursor
) -> None:
    """Refuse arguments that have no effect in a form: parts are equal, so their work is not balanced by a
    weight, and with atomic updates there are no parts."""
    if accumulate is None:
        raise schedule_error(
            "parallel.accumulate",
            f"parts={parts} is given without accumulate=.",
            hint="Add accumulate='privatized' or 'segmented', or leave parts= out.",
        )
    if weight is not None and accumulate != ATOMIC:
        raise schedule_error(
            "parallel.accumulate",
            f"parallel does not support accumulate={accumulate!r} with weight= or grain=.",
            hint="Leave weight= and grain= out, or use accumulate='atomic'.",
        )
    if parts is not None and accumulate == ATOMIC:
        raise schedule_error(
            "parallel.parts",
            f"parallel does not support parts={parts} with accumulate='atomic'.",
            hint="Leave parts= out, or use accumulate='privatized' or 'segmented'.",
        )
    if parts is not None:
        require_between(root, "parts", parts, 2, MAX_PARTS)


def _parallelize_parts(
    root: Cursor, loop_name: str, accumulate: Accumulation | None, *, parts: int
) -> Change:
    """Run equal parts of a reduction in parallel, and combine their results afterward."""
    # Imported late: few schedules have parts.
    from gossamer_schedule.reductions.loop_reduction import (
        required_loop_reduction,
        required_segment_dimension,
    )
    from gossamer_schedule.reductions.parallel_parts import with_parallel_parts

    require_scheduled_stage(root, ("loop",))
    cursor = find_loop(root, loop=loop_name)

    require_serial(cursor)
    _require_not_nested(cursor)

    reduction = required_loop_reduction(cursor)
    dimension = required_segment_dimension(reduction) if accumulate == "segmented" else None
    # Equal numbers of iterations: a constant number of parts gives the same rounding with any
    # number of threads.
    divided = split(root.module, loop_name, factors=(parts, None), function=root.function.name)

    in_parts = root.function_in(divided.module)
    outer = find_loop(in_parts, loop=divided.names[0])
    changed = with_parallel_parts(reduction, outer, dimension=dimension, count=parts)
    # The blocks that fill and combine copies are those that were not there before.
    old = set(_block_names(in_parts.function))
    added = (name for name in _block_names(changed) if name not in old)
    return Change(in_parts.with_function(changed), (*divided.names, *added), divided.forwards)


def _block_names(function: Function) -> tuple[str, ...]:
    return tuple(stmt.name for stmt in addressable_stmts(function.body) if isinstance(stmt, Block))


def parallelize_loop(
    root: Cursor,
    loop_name: str,
    weight: str | None,
    *,
    grain: int | None,
    require: Requirement,
    accumulate: str | None = None,
) -> Change:
    """Mark a loop as parallel, if `require` allows it."""
    cursor = find_loop(root, loop=loop_name)

    require_serial(cursor)
    require(cursor)
    shared = _shared_buffers(cursor) if accumulate == ATOMIC else ()
    work = None if weight is None else _required_weight(weight, cursor)
    if grain is not None:  # it divides the work, which gives the largest number of threads
        require_between(cursor, "grain", grain, 1, MAX_SIZE)

    min_work = None if grain is None else index(grain)
    parallel_loop = replace(cursor.node, kind="parallel", weight=work, grain=min_work)
    if shared:
        marks = (*cursor.node.annotations, atomic_annotation(shared))
        parallel_loop = replace(parallel_loop, annotations=marks)

    return Change(cursor.replace_with((parallel_loop,)), (loop_name,))


def _shared_buffers(cursor: Cursor) -> tuple[str, ...]:
    """Return the buffers that need atomic updates; others keep plain stores."""
    # Imported late: few loops accumulate atomically.
    from gossamer_schedule.legality.shared_accumulation import required_shared_buffers

    return required_shared_buffers(cursor)


def _require_not_nested(cursor: Cursor) -> None:
    """Refuse parts inside a parallel or bound loop, whose threads would share the copies and combine all of
    them, and around one, which would run serially."""
    for stmt in (*cursor.loops, *addressable_stmts(cursor.node.body)):
        if isinstance(stmt, For) and stmt.kind in ("parallel", "thread_binding"):
            raise schedule_error(
                "parallel.nested",
                f"Parts of loop '{cursor.node.var}' cannot run in parallel, because loop '{stmt.var}' "
                "around or inside it is parallel or bound to threads.",
                hint="Use accumulate='atomic', or make only one of the loops parallel.",
                place=cursor.place,
            )


def _required_weight(text: str, cursor: Cursor) -> Expr:
    place = cursor.place
    names = (*(loop.var for loop in cursor.loops), cursor.node.var)
    weight = expr_of_text(text, cursor, names, argument="weight", place=place)
    if dtype_of(weight) != "int64" or not is_monotone_along(weight, cursor):
        raise schedule_error(
            "parallel.weight",
            f"Cannot prove that the weight '{text}' is an int64 that does not decrease along loop "
            f"'{cursor.node.var}'.",
            hint="Expected an int64 sum of multiples of the variable and loads from buffers that never "
            "decrease.",
            place=place,
        )
    # Load balancing evaluates the weight before the loop and while it runs.
    require_unchanged(cursor.node, (weight,), cursor=cursor, what="the weight")
    # The weight at the end of the loop is its total work, so it is evaluated there, too.
    past = replace(cursor.node, extent=add(cursor.node.extent, ONE))
    if not are_loads_safe_in_loops(cursor.function, weight, (*cursor.loops, past)):
        end = text_of(add(cursor.node.start, cursor.node.extent))
        raise schedule_error(
            "parallel.not_proved",
            f"Cannot prove that the weight '{text}', which is also evaluated at the end of loop "
            f"'{cursor.node.var}', reads nothing out of bounds.",
            needs=f"each element that it reads exists wherever {cursor.node.var} <= {end}",
            hint="Leave the weight out, or use the offsets of the loop's own axis.",
            place=place,
        )
    return weight
