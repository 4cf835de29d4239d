"""`vectorize`: the iterations of an innermost loop become the lanes of vectors."""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.atomics import ATOMIC
from gossamer_ir.arith.affine import affine_of, factored
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import For, Module, VScale
from gossamer_schedule.cursor.cursor import Cursor, statements
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.dependence.races import require_no_race
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.primitives.accumulation.lane_terms import terms_in_lanes
from gossamer_schedule.reductions.reassociation import reassociating
from gossamer_schedule.reductions.sums import require_sum
from gossamer_schedule.reductions.terms import is_adding_up, is_reduction_loop, require_reducers
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step
from gossamer_schedule.step.unsafe_mark import Requirement

MAX_LANES = 1024


@primitive
def vectorize(
    module: Module,
    loop: str,
    *,
    rest: str = "scalar",
    accumulate: str | None = None,
    function: str | None = None,
) -> Result:
    """Marks an innermost serial loop of constant extent (or a multiple of vscale) as vectorized.

    Either the loop is spatial, and lanes store to different elements. Elements that lie side by side,
    along the last dimension, are then read and written at once; others are gathered and scattered, such
    as rows of a format that stores the slots of a row side by side, or rows of a permutation. Or all it
    does is reductions (`X[i] = X[i] + value`) into elements that it does not select, whose terms are
    then added up lane by lane: such a block is annotated `reassociates`. The terms of such a loop that
    fill no whole vector are then added one by one (`rest="scalar"`, better where lengths repeat) or as
    one masked vector (`rest="masked"`, better where they do not).

    Where lanes may share elements, and all the loop does is one reduction `X[...] = X[...] op value`
    without an init, `accumulate="atomic"` (at the loop stage) computes its terms in lanes, into a
    buffer, and lets each lane combine its own by itself, in their order: in a loop `<loop>_turn` behind
    that of a block `<block>_terms`. Results stay as they are.

    Raises `ScheduleError`: `schedule.vectorize.rest` (neither of the two), `.innermost`, `.extent`,
    `.race` (the lanes write one element), `.not_proved` (they may, or of a reduction: they may not),
    `.not_reducer`, `.accumulate` (in another way, or with a rest), `.no_sum` (the loop does more than a
    reduction), `.kind`, `.no_loop`, `.no_function`, `.stage`.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_schedule.primitives.loops.split import split
    >>> from gossamer_testkit.show import body_text
    >>> blocked = split(SCALE, "i", factors=(None, 8)).module
    >>> print(body_text(blocked))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.serial(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    >>> print(body_text(vectorize(blocked, "i_1").module))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.vectorized(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    """
    if accumulate is not None:
        _require_form(accumulate, rest)
        return _in_turn(module, loop, accumulate, function=function)
    return in_vectors(
        module, loop, rest, function=function, op="vectorize", require=require_no_race
    )


def _require_form(accumulate: str, rest: str) -> None:
    if accumulate != ATOMIC or rest != "scalar":
        raise schedule_error(
            "vectorize.accumulate",
            f"Lanes cannot share elements by accumulate={accumulate!r} and rest={rest!r}.",
            hint="Expected accumulate='atomic' alone.",
        )


def _in_turn(module: Module, loop: str, accumulate: str, *, function: str | None) -> Result:
    """Computes the terms of a sum in lanes, which are added one after another."""
    require_stage(module, "vectorize", stages=("loop",))
    root = find_function(module, "vectorize", function=function)
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    _require_innermost(cursor)
    _require_lanes(cursor)
    found = require_sum(cursor)

    made, names = terms_in_lanes(found)

    taken = step(loop=loop, accumulate=accumulate, function=function)
    return Result(root.with_function(made).module, names, Step("vectorize", taken))


def in_vectors(
    module: Module,
    loop: str,
    rest: str,
    *,
    function: str | None,
    op: str,
    require: Requirement,
) -> Result:
    """What `vectorize` and `unsafe_vectorize` do, which require different things of a spatial loop."""
    require_stage(module, op, stages=LOOP_STAGES)
    root = find_function(module, op, function=function)
    cursor = find_loop(root, loop=loop)

    require_serial(cursor)
    _require_rest(rest)
    _require_innermost(cursor)
    _require_lanes(cursor)
    is_reduction = is_reduction_loop(cursor) or is_adding_up(cursor)
    if is_reduction:
        require_reducers(cursor)
    else:
        require(cursor)

    body = reassociating(cursor.node.body) if is_reduction else cursor.node.body
    vector_loop = replace(cursor.node, kind="vectorized", body=body)
    if rest != "scalar":
        vector_loop = replace(vector_loop, annotations=(*vector_loop.annotations, ("rest", rest)))

    rewritten = cursor.replaced_by((vector_loop,)).module

    taken = step(loop=loop, rest=None if rest == "scalar" else rest, function=function)
    return Result(rewritten, (loop,), Step(op, taken))


def _require_rest(rest: str) -> None:
    if rest not in ("scalar", "masked"):
        raise schedule_error(
            "vectorize.rest",
            f"The rest of a reduction is '{rest}'.",
            hint="Expected 'scalar' or 'masked'.",
        )


def _require_innermost(cursor: Cursor) -> None:
    for found in statements(cursor.node.body):
        if isinstance(found, For):
            raise schedule_error(
                "vectorize.innermost",
                f"Loop '{cursor.node.var}' is not innermost: it holds loop '{found.var}'.",
                hint=f"Reorder '{cursor.node.var}' to the inside, or vectorize '{found.var}'.",
                place=cursor.place,
            )


def _require_lanes(cursor: Cursor) -> None:
    count, atoms = factored(affine_of(cursor.node.extent))
    if atoms not in ((), (VScale(),)) or not 1 <= count <= MAX_LANES:
        raise schedule_error(
            "vectorize.extent",
            f"The extent of loop '{cursor.node.var}' is neither a constant from 1 to {MAX_LANES} nor "
            "such a multiple of vscale.",
            hint="Split it by a constant factor and vectorize the inner loop.",
            place=cursor.place,
        )
