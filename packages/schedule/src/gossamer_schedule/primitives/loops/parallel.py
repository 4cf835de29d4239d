"""`parallel`: the iterations of a loop run on several threads."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.atomics import ATOMIC, mark_of
from gossamer_ir.core.build import ONE, add, dtype_of, index
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Expr, For, Module
from gossamer_schedule.bounds.safe_loads import is_safe_in
from gossamer_schedule.bounds.sizes import COUNTS, is_count
from gossamer_schedule.cursor.cursor import Cursor, statements
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.dependence.monotone import is_monotone
from gossamer_schedule.dependence.races import require_no_race
from gossamer_schedule.dependence.shared_accumulation import required_shared
from gossamer_schedule.dependence.unchanged import require_unchanged
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.primitives.accumulation.partial_sums import in_parts
from gossamer_schedule.result import Result
from gossamer_schedule.step.expression_texts import expression_of
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step
from gossamer_schedule.step.unsafe_mark import Requirement, trusted

FORMS = ("atomic", "privatised", "segmented")
DEFAULT_PARTS = 8
MOST_PARTS = 2**16
"""Each part may have a copy of the buffer."""


@primitive
def parallel(
    module: Module,
    loop: str,
    *,
    weight: str | None = None,
    grain: int | None = None,
    accumulate: str | None = None,
    parts: int | None = None,
    function: str | None = None,
) -> Result:
    """Marks a serial loop as parallel, where different iterations write different elements.

    Where iterations share elements, `accumulate` says how. With "atomic" they make each step by
    itself: all that they do to the buffers that they share is a reduction `X[...] = X[...] op value` by
    addition, minimum or maximum, and what else they write, they do not share. The loop is annotated
    `atomic`, with the names of these buffers. Otherwise one such reduction, by any `op`, is all that the
    loop does, and `parts` (by default 8) equal parts of it run in parallel: "privatised", each having a
    copy of `X`; or "segmented", where the loop visits the elements in order, so that a part shares only
    the first one with parts before. What parts have of their own is combined afterwards, in order:
    results do not depend on the number of threads. Those of atomic sums of floats do, as they are made
    in any order.

    Where one parallel loop is inside another, threads share the iterations of the outermost, and each
    runs the loops inside serially. `fuse` makes one loop of two, whose iterations are all shared out.

    `weight` is the text of an int64 expression in the loop's variable: the work before an
    iteration, which must not decrease. `grain` is the weight (without one: the iterations) below
    which a further thread does not pay.

    Raises `ScheduleError`: `schedule.parallel.race` (two iterations write one element),
    `.not_proved` (they may, or the weight may read out of bounds), `.weight` (not proved to be
    monotone), `.text` (the weight is no expression), `.grain` (less than one, or too large),
    `.nested` (parts, in or around another parallel loop), `.accumulate` (none of the forms,
    or parts with a weight or grain), `.parts` (fewer than two, too many, or of an atomic form), `.not_atomic`
    (another reducer, or no numbers), `.no_sum` (the loop does more than a reduction, or more to what it
    shares), `.kind`, `.no_loop`, `.no_function`, `.stage`.

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
    if accumulate is not None or parts is not None:
        _require_form(accumulate, parts, weight or grain)
        if accumulate == ATOMIC:
            return in_parallel(
                module, loop, weight, grain=grain, function=function, op="parallel",
                require=trusted, accumulate=ATOMIC,
            )  # fmt: skip
        return _shared(module, loop, accumulate or "", parts=parts, function=function)
    return in_parallel(
        module, loop, weight, grain=grain, function=function, op="parallel", require=require_no_race
    )


def _require_form(accumulate: str | None, parts: int | None, weight: str | int | None) -> None:
    if accumulate not in FORMS or (weight is not None and accumulate != ATOMIC):
        raise schedule_error(
            "parallel.accumulate",
            f"Iterations cannot share elements by accumulate={accumulate!r}"
            f"{'' if weight is None else ' and a weight or grain'}.",
            hint="Expected 'atomic', or 'privatised' or 'segmented' without weight= and grain=.",
        )
    if parts is not None and accumulate == ATOMIC:
        raise schedule_error(
            "parallel.parts", "Iterations that share elements atomically have no parts."
        )
    if parts is not None and not 2 <= parts <= MOST_PARTS:
        raise schedule_error(
            "parallel.parts",
            f"{parts} parts cannot run in parallel.",
            hint=f"Expected from 2 to {MOST_PARTS} parts.",
        )


