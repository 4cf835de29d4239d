"""`fuse`: combine a perfect loop nest into one loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from gossamer_ir.core.build import ZERO, floordiv, index_var, integer_value, product
from gossamer_ir.core.integers import MAX_INT64
from gossamer_ir.core.lowered_names import fused_name
from gossamer_ir.nodes import Binary, Compare, Expr, For, Function
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.program_points import point_in_function
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_serial, require_zero_start
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.loop_invariance import require_unchanged_bounds
from gossamer_schedule.nests.fused_inits import require_inits_of_fused


@primitive(stages=LOOP_STAGES)
def fuse(root: Cursor[Function], *loops: str, function: str | None = None) -> Change:
    """Fuse perfectly nested serial loops into one loop `<outer>_<inner>`.

    `loops` are two or more loops, from the outermost to the innermost. Each starts at 0, and all but the
    innermost contain only the next one. The fused loop runs over the product of their extents; quotients
    and remainders of its variable replace the old variables. The result's name is that of the fused loop.

    Raises `ScheduleError` with a code `schedule.fuse.*`:

    * `.loops`: fewer than two loops
    * `.not_nested`: a loop contains more than the next one
    * `.dependence`: the extent of a loop depends on another one
    * `.start`: a loop does not start at 0
    * `.not_proved`: an extent may be negative or may change, the number of iterations may not fit int64, or
      an init may not run as before

    >>> from gossamer_testkit.examples import MATMUL
    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_schedule.primitives.loops.reorder import reorder
    >>> before = reorder(MATMUL, "l", "j").module
    >>> print(body_text(before))
    for i in T.serial(m):
        for l in T.serial(k):
            for j in T.serial(n):
                with T.block("matmul"):
                    vi, vj, vl = T.axis.remap("SRS", [i, j, l])
                    with T.init():
                        C[vi, vl] = 0.0
                    C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
    >>> print(body_text(fuse(before, "i", "l").module))
    for i_l in T.serial(m * k):
        for j in T.serial(n):
            with T.block("matmul"):
                vi = T.axis.spatial(m, i_l // k)
                vj = T.axis.reduce(n, j)
                vl = T.axis.spatial(k, i_l % k)
                with T.init():
                    C[vi, vl] = 0.0
                C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
    """
    cursors = [find_loop(root, loop=name) for name in loops]

    _require_perfect_nest(cursors)
    for cursor in cursors:
        require_serial(cursor)
        require_zero_start(cursor)  # as do the quotients and remainders of the fused variable
    _require_independent(cursors)
    _require_iteration_count(cursors)
    # Last: it relies on independent extents and on their number of iterations.
    require_inits_of_fused(cursors)

    name = namer_of(root.function).fresh(fused_name(loops))
    fused = _fused_loop([cursor.node for cursor in cursors], name)

    forwards = dict.fromkeys(loops, (name,))
    return Change(cursors[0].replace_with((fused,)), (name,), forwards)


def _require_perfect_nest(cursors: Sequence[Cursor[For]]) -> None:
    """Refuse other statements between the loops: they would run in each iteration of the fused loop, not once
    for each iteration of the loop around them."""
    if len(cursors) < 2:
        raise schedule_error("fuse.loops", "fuse needs at least two loops.")
    for outer, inner in pairwise(cursors):
        if outer.node.body != (inner.node,):
            raise schedule_error(
                "fuse.not_nested",
                f"Loop '{outer.node.var}' does not contain loop '{inner.node.var}' and nothing else.",
                hint="Name the loops of a perfect nest from the outermost to the innermost.",
                place=outer.place,
            )


def _require_independent(cursors: Sequence[Cursor[For]]) -> None:
    """Refuse an extent that differs between iterations: the product of the extents would not be the number of
    iterations, nor quotients and remainders the old variables."""
    vars = {cursor.node.var for cursor in cursors}
    for cursor in cursors:
        if used := free_vars(cursor.node.extent) & vars:
            raise schedule_error(
                "fuse.dependence",
                f"The extent of loop '{cursor.node.var}' depends on loop '{min(used)}'.",
                hint="To fuse a varied axis with its parent, apply sparse_fuse at the coordinate stage.",
                place=cursor.place,
            )
    chain = [cursor.node for cursor in cursors]
    require_unchanged_bounds(chain, cursor=cursors[0])


def _require_iteration_count(cursors: Sequence[Cursor[For]]) -> None:
    """Refuse loops if the product of their extents may not be their number of iterations.

    The product of two negative extents, of loops that do not run, is positive; one that overflows may be
    any number.
    """
    point = point_in_function(cursors[0].function)
    # Extents may depend on the loops around the nest.
    for outer in cursors[0].loops:
        point.assume_loop(outer)
    extents = [cursor.node.extent for cursor in cursors]
    fits = point.overflow.product_bound(extents) <= MAX_INT64
    if not fits or not point.is_exact(*extents):
        raise schedule_error(
            "fuse.not_proved",
            "Cannot prove that the number of iterations of the fused loop fits int64.",
            needs=f"{text_of(product(extents))} <= {MAX_INT64}",
            hint="Products of the sizes of one array, or of a size and small constants, are known to fit.",
            place=cursors[0].place,
        )
    unknown = [
        cursor for cursor in cursors if not point.proves(Compare("ge", cursor.node.extent, ZERO))
    ]
    # One negative extent makes the product negative or 0, so the fused loop does not run either.
    if len(unknown) > 1:
        raise schedule_error(
            "fuse.not_proved",
            "Cannot prove that the fused loop has as many iterations as the nest: the extents of two "
            "loops may be negative.",
            needs=f"{text_of(unknown[-1].node.extent)} >= 0",
            place=unknown[-1].place,
        )


def _fused_loop(chain: Sequence[For], name: str) -> For:
    """Return the loop over the iterations of a nest, given outermost first."""
    # Where several loops have the same annotation, the value of the outermost one is kept.
    annotations = {key: value for loop in reversed(chain) for key, value in loop.annotations}
    return replace(
        chain[0],
        var=name,
        extent=product(loop.extent for loop in chain),
        body=substitute_body(chain[-1].body, _old_vars(chain, name)),
        annotations=tuple(annotations.items()),
    )


def _old_vars(chain: Sequence[For], name: str) -> dict[str, Expr]:
    """Return the values of the old variables: mixed-radix digits of the fused one."""
    values: dict[str, Expr] = {}
    quotient: Expr = index_var(name)
    for loop in reversed(chain[1:]):
        is_unit = integer_value(loop.extent) == 1
        values[loop.var] = ZERO if is_unit else Binary("floormod", quotient, loop.extent)
        quotient = floordiv(quotient, loop.extent)
    return values | {chain[0].var: quotient}
