"""`reorder`: permute the loops of a nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from gossamer_ir.nodes import For, Function, Stmt
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.requirements import LOOP_STAGES
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.motion.exchange import required_exchange
from gossamer_schedule.reductions.reassociation import with_reassociation_marks


@primitive(stages=LOOP_STAGES)
def reorder(root: Cursor[Function], *loops: str, function: str | None = None) -> Change:
    """Reorder loops of one nest; its other loops keep their positions.

    `loops` are the loops in their new order, outermost first. The nest contains nothing but loops between
    the outermost and the innermost of them. If the order in which a reduction combines its terms changes,
    its block is annotated `reassociates`. The result's names are those of the loops.

    Raises `ScheduleError` with a code `schedule.reorder.*`:

    * `.loops`: fewer than two, or one twice
    * `.not_nested`: not in one nest, or the nest contains other statements
    * `.kind`: a loop is neither serial nor unrolled
    * `.dependence`: the bounds of a loop depend on one that would be inside
    * `.not_proved`: iterations may not be exchanged, or an init may not run as before

    >>> from gossamer_testkit.examples import MATMUL
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(MATMUL))
    for i in T.serial(m):
        for j in T.serial(n):
            for l in T.serial(k):
                with T.block("matmul"):
                    vi, vj, vl = T.axis.remap("SRS", [i, j, l])
                    with T.init():
                        C[vi, vl] = 0.0
                    C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
    >>> print(body_text(reorder(MATMUL, "l", "i").module))
    for l in T.serial(k):
        for j in T.serial(n):
            for i in T.serial(m):
                with T.block("matmul"):
                    vi, vj, vl = T.axis.remap("SRS", [i, j, l])
                    with T.init():
                        C[vi, vl] = 0.0
                    C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
    """
    return reorder_loops(root, loops, require=_required_exchanged_body)


ReorderCheck: TypeAlias = Callable[[Cursor[For], Sequence[For], Sequence[For]], tuple[Stmt, ...]]
"""Returns the body of a nest for a new order, with blocks that it reassociates annotated, or refuses.

The arguments are the cursor at the outermost loop, the loops in the old order and in the new one."""


def reorder_loops(
    root: Cursor[Function], loops: tuple[str, ...], *, require: ReorderCheck
) -> Change:
    """Reorder loops, if `require` allows the exchange of their iterations."""
    cursors = [find_loop(root, loop=name) for name in loops]

    _require_distinct(loops)
    chain = _required_nest(cursors)
    moved = _permuted_loops(chain, loops)
    _require_kinds(chain, moved)
    _require_bounds(moved)
    top = min(cursors, key=lambda cursor: len(cursor.path))
    body = require(top, chain, moved)

    nest = _nest_of(moved, body)

    return Change(top.replace_with((nest,)), loops)


def _require_distinct(loops: Sequence[str]) -> None:
    """Refuse a single loop or a repeated one, which gives no other order."""
    if len(loops) < 2 or len(set(loops)) != len(loops):
        raise schedule_error(
            "reorder.loops",
            f"reorder needs two or more different loops, not '{', '.join(loops)}'.",
        )


def _required_nest(cursors: Sequence[Cursor[For]]) -> tuple[For, ...]:
    """Return the loops of a nest from the outermost to the innermost of those at the cursors."""
    # The innermost of the loops: the nest above it must contain all others.
    bottom = max(cursors, key=lambda cursor: len(cursor.path))
    chain = (*bottom.nest, bottom.node)
    depths = {loop.var: depth for depth, loop in enumerate(chain)}
    missing = [cursor for cursor in cursors if cursor.node.var not in depths]
    if missing:
        names = ", ".join(depths)
        raise schedule_error(
            "reorder.not_nested",
            f"Loop '{missing[0].node.var}' and loop '{bottom.node.var}' are not in one nest.",
            hint=f"The loops of the nest of '{bottom.node.var}' are {names}.",
            place=missing[0].place,
        )
    first = min(depths[cursor.node.var] for cursor in cursors)
    for outer, inner in zip(chain[first:], chain[first + 1 :], strict=False):
        if len(outer.body) != 1:
            raise schedule_error(
                "reorder.not_nested",
                f"Loop '{outer.var}' contains other statements besides loop '{inner.var}'.",
                place=bottom.place,
            )
    return chain[first:]


def _permuted_loops(chain: Sequence[For], loops: Sequence[str]) -> tuple[For, ...]:
    by_name = {loop.var: loop for loop in chain}
    order = iter(loops)
    # Loops that are not named keep their positions.
    return tuple(by_name[next(order)] if loop.var in loops else loop for loop in chain)


def _require_kinds(chain: Sequence[For], moved: Sequence[For]) -> None:
    """Refuse to move a loop of another kind: that a vectorized loop is innermost, or a parallel one without
    races, was proved at its old position."""
    for old, new in zip(chain, moved, strict=True):
        if new is not old and new.kind not in ("serial", "unrolled"):
            raise schedule_error(
                "reorder.kind",
                f"Loop '{new.var}' is {new.kind}, and reorder moves serial and unrolled loops.",
                hint=f"Reorder before '{new.var}' is made {new.kind}.",
            )


def _require_bounds(moved: Sequence[For]) -> None:
    """Refuse an order in which the bounds of a loop use the variable of a loop inside it."""
    for depth, loop in enumerate(moved):
        used = free_vars(loop.start) | free_vars(loop.extent)
        for inner in moved[depth:]:
            if inner.var in used:
                raise schedule_error(
                    "reorder.dependence",
                    f"The extent of loop '{loop.var}' depends on '{inner.var}', which must stay "
                    "outside of it.",
                )


def _required_exchanged_body(
    top: Cursor[For], chain: Sequence[For], moved: Sequence[For]
) -> tuple[Stmt, ...]:
    """Return the body, with reassociated blocks annotated; refuse an order in which an iteration may read an
    element before it is written, or after it is overwritten."""
    return with_reassociation_marks(chain[-1].body, required_exchange(top, chain, moved))


def _nest_of(loops: Sequence[For], body: tuple[Stmt, ...]) -> For:
    for loop in reversed(loops[1:]):
        body = (replace(loop, body=body),)
    return replace(loops[0], body=body)
