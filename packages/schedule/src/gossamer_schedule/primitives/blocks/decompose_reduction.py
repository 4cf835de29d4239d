"""`decompose_reduction`: the `init` of a block becomes a block of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from msgspec.structs import replace

from gossamer_ir.analysis.init_nests import LoopOrCondition, reduction_loops
from gossamer_ir.analysis.loops import loops_within
from gossamer_ir.dependence.access_forms import AccessForm, access_forms
from gossamer_ir.dependence.disjointness import verdict
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Expr, For, Module
from gossamer_ir.traversal.effects import outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_schedule.cursor.cursor import Cursor, replaced
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_block,
    find_function,
    find_loop,
    require_stage,
)
from gossamer_schedule.dependence.access import mentioned, statements_beside, used_by, values_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.nests.block_nest import BlockNest, around
from gossamer_schedule.nests.init_nest import init_nest, require_init_nest
from gossamer_schedule.nests.init_places import blocks_with_init, meeting_loops, read_by_init
from gossamer_schedule.result import Result
from gossamer_schedule.staging.copies import require_outside
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "decompose_reduction"


@primitive
def decompose_reduction(
    module: Module, block: str, *, loop: str, function: str | None = None
) -> Result:
    """Moves the `init` of a block into block `<block>_init`, directly before a loop around it.

    The new block stands in loops `<loop>_init`, one for each loop from `loop` down to the block but for
    those that only feed reduction iterators which the init does not mention, and in the conditions between
    them that are not about these. Where a loop feeds both, or says how often one of the new loops runs,
    elements are initialised several times. The result's names are the block and those loops.

    Raises `ScheduleError`: `schedule.decompose_reduction.no_init`, `.not_enclosing` (the loop is not
    around the block, or something other than loops and conditions is between), `.too_deep` (a reduction
    loop is outside of it), `.inner` (a buffer of the init is allocated under the loop), `.dependence` (a
    let, or a domain that depends on the reduction), `.not_proved` (the element may be initialised too
    often, or is used elsewhere under the loop, or what the init reads is written there), `.no_block`,
    `.no_loop`, `.no_function`, `.stage`.

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
    >>> print(body_text(decompose_reduction(ROW_SUM, "row_sum", loop="j").module))
    for i in T.serial(m):
        with T.block("row_sum_init"):
            vi_init = T.axis.spatial(m, i)
            Y[vi_init] = 0.0
        for j in T.serial(indptr_data[i + 1] - indptr_data[i]):
            with T.block("row_sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                Y[vi] = Y[vi] + A[indptr_data[vi] + vj]
    """
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    cursor = find_block(root, block=block)
    top = find_loop(root, loop=loop)

    _require_init(cursor)
    nest = _require_enclosing(cursor, top)
    _require_outside_reduction(cursor, top)
    kept = require_init_nest(cursor, nest.around)
    asked = {name for found in kept for name in mentioned(_asked_by(found))}
    for name in sorted(mentioned(cursor.node.init) | asked):
        require_outside(nest, name)
    _require_one_init(nest, asked)

    inits, names = init_nest(cursor, kept, namer=namer_of(root.function))
    update = replace(cursor.node, init=())

    without = find_loop(cursor.replaced_by((update,)), loop=loop)
    changed = replaced(without, (*inits, without.node))
    rewritten = root.with_function(changed).module

    taken = step(block=block, loop=loop, function=function)
    return Result(rewritten, names, Step(_NAME, taken))


def _require_init(cursor: Cursor) -> None:
    if not cursor.node.init:
        raise schedule_error(
            f"{_NAME}.no_init",
            f"Block '{cursor.node.name}' has no init.",
            place=cursor.place,
        )


def _require_enclosing(cursor: Cursor, top: Cursor) -> BlockNest:
    """The loops and conditions from `top` down to the block."""
    found = around(cursor)
    if all(part is not top.node for part in found):
        names = ", ".join(part.var for part in found if isinstance(part, For))
        raise schedule_error(
            f"{_NAME}.not_enclosing",
            f"Loop '{top.node.var}' is not a loop around block '{cursor.node.name}'.",
            hint=f"The loops around it are {names}." if names else "There is none.",
            place=cursor.place,
        )
    return BlockNest(cursor, found[next(at for at, part in enumerate(found) if part is top.node) :])


def _require_outside_reduction(cursor: Cursor, top: Cursor) -> None:
    fed = reduction_loops(cursor.node, values_at(cursor))
    meeting = meeting_loops(cursor, {found.var for found in top.scope})
    for found in top.scope:
        if found.var in meeting:
            raise schedule_error(
                f"{_NAME}.not_proved",
                f"It is not proved that iterations of loop '{found.var}' initialise different elements, "
                f"and block '{cursor.node.name}' initialises each once.",
                needs=f"a different element in each iteration of {found.var}",
                hint=f"Decompose at '{found.var}' or a loop around it.",
            )
        if found.var in fed:
            raise schedule_error(
                f"{_NAME}.too_deep",
                f"Loop '{top.node.var}' is inside reduction loop '{found.var}' of block "
                f"'{cursor.node.name}'.",
                hint=f"Decompose at '{found.var}' or a loop around it.",
            )


def _require_one_init(nest: BlockNest, asked: set[str]) -> None:
    """Above the outermost reduction loop, each iteration must initialise elements of its own that
    nothing else under the loop uses, from what nothing there writes, nor what is `asked` for the init."""
    cursor, top = nest.block, nest.top
    fed = reduction_loops(cursor.node, values_at(cursor))
    between = [found.var for found in takewhile(lambda found: found.var not in fed, nest.loops)]
    if not between:
        _require_first(cursor, top)
        return
    buffers = outer_writes(cursor.node.init)
    values = values_at(cursor) | {item.var: item.value for item in cursor.node.iters}
    # The body, too: it may not read what the init of another iteration then has written before.
    parts = (*cursor.node.init, *cursor.node.body)
    touched = list(access_forms(parts, buffers, values=values, function=cursor.function))
    varying = loops_within((top.node,))
    is_once = all(
        verdict(name, _of(touched, buffer), varying=varying, function=cursor.function) == "disjoint"
        for name in between
        for buffer in buffers
    )
    is_given = (read_by_init(cursor) | asked).isdisjoint(outer_writes((top.node,)))
    elsewhere = {name for found in statements_beside(cursor, top) for name in used_by(found)}
    if not is_once or not is_given or buffers & elsewhere:
        raise schedule_error(
            f"{_NAME}.not_proved",
            f"It is not proved that the init of block '{cursor.node.name}' may run before loop "
            f"'{top.node.var}'.",
            needs=f"each element of {', '.join(sorted(buffers))} belongs to one iteration of the loops "
            f"from '{top.node.var}' on, nothing else there uses it, and nothing there writes what the init "
            "reads",
            hint="Decompose at the outermost reduction loop.",
        )


def _require_first(cursor: Cursor, top: Cursor) -> None:
    """The inits of blocks above, which run before the same loop, may not be seen by this one."""
    own = outer_writes(cursor.node.init)
    for other in takewhile(lambda found: found.node is not cursor.node, blocks_with_init(top)):
        theirs, asked = outer_writes(other.node.init), read_by_init(other)
        shared = theirs & (own | read_by_init(cursor)) | own & asked
        if shared and top.node.var in reduction_loops(other.node, values_at(other)):
            raise schedule_error(
                f"{_NAME}.not_proved",
                f"It is not proved that the init of block '{cursor.node.name}' may run before that of block "
                f"'{other.node.name}'.",
                needs=f"they use different elements of {', '.join(sorted(shared))}",
                hint=f"Decompose block '{other.node.name}' before.",
            )


def _of(found: Sequence[AccessForm], buffer: str) -> list[AccessForm]:
    return [access for access in found if access.buffer == buffer]


def _asked_by(found: LoopOrCondition) -> tuple[Expr, ...]:
    """The bounds of a loop, or a condition."""
    return (found.start, found.extent) if isinstance(found, For) else (found,)