def _shared(
    module: Module, loop: str, accumulate: str, *, parts: int | None, function: str | None
) -> Result:
    """Runs equal parts of a loop that share elements, which they add up to."""
    require_stage(module, "parallel", stages=("loop",))
    root = find_function(module, "parallel", function=function)
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    _require_not_nested(cursor)

    rewritten, names = in_parts(cursor, accumulate, count=parts or DEFAULT_PARTS)

    taken = step(loop=loop, accumulate=accumulate, parts=parts, function=function)
    return Result(rewritten, names, Step("parallel", taken), {loop: names[:2]})


def in_parallel(
    module: Module,
    loop: str,
    weight: str | None,
    *,
    grain: int | None,
    function: str | None,
    op: str,
    require: Requirement,
    accumulate: str | None = None,
) -> Result:
    """What `parallel` and `unsafe_parallel` do, which require different things of the loop."""
    require_stage(module, op, stages=LOOP_STAGES)
    root = find_function(module, op, function=function)
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    require(cursor)
    shared = required_shared(cursor) if accumulate == ATOMIC else ()
    work = None if weight is None else _require_weight(weight, cursor)
    _require_grain(grain, cursor)

    least = None if grain is None else index(grain)
    parallel_loop = replace(cursor.node, kind="parallel", weight=work, grain=least)
    if shared:
        marks = (*cursor.node.annotations, mark_of(shared))
        parallel_loop = replace(parallel_loop, annotations=marks)

    rewritten = cursor.replaced_by((parallel_loop,)).module

    taken = step(loop=loop, weight=weight, grain=grain, accumulate=accumulate, function=function)
    return Result(rewritten, (loop,), Step(op, taken))


def _require_not_nested(cursor: Cursor) -> None:
    around = (*cursor.loops, *statements(cursor.node.body))
    for found in around:
        if isinstance(found, For) and found.kind == "parallel":
            raise schedule_error(
                "parallel.nested",
                f"Parts of loop '{cursor.node.var}' cannot run in parallel, as loop '{found.var}' does: one "
                "is inside the other.",
                hint="Expected accumulate='atomic', or no parallel loop around or inside.",
                place=cursor.place,
            )


def _require_weight(text: str, cursor: Cursor) -> Expr:
    place = cursor.place
    names = (*(loop.var for loop in cursor.loops), cursor.node.var)
    weight = expression_of(text, cursor, names, argument="weight", place=place)
    if dtype_of(weight) != "int64" or not is_monotone(weight, cursor):
        raise schedule_error(
            "parallel.weight",
            f"It is not proved that the weight {text} does not decrease along loop "
            f"'{cursor.node.var}'.",
            hint="Expected an int64 sum of multiples of the variable and of loads from monotone buffers.",
            place=place,
        )
    require_unchanged(cursor.node, (weight,), at=cursor, what="the weight")
    past = replace(cursor.node, extent=add(cursor.node.extent, ONE))
    if not is_safe_in(cursor.function, weight, (*cursor.loops, past)):
        end = text_of(add(cursor.node.start, cursor.node.extent))
        raise schedule_error(
            "parallel.not_proved",
            f"It is not proved that the weight {text}, which is also evaluated behind the last iteration "
            f"of loop '{cursor.node.var}', reads nothing out of bounds.",
            needs=f"each element that it reads exists wherever {cursor.node.var} <= {end}",
            hint="Leave the weight out, or use the offsets of the loop's own axis.",
            place=place,
        )
    return weight


def _require_grain(grain: int | None, cursor: Cursor) -> None:
    if grain is not None and not is_count(grain):
        raise schedule_error(
            "parallel.grain",
            f"Grain {grain} of loop '{cursor.node.var}' is not {COUNTS}.",
        )
