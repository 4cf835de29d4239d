"""`vectorize`: execute the iterations of an innermost loop as lanes of vectors."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec.structs import replace

from gossamer_ir.arith.affine import ONE_FORM, Affine, affine_of, factor_affine, times
from gossamer_ir.core.annotations import REMAINDER
from gossamer_ir.core.dtypes import vscale_factor
from gossamer_ir.nodes import Block, For, Function, VScale
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import (
    LOOP_STAGES,
    require_scheduled_stage,
    require_serial,
    require_zero_start,
)
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.definition.unsafe_mark import Requirement
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.races import require_no_race
from gossamer_schedule.primitives.loops.split import split_by
from gossamer_schedule.reductions.reduction_loops import (
    is_accumulation_loop,
    is_reduction_loop,
    required_concurrent_body,
)
from gossamer_schedule.safe_accesses.expression_arguments import expr_of_text

Remainder: TypeAlias = Literal["masked", "scalar"]
"""The ways to run the terms of a reduction that do not fill a vector."""
MAX_LANES = 1024
"""The largest number of lanes of a vector, or of multiples of vscale."""
NATIVE_LANES = "native"
"""The argument for lanes that follow from the target."""


@primitive(stages=LOOP_STAGES)
def vectorize(
    root: Cursor[Function],
    loop: str,
    *,
    lanes: int | str | None = None,
    remainder: Remainder = "scalar",
    accumulate: Literal["atomic"] | None = None,
    function: str | None = None,
) -> Change:
    """Mark an innermost serial loop as vectorized: its iterations become the lanes of vectors.

    The extent is a constant from 1 to 1024, or such a multiple of `T.vscale()`. With `lanes`, a number or a
    text such as "4 * T.vscale()", a loop of any extent that starts at 0 is first split by it into
    `<loop>_0` and `<loop>_1`, and the latter is vectorized. "native" stands for scalable vectors that fill a
    register with the widest elements that the loop stores; a target without them replaces vscale by the
    constant for its registers. The loop is one of these:

    * Spatial: lanes store to different elements. Accesses to consecutive elements of the last dimension
      become vector loads and stores; others become gathers and scatters.
    * A reduction: the loop contains only reductions, such as `X[i] = X[i] + value`, into elements that it
      does not select. Each lane accumulates its own terms and the lanes are combined afterward, so the
      blocks are annotated `reassociates`. `remainder` says how the terms that do not fill a vector are added:
      one by one ("scalar", faster if lengths repeat) or as one masked vector ("masked", faster if not).
    * With `accumulate="atomic"`, at the loop stage, one reduction `X[...] = X[...] op value` without an
      init into elements that lanes may share. Lanes compute the terms into a buffer, in block
      `<block>_terms`; loop `<loop>_turn` then combines them one by one in their order, so that results
      do not change.

    The result's name is that of the loop; with `accumulate`, the names of `<loop>_turn`, the buffer and
    block `<block>_terms` follow. With `lanes`, the name of `<loop>_0` comes first.

    Raises `ScheduleError` with a code `schedule.vectorize.*`:

    * `.remainder`: neither "scalar" nor "masked"
    * `.innermost`: the loop contains another loop
    * `.extent`: not a constant or a multiple of T.vscale(), or too large
    * `.lanes`: not "native", a number from 2 to 1024 or such a multiple of T.vscale()
    * `.text`: `lanes` is not an expression
    * `.start`: with `lanes`, the loop does not start at 0
    * `.race`: lanes write the same element
    * `.not_proved`: lanes may write the same element, or lanes of a reduction different ones; with `lanes`,
      the extent may change while the loop runs
    * `.not_reducer`: a block of a reduction loop is not a reduction
    * `.accumulate`: not "atomic", or with `remainder`
    * `.no_reduction`: the loop contains more than one reduction

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
    >>> print(body_text(vectorize(SCALE, "i", lanes="native").module))
    for i_0 in T.serial((n + (4 * T.vscale() - 1)) // (4 * T.vscale())):
        for i_1 in T.vectorized(4 * T.vscale()):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * (4 * T.vscale()) + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    """
    if accumulate is not None:
        _require_no_remainder(remainder)
    if lanes is None:
        return _vectorize(root, loop, remainder=remainder, accumulate=accumulate)
    parts = _split_into_lanes(root, loop, lanes)
    outer, inner = parts.names
    change = _vectorize(parts.root, inner, remainder=remainder, accumulate=accumulate)

    return Change(change.root, (outer, *change.names), parts.forwards)


def _vectorize(
    root: Cursor[Function],
    loop_name: str,
    *,
    remainder: Remainder,
    accumulate: Literal["atomic"] | None,
) -> Change:
    if accumulate is not None:
        return _vectorize_terms(root, loop_name)
    return vectorize_loop(root, loop_name, remainder=remainder, require=require_no_race)


def _split_into_lanes(root: Cursor[Function], loop_name: str, lanes: int | str) -> Change:
    """Split a loop into a loop over vectors and one over their lanes."""
    cursor = find_loop(root, loop=loop_name)

    # Before the split, so that errors name the loop that the user named.
    require_serial(cursor)
    _require_innermost(cursor)
    require_zero_start(cursor)
    count = required_lanes(cursor, lanes)

    return split_by(cursor, (None, count))


def required_lanes(cursor: Cursor[For], lanes: int | str) -> Affine:
    """Return a number of lanes; refuse one that a vector cannot have."""
    if lanes == NATIVE_LANES:
        return times(Affine({}, _native_factor(cursor)), affine_of(VScale()))
    count = (
        Affine({}, lanes)
        if isinstance(lanes, int)
        else affine_of(expr_of_text(lanes, cursor, argument="lanes"))
    )
    if not _is_lane_count(count) or count == ONE_FORM:
        raise schedule_error(
            f"{cursor.primitive}.lanes",
            f"Loop '{cursor.node.var}' cannot have {lanes!r} lanes.",
            hint=f"Expected '{NATIVE_LANES}', a number from 2 to {MAX_LANES}, or such a multiple of "
            "T.vscale().",
            place=cursor.place,
        )
    return count


def _native_factor(cursor: Cursor[Block | For]) -> int:
    """Return the multiple of vscale that fills a register with the widest elements that a loop stores."""
    written = buffers_written(cursor.node.body)
    dtypes = (buffer.dtype for buffer in all_buffers(cursor.function) if buffer.name in written)
    return min(map(vscale_factor, dtypes), default=vscale_factor("int8"))


def _require_no_remainder(remainder: Remainder) -> None:
    """Refuse `remainder`: terms are combined one by one, so none of them is left over after the vectors."""
    if remainder != "scalar":
        raise schedule_error(
            "vectorize.accumulate",
            f"vectorize does not support accumulate='atomic' with remainder={remainder!r}.",
            hint="Expected accumulate='atomic' without remainder=.",
        )


def _vectorize_terms(root: Cursor[Function], loop_name: str) -> Change:
    """Compute the terms of a reduction in lanes, and combine them one by one."""
    # Imported late: no default schedule has terms in lanes.
    from gossamer_schedule.reductions.lane_terms import terms_in_lanes
    from gossamer_schedule.reductions.loop_reduction import required_loop_reduction

    require_scheduled_stage(root, ("loop",))
    cursor = find_loop(root, loop=loop_name)

    require_serial(cursor)
    _require_innermost(cursor)
    _require_lanes(cursor)
    reduction = required_loop_reduction(cursor)

    changed, names = terms_in_lanes(reduction)

    return Change(root.with_function(changed), names)


def vectorize_loop(
    root: Cursor[Function], loop_name: str, *, remainder: Remainder, require: Requirement
) -> Change:
    """Vectorize a loop; `require` checks a loop that is not a reduction."""
    cursor = find_loop(root, loop=loop_name)

    require_serial(cursor)
    _require_innermost(cursor)
    _require_lanes(cursor)
    # Iterations of a reduction meet at an element on purpose; other loops must prove that they do not.
    is_reduction = is_reduction_loop(cursor) or is_accumulation_loop(cursor)
    body = required_concurrent_body(cursor, is_reduction=is_reduction, require=require)

    vector_loop = replace(cursor.node, kind="vectorized", body=body)
    if remainder != "scalar":
        vector_loop = replace(
            vector_loop, annotations=(*vector_loop.annotations, (REMAINDER, remainder))
        )

    return Change(cursor.replace_with((vector_loop,)), (loop_name,))


def _require_innermost(cursor: Cursor[For]) -> None:
    """Refuse a loop around another one: all lanes execute a statement together, but each lane may need
    another number of iterations of the inner loop."""
    for stmt in addressable_stmts(cursor.node.body):
        if isinstance(stmt, For):
            raise schedule_error(
                "vectorize.innermost",
                f"Loop '{cursor.node.var}' is not innermost: it contains loop '{stmt.var}'.",
                hint=f"Reorder '{cursor.node.var}' to the inside, or vectorize '{stmt.var}'.",
                place=cursor.place,
            )


def _require_lanes(cursor: Cursor[For]) -> None:
    """Refuse an extent that is not the number of lanes of a vector type, which is fixed when code is
    generated."""
    if not _is_lane_count(affine_of(cursor.node.extent)):
        raise schedule_error(
            "vectorize.extent",
            f"The extent of loop '{cursor.node.var}' is {text_of(cursor.node.extent)}, neither a constant "
            f"from 1 to {MAX_LANES} nor such a multiple of T.vscale().",
            hint="Split it by a constant factor and vectorize the inner loop.",
            place=cursor.place,
        )


def _is_lane_count(count: Affine) -> bool:
    """Return whether a vector type may have this number of lanes."""
    number, factors = factor_affine(count)
    return factors in ((), (VScale(),)) and 1 <= number <= MAX_LANES
