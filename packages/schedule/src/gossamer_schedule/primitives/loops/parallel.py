"""`parallel`: run the iterations of a loop on several threads."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from gossamer_ir.analysis.statements.atomic_accumulation import atomic_annotation
from gossamer_ir.core.annotations import ATOMIC
from gossamer_ir.core.build import ONE, add, index
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.nodes import Expr, For, Function
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_between, require_serial
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.unsafe_mark import Requirement, require_nothing
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.loop_invariance import require_unchanged
from gossamer_schedule.legality.monotone_loops import is_monotone_along
from gossamer_schedule.legality.races import require_no_race
from gossamer_schedule.safe_accesses.expression_arguments import expr_of_text
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe_in_loops


@primitive(stages=LOOP_STAGES)
def parallel(
    root: Cursor[Function],
    loop: str,
    *,
    weight: str | None = None,
    grain: int | None = None,
    accumulate: Literal["atomic"] | None = None,
    function: str | None = None,
) -> Change:
    """Mark a serial loop as parallel: its iterations run on several threads.

    Different iterations write different elements. With `accumulate="atomic"`, they may share elements of
    buffers that the loop updates only by reductions `X[...] = X[...] op value` with addition, minimum or
    maximum. Each of these updates is atomic; the loop is annotated `atomic` with the names of these buffers.
    Updates run in any order, so sums of floats vary between runs. `parallel_reduction` keeps the order.

    `weight` is the text of an int64 expression in the loop variable: the cumulative work before an
    iteration, used to give each thread equal work. It must not decrease, and is also evaluated at the end
    of the loop. `grain` is the minimum weight for each thread or, without `weight`, the minimum number of
    iterations.

    Inside a parallel loop, further parallel loops run serially. To distribute the iterations of both,
    apply `fuse` first. The result's name is that of the loop.

    Raises `ScheduleError` with a code `schedule.parallel.*`:

    * `.race`: two iterations write the same element
    * `.not_proved`: they may, or the weight may read out of bounds
    * `.weight`: not int64, or may decrease
    * `.text`: the weight is not an expression
    * `.grain`: less than one, or too large
    * `.accumulate`: another word than "atomic"
    * `.not_atomic`: atomic updates by another reducer, or of other values than numbers
    * `.no_reduction`: with atomic updates, the loop accesses shared elements otherwise

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
    # Iterations that share elements are checked when the shared buffers are found.
    require = require_no_race if accumulate is None else require_nothing
    return parallelize_loop(root, loop, weight, grain=grain, require=require, accumulate=accumulate)


def parallelize_loop(
    root: Cursor[Function],
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


def _shared_buffers(cursor: Cursor[For]) -> tuple[str, ...]:
    """Return the buffers that need atomic updates; others keep plain stores."""
    # Imported late: few loops accumulate atomically.
    from gossamer_schedule.legality.shared_accumulation import required_shared_buffers

    return required_shared_buffers(cursor)


def _required_weight(text: str, cursor: Cursor[For]) -> Expr:
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
