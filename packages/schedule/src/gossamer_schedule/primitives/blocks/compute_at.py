"""`compute_at`: a block moves into the loop that uses what it makes."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec.structs import replace

from gossamer_ir.analysis.accesses import parts_of
from gossamer_ir.analysis.init_nests import reduction_loops
from gossamer_ir.analysis.invariants import changed_in
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Allocate, Block, Buffer, For, Function, Load, Module, Stmt
from gossamer_ir.traversal.effects import all_buffers, buffers_written, outer_writes
from gossamer_ir.traversal.walk import rewrite_body, walk
from gossamer_schedule.cursor.allocations import require_allocated
from gossamer_schedule.cursor.cursor import Cursor, replaced, statements
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_block,
    find_buffer,
    find_function,
    find_loop,
    require_stage,
)
from gossamer_schedule.dependence.access import mentioned, named, values_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.motion.kept_values import require_made_again
from gossamer_schedule.motion.move_block import (
    is_recurrence,
    meeting,
    moved,
    nest_beside,
    path_between,
    position,
    require_own_loops,
    require_plain_loops,
)
from gossamer_schedule.nests.init_places import blocks_with_init
from gossamer_schedule.regions.required import consumed_parts
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "compute_at"


@primitive
def compute_at(module: Module, block: str, *, loop: str, function: str | None = None) -> Result:
    """Moves a block to the beginning of a loop's body, restricted to what one iteration of the loop uses of
    what it makes.

    The block stands in loops of its own before the nest of `loop`, each iterator being one of them,
    and makes a buffer of the function that nothing outside of `loop` uses. A loop of the moved block
    runs over the part that one iteration reads, where that is known, and keeps its name; a loop with
    one iteration disappears; others, such as those of a reduction, run as before. Each iteration
    makes what it reads itself, so an ordinary buffer is then allocated in the loop. The result's names
    are those of the remaining loops.

    Raises `ScheduleError`: `schedule.compute_at.updates` (the block changes elements that were given a
    value elsewhere), `.parameter` (it writes a parameter), `.kind` (the loop or one around it is
    neither serial nor unrolled), `.binding` (its iterators are not its loops, over all of their
    domains), `.scope` (it does not stand before the loop's nest), `.other_access` (what it makes is
    used outside of the loop or by an `init`, something on the way writes what it reads, or several
    iterations change one element that it makes), `.not_proved` (an element that is read may be left from an
    earlier iteration of a loop around both), `.no_block`, `.no_loop`, `.no_function`, `.stage`.

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
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    cursor = find_block(root, block=block)
    target = find_loop(root, loop=loop)

    made = _require_repeatable(cursor)
    require_plain_loops(target)
    own = require_own_loops(cursor)
    top = _require_before(cursor, target, own=own)
    _require_private(cursor, target, own=own, made=made)
    _require_free_way(cursor, top, own=own)
    _require_own_updates(cursor, top, target, made=made)
    require_made_again(cursor, own, target, made=made)
    parts = consumed_parts(cursor, own, target, changing=buffers_written((top.node,)))

    nest, names = moved(cursor, own, parts)
    buffers = [found for found in all_buffers(root.function) if found.name in made]
    private = [found for found in buffers if isinstance(found, Buffer)]
    _require_lasting_sizes(private, root.function)
    bare = _without_allocations(replaced(cursor.up(len(own)), ()), private)
    inside = find_loop(root.with_function(bare), loop=loop)
    body = (*map(Allocate, private), nest, *inside.node.body)
    rewritten = inside.replaced_by((replace(inside.node, body=body),)).module

    taken = step(block=block, loop=loop, function=function)
    return Result(rewritten, names, Step(_NAME, taken))


def _require_repeatable(cursor: Cursor) -> frozenset[str]:
    """The buffers that the block makes; making their elements again must give the same."""
    block: Block = cursor.node
    made = outer_writes((block,))
    is_reading = any(
        isinstance(found, Load) and found.buffer in made
        for stmt in block.body
        for found in walk(stmt)
    )
    has_reduction = any(found.kind == "R" for found in block.iters)
    if is_recurrence(block) or ((is_reading or has_reduction) and not block.init):
        raise schedule_error(
            f"{_NAME}.updates",
            f"Block '{block.name}' changes elements that have a value already, which cannot be done "
            "again.",
            place=cursor.place,
        )
    for name in made:
        require_allocated(find_buffer(cursor.top, buffer=name), cursor)
    return made


