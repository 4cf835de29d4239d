"""`compute_at`: move a producer block into a loop that reads its elements."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import reduction_loops
from gossamer_ir.analysis.invariants import changing_buffers
from gossamer_ir.core.statement_kinds import effects_of
from gossamer_ir.nodes import Allocate, Block, Buffer, For, Function, Stmt
from gossamer_ir.traversal.buffer_definitions import all_buffers, without_allocations
from gossamer_ir.traversal.buffer_uses import (
    buffers_accessed,
    buffers_named,
    buffers_written,
    outer_writes,
)
from gossamer_schedule.cursor.allocations import require_allocated
from gossamer_schedule.cursor.cursor_at import Cursor, addressable_stmts, function_with_replaced
from gossamer_schedule.cursor.find import find_block, find_buffer, find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import quote, schedule_error
from gossamer_schedule.motion.kept_values import require_recomputed
from gossamer_schedule.motion.move_block import (
    buffer_shared_by_iterations,
    moved_nest,
    path_between,
    require_plain_loops,
    required_nest_beside,
    required_own_loops,
    updates_old_values,
)
from gossamer_schedule.nests.init_checks import blocks_with_init
from gossamer_schedule.regions.required import required_region


@primitive(stages=LOOP_STAGES)
def compute_at(
    root: Cursor[Function], block: str, *, loop: str, function: str | None = None
) -> Change:
    """Move a producer block to the start of a loop's body, restricted to what one iteration reads.

    The block must be in loops of its own before the nest of `loop`, with one iterator bound to each of them.
    It writes buffers that the function allocates and that nothing outside `loop` uses. Each loop of the
    moved block runs over the region that one iteration of `loop` reads, if that region is known, and keeps
    its name. A loop with one iteration is removed; other loops, such as reduction loops, do not change.

    Since each iteration then computes the elements that it reads, dense buffers are allocated in the loop.
    The result's names are those of the remaining loops.

    Raises `ScheduleError` with a code `schedule.compute_at.*`:

    * `.updates`: the block updates elements that already have a value
    * `.parameter`: it writes a parameter
    * `.kind`: the loop or a loop around it is neither serial nor unrolled
    * `.binding`: its iterators are not bound one to one to its loops, over their whole domains
    * `.scope`: it is not before the loop's nest in the same body
    * `.other_access`: its buffer is used outside the loop or by an init, several iterations update one
      element, a statement in between writes what the block reads, or the size of the buffer may change
    * `.not_proved`: an element may be left from an earlier iteration of a loop around both

    >>> from gossamer_testkit.examples import GATHER
    >>> from gossamer_schedule.primitives.buffers.cache_read import cache_read
    >>> from gossamer_testkit.show import body_text
    >>> cached = cache_read(GATHER, "gather", buffer="X", scope="local").module
    >>> print(body_text(compute_at(cached, "gather_X_local", loop="i").module))
    for i in T.serial(n):
        X_local = T.alloc_buffer((m,), "float32", scope="local")
        with T.block("gather_X_local"):
            vi_c = T.axis.spatial(n, i)
            X_local[P[vi_c]] = X[P[vi_c]]
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X_local[P[vi]]
    """
    cursor = find_block(root, block=block)
    target = find_loop(root, loop=loop)

    produced = _required_products(cursor)
    require_plain_loops(target)
    # These move with the block; loops around both stay where they are.
    own_loops = required_own_loops(cursor)
    top = required_nest_beside(cursor, target, own_loops, side="before")
    _require_no_other_use(cursor, target, own_loops=own_loops, produced=produced)
    _require_no_write_between(cursor, top, own_loops=own_loops)
    _require_own_updates(cursor, top, target, produced=produced)
    require_recomputed(cursor, own_loops, target, produced=produced)
    # Ranges are evaluated in each iteration, so they may not read what the nest writes.
    ranges = required_region(cursor, own_loops, target, changing=buffers_written((top.node,)))

    nest, names = moved_nest(cursor, own_loops, ranges)
    buffers = [buffer for buffer in all_buffers(root.function) if buffer.name in produced]
    # Only dense buffers can be allocated by a statement; sparse ones stay with the function.
    private = [buffer for buffer in buffers if isinstance(buffer, Buffer)]
    _require_constant_sizes(private, root.function)
    without = _without_allocations(function_with_replaced(cursor.up(len(own_loops)), ()), private)
    # Found again: removing the old nest has changed the paths of the statements after it.
    inside = find_loop(root.with_function(without), loop=loop)
    body = (*map(Allocate, private), nest, *inside.node.body)
    return Change(inside.replace_with((replace(inside.node, body=body),)), names)


def _required_products(cursor: Cursor[Block]) -> frozenset[str]:
    """Return the buffers that the block writes, or refuse a block that does not compute them from scratch.

    Several iterations of the target loop may compute an element, so doing it again must have no effect.
    """
    block = cursor.node
    produced = outer_writes((block,))
    if updates_old_values(block):
        raise schedule_error(
            "compute_at.updates",
            f"Block '{block.name}' updates elements that already have a value, so it cannot be computed "
            "again in each iteration.",
            hint="compute_at moves a block that computes its elements from scratch, by an assignment or by "
            "a reduction with an init.",
            place=cursor.place,
        )
    for name in produced:
        require_allocated(find_buffer(cursor.top, buffer=name), cursor)
    return produced


def _require_no_other_use(
    cursor: Cursor[Block], target: Cursor[For], *, own_loops: Sequence[For], produced: Set[str]
) -> None:
    """Refuse uses of the buffers that the block writes, except by the block and the target loop's body.

    Inits in that body may not use them either, since an init may run before the target loop.
    """
    emptied = target.replace_with((replace(target.node, body=()),))
    block = find_block(emptied, block=cursor.node.name)
    used = buffers_named(*function_with_replaced(block.up(len(own_loops)), ()).body)
    for stmt in addressable_stmts(target.node.body):
        if isinstance(stmt, Block):
            used |= buffers_named(*stmt.init)
    for inner in blocks_with_init(target):
        # An init that runs before the loop would find the buffer not computed yet.
        used |= _buffers_read_before_loop(inner, target)
    if used & produced:
        raise schedule_error(
            "compute_at.other_access",
            f"There are uses of {quote(used & produced)}, which block '{cursor.node.name}' writes, outside "
            f"the body of loop '{target.node.var}' or in an init in it.",
            hint="Choose a loop that contains all uses of the buffer.",
        )


def _buffers_read_before_loop(cursor: Cursor[Block], target: Cursor[For]) -> frozenset[str]:
    """Return the buffers that determine where the init of a block runs, if it runs before the loop."""
    around = {loop.var for loop in (*target.loops_in_block, target.node)}
    # Only a block whose reduction contains the loop has its init before it.
    if around.isdisjoint(reduction_loops(cursor.node, values_at(cursor))):
        return frozenset()
    between = cursor.parents[len(target.path) + 1 :]
    return buffers_accessed(
        *(part for parent in (*between, cursor.node) for part in effects_of(parent).evaluates)
    )


def _require_no_write_between(
    cursor: Cursor[Block], top: Cursor[Stmt], *, own_loops: Sequence[For]
) -> None:
    """Refuse to move the block past a write of a buffer that it reads."""
    moving = cursor.up(len(own_loops))
    # The whole nest at `top` counts: the block now runs between its iterations.
    reads = buffers_accessed(moving.node) - outer_writes((cursor.node,))
    overwritten = reads & outer_writes((*moving.siblings_until(top), top.node))
    if overwritten:
        raise schedule_error(
            "compute_at.other_access",
            f"Block '{cursor.node.name}' cannot move past a write of {quote(overwritten)}, which it reads.",
        )


def _require_own_updates(
    cursor: Cursor[Block], top: Cursor[Stmt], target: Cursor[For], *, produced: Set[str]
) -> None:
    """Refuse a loop that updates elements of the block's buffers if another iteration may use the same ones.

    The block computes them again for that iteration, which would lose the update.
    """
    buffers = produced & outer_writes((top.node,))
    if shared := buffer_shared_by_iterations(top, path_between(target, top), buffers=buffers):
        raise schedule_error(
            "compute_at.other_access",
            f"Loop '{target.node.var}' updates '{shared}', which block '{cursor.node.name}' computes, and "
            "another iteration may use the same element.",
        )


def _require_constant_sizes(private: Sequence[Buffer], function: Function) -> None:
    """Refuse buffers whose size may change: they are allocated later than before."""
    for buffer in private:
        if changed := changing_buffers(function.body, *buffer.shape, function=function):
            raise schedule_error(
                "compute_at.other_access",
                f"The size of buffer '{buffer.name}' depends on {quote(changed)}, which the function "
                "writes.",
            )


def _without_allocations(function: Function, buffers: Sequence[Buffer]) -> Function:
    names = {buffer.name for buffer in buffers}
    kept = tuple(buffer for buffer in function.buffers if buffer not in buffers)
    return replace(function, buffers=kept, body=without_allocations(function.body, names))