def _require_before(cursor: Cursor, target: Cursor, *, own: Sequence[For]) -> Cursor:
    """The cursor at the nest around the target, which must stand behind the block's."""
    moving = cursor.up(len(own))
    top = nest_beside(target, moving)
    if top is None or position(top) <= position(moving):
        raise schedule_error(
            f"{_NAME}.scope",
            f"Block '{cursor.node.name}' does not stand before the loop nest of loop "
            f"'{target.node.var}'.",
            place=cursor.place,
        )
    return top


def _require_private(cursor: Cursor, target: Cursor, *, own: Sequence[For], made: Set[str]) -> None:
    """Nothing but the block and the body of the target loop may use what the block makes, and there no
    init, which may run before that body."""
    emptied = target.replaced_by((replace(target.node, body=()),))
    block = find_block(emptied, block=cursor.node.name)
    used = named(replaced(block.up(len(own)), ()).body)
    for found in statements(target.node.body):
        if isinstance(found, Block):
            used |= named(found.init)
    for inner in blocks_with_init(target):
        used |= _asked_before(inner, target)
    if used & made:
        raise schedule_error(
            f"{_NAME}.other_access",
            f"What block '{cursor.node.name}' makes, {', '.join(sorted(used & made))}, is not only used in "
            f"the body of loop '{target.node.var}' behind its inits.",
        )


def _asked_before(cursor: Cursor, target: Cursor) -> set[str]:
    """The buffers that tell where the init of a block in a loop runs, where that is before the loop."""
    around = {loop.var for loop in (*target.scope, target.node)}
    if around.isdisjoint(reduction_loops(cursor.node, values_at(cursor))):
        return set()
    between = cursor.parents[len(target.path) + 1 :]
    return mentioned(part for parent in (*between, cursor.node) for part in parts_of(parent))


def _require_free_way(cursor: Cursor, top: Cursor, *, own: Sequence[For]) -> None:
    """Nothing between the block and where it moves may write what it reads."""
    moving = cursor.up(len(own))
    reads = mentioned((moving.node,)) - outer_writes((cursor.node,))
    passed = top.siblings[position(moving) + 1 : position(top) + 1]
    if reads & outer_writes(passed):
        raise schedule_error(
            f"{_NAME}.other_access",
            f"Block '{cursor.node.name}' cannot move past what writes "
            f"{', '.join(sorted(reads & outer_writes(passed)))}, which it reads.",
        )


def _require_own_updates(cursor: Cursor, top: Cursor, target: Cursor, *, made: Set[str]) -> None:
    """Where the body of the loop changes what the block makes, each iteration changes elements of its own:
    the block makes all that an iteration uses once more."""
    met = meeting(top, path_between(target, top), buffers=made & outer_writes((top.node,)))
    if met:
        raise schedule_error(
            f"{_NAME}.other_access",
            f"Loop '{target.node.var}' changes '{met}', which block '{cursor.node.name}' makes, and another "
            "iteration may use the same element.",
        )


def _require_lasting_sizes(private: Sequence[Buffer], owner: Function) -> None:
    """A buffer is allocated later than before, where its size must be the same."""
    for found in private:
        if changed := changed_in(owner.body, *found.shape, function=owner):
            raise schedule_error(
                f"{_NAME}.other_access",
                f"The size of '{found.name}' depends on {', '.join(sorted(changed))}, which the function "
                "writes.",
            )


def _without_allocations(function: Function, buffers: Sequence[Buffer]) -> Function:
    def dropped(node: Stmt) -> tuple[Stmt, ...] | None:
        return () if isinstance(node, Allocate) and node.buffer in buffers else None

    kept = tuple(found for found in function.buffers if found not in buffers)
    return replace(function, buffers=kept, body=rewrite_body(function.body, dropped))
