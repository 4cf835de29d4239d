"""`horizontal_fuse`: join parallel loops, one after the other, into one parallel loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations

from msgspec.structs import replace

from gossamer_ir.analysis.atomic_accumulation import ATOMIC, mark_of
from gossamer_ir.analysis.init_nests import reduction_loops
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import ZERO, add, index_var, integer_value, sub
from gossamer_ir.nodes import AnnotationValue, Binary, Compare, Expr, For, If, Stmt
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_schedule.cursor.access import values_at
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.cursor.function_point import point_in_function
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_zero_start
from gossamer_schedule.cursor.resolve import find_loop
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.made_names import joint_name
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.independent_loops import atomic_buffers, require_independent
from gossamer_schedule.legality.loop_invariance import require_unchanged
from gossamer_schedule.nests.init_checks import blocks_with_init, reinitializing_loops

MAX_ITERATIONS = 2**63 - 1
"""The largest trip count of a loop, whose variable is an int64."""


@primitive(stages=LOOP_STAGES)
def horizontal_fuse(root: Cursor, *loops: str, function: str | None = None) -> Change:
    """Join parallel loops, which follow each other, into one parallel loop `<first>_joint`.

    The joint loop runs over the sum of their extents, which may be symbolic. Each of its iterations is one of
    one of the loops, so that one launch distributes the iterations of all of them. Its weight is the sum of
    the weights of the loops; an iteration of a loop without one weighs 1. Its grain is the largest. Loops
    around one of them that have a single iteration are removed. The result's name is that of the joint loop.

    Iterations of different loops run at once, so none may access an element that one of another loop writes,
    unless both accumulate it atomically. Elements that index arrays select are different where these are
    declared `disjoint`.

    Raises `ScheduleError` with a code `schedule.horizontal_fuse.*`:

    * `.loops`: fewer than two loops, or one twice
    * `.kind`: a loop is not parallel
    * `.start`: a loop does not start at 0
    * `.not_adjacent`: other statements are between the loops, or around one of them
    * `.annotations`: a loop has other annotations than `atomic`
    * `.init`: the init of a block runs before a loop
    * `.race`: iterations of two loops access one element, and one writes it
    * `.not_proved`: they may; or an extent may be negative or be changed by another loop

    >>> from gossamer_ir.script import parse_module
    >>> from gossamer_testkit.show import body_text
    >>> module = parse_module('''
    ... @T.prim_func
    ... def f(x: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    ...     T.func_attr({"sparse_tir_level": 0})
    ...     X = T.match_buffer(x, (m,), "float32")
    ...     Y = T.match_buffer(y, (n,), "float32")
    ...     for i in T.parallel(m, grain=64):
    ...         X[i] = 1.0
    ...     for j in T.parallel(n, weight=2 * j):
    ...         Y[j] = 2.0
    ... ''')
    >>> print(body_text(horizontal_fuse(module, "i", "j").module))
    for i_joint in T.parallel(m + n, weight=T.min(i_joint, m) + 2 * T.max(i_joint - m, 0), grain=64):
        if i_joint < m:
            X[i_joint] = 1.0
        else:
            Y[i_joint - m] = 2.0
    """
    cursors = [find_loop(root, loop=name) for name in loops]

    _require_parallel(cursors)
    nests = [_outermost(cursor) for cursor in cursors]
    _require_adjacent(nests)
    _require_extents(cursors)
    _require_inits_inside(cursors)
    for first, second in combinations(cursors, 2):
        require_independent(first, second)

    name = namer_of(root.function).fresh(joint_name(loops[0]))
    joint = _joint_loop(cursors, name)
    begin, statements = nests[0].index, nests[0].siblings
    body = (*statements[:begin], joint, *statements[begin + len(nests) :])

    return Change(_with_body(nests[0], body), (name,), dict.fromkeys(loops, (name,)))


def _require_parallel(cursors: Sequence[Cursor]) -> None:
    names = [cursor.node.var for cursor in cursors]
    if len(names) < 2 or len(set(names)) < len(names):
        raise schedule_error(
            "horizontal_fuse.loops",
            f"horizontal_fuse needs at least two different loops; they are {', '.join(names) or 'none'}.",
        )
    for cursor in cursors:
        loop: For = cursor.node
        if loop.kind != "parallel":
            raise schedule_error(
                "horizontal_fuse.kind",
                f"Loop '{loop.var}' is {loop.kind}, and horizontal_fuse joins parallel loops.",
                hint=f"Apply parallel to '{loop.var}' before.",
                place=cursor.place,
            )
        require_zero_start(cursor)
        if any(key != ATOMIC for key, _ in loop.annotations):
            raise schedule_error(
                "horizontal_fuse.annotations",
                f"Loop '{loop.var}' has annotations, which would hold for the iterations of all loops.",
                hint="Join the loops before they are annotated.",
                place=cursor.place,
            )


def _outermost(cursor: Cursor) -> Cursor:
    """Return the cursor at the outermost loop around a loop that contains only it and runs once."""
    while cursor.path:
        around = cursor.up(1)
        is_unit = isinstance(around.node, For) and (
            around.node.kind == "serial"
            and not around.node.annotations
            and integer_value(around.node.extent) == 1
        )
        if not is_unit or len(cursor.siblings) > 1:
            break
        cursor = around
    return cursor


def _unit_loops(cursor: Cursor) -> list[For]:
    """Return the loops around a loop that contain only it and run once, outermost first."""
    nest = _outermost(cursor)
    return [parent for parent, _, _ in cursor.path[len(nest.path) :]]


def _unit_values(cursor: Cursor) -> dict[str, Expr]:
    """Return the values of the variables of these loops."""
    return {outer.var: outer.start for outer in _unit_loops(cursor)}


def _without_units(expr: Expr, cursor: Cursor) -> Expr:
    """Return an expression at a loop where the loops around it that run once are removed."""
    values = _unit_values(cursor)
    found: Expr = simplify(substitute(expr, values)) if values else expr
    return found


def _require_adjacent(nests: Sequence[Cursor]) -> None:
    """Refuse loops that are not statements of one body, one directly after the other."""
    first = nests[0]
    for number, nest in enumerate(nests):
        is_same = len(nest.path) == len(first.path) and all(
            one[0] is other[0] and one[1] == other[1]
            for one, other in zip(nest.path, first.path, strict=True)
        )
        if not is_same or nest.index != first.index + number:
            raise schedule_error(
                "horizontal_fuse.not_adjacent",
                f"Loop '{nest.node.var}' does not directly follow the loop before it.",
                hint="Name all parallel loops of one body in their order.",
                place=nest.place,
            )


def _require_extents(cursors: Sequence[Cursor]) -> None:
    """Refuse extents that may be negative or change, and sums of them that may not fit: the joint loop begins
    with the sum of all extents."""
    point = point_in_function(cursors[0].function)
    for outer in _outermost(cursors[0]).loops:
        point.assume_loop(outer)
    extents = [_without_units(cursor.node.extent, cursor) for cursor in cursors]
    for cursor, extent in zip(cursors, extents, strict=True):
        if not point.proves(Compare("ge", extent, ZERO)):
            raise schedule_error(
                "horizontal_fuse.not_proved",
                f"Cannot prove that the extent of loop '{cursor.node.var}' is not negative.",
                needs=f"{text_of(extent)} >= 0",
                place=cursor.place,
            )
        loops = [other.node for other in cursors]
        sizes = [size for loop in loops for size in (loop.extent, loop.weight, loop.grain) if size]
        require_unchanged(cursor.node, sizes, at=cursor, what="the extent, weight or grain")
    # Constants are added when the sum is built, where it would wrap.
    known = sum(integer_value(extent) or 0 for extent in extents)
    if known > MAX_ITERATIONS or not point.is_exact(reduce(add, extents)):
        raise schedule_error(
            "horizontal_fuse.not_proved",
            "Cannot prove that the number of iterations of the joint loop fits int64.",
            needs=f"{text_of(reduce(add, extents))} <= {MAX_ITERATIONS}",
            hint="The sizes of arrays are known to fit.",
            place=cursors[0].place,
        )


def _require_inits_inside(cursors: Sequence[Cursor]) -> None:
    """Refuse a loop before which the init of a block runs: its iterations initialize shared elements."""
    for cursor in cursors:
        loops = {loop.var for loop in (*_unit_loops(cursor), cursor.node)}
        for block in blocks_with_init(cursor):
            reducing = reduction_loops(block.node, values_at(block))
            if reducing & loops or reinitializing_loops(block, loops):
                raise schedule_error(
                    "horizontal_fuse.init",
                    f"The init of block '{block.node.name}' runs before loop '{cursor.node.var}'.",
                    hint="Apply decompose_reduction before.",
                    place=block.place,
                )


def _joint_loop(cursors: Sequence[Cursor], name: str) -> For:
    """Return the loop whose iterations are those of all loops, in their order."""
    offset: Expr = ZERO
    weights: list[Expr] = []
    bodies: list[tuple[Expr, tuple[Stmt, ...]]] = []
    joint = index_var(name)
    for position, cursor in enumerate(cursors):
        loop: For = cursor.node
        extent = _without_units(loop.extent, cursor)
        end = add(offset, extent)
        units = _unit_values(cursor)
        values = {**units, loop.var: sub(joint, offset)}
        # The last loop needs no upper bound, the first none below.
        done = sub(joint, offset) if position == 0 else Binary("max", sub(joint, offset), ZERO)
        if position < len(cursors) - 1:
            done = Binary("min", done, extent)
        weights.append(substitute(loop.weight or index_var(loop.var), {**units, loop.var: done}))
        bodies.append((Compare("lt", joint, end), substitute_body(loop.body, values)))
        offset = end
    *conditional, (_, body) = bodies
    for condition, earlier in reversed(conditional):
        body = (If(condition, earlier, body),)
    loops = [cursor.node for cursor in cursors]
    is_weighted = any(loop.weight is not None for loop in loops)
    return For(
        name,
        ZERO,
        offset,
        body,
        kind="parallel",
        annotations=_annotations(loops),
        weight=reduce(add, weights) if is_weighted else None,
        grain=_largest_grain(loops),
    )


def _largest_grain(loops: Sequence[For]) -> Expr | None:
    grains = [loop.grain for loop in loops if loop.grain is not None]
    return reduce(_larger, grains) if grains else None


def _larger(one: Expr, other: Expr) -> Expr:
    numbers = integer_value(one), integer_value(other)
    if numbers[0] is not None and numbers[1] is not None:
        return one if numbers[0] >= numbers[1] else other
    return Binary("max", one, other)


def _annotations(loops: Sequence[For]) -> tuple[tuple[str, AnnotationValue], ...]:
    """Return the annotation of the joint loop: the buffers that one of the loops accumulates atomically."""
    names = sorted({name for loop in loops for name in atomic_buffers(loop)})
    return (mark_of(names),) if names else ()


def _with_body(nest: Cursor, body: tuple[Stmt, ...]) -> Cursor:
    """Return the cursor at the function in which the body that contains a statement is another one."""
    parent, name, _ = nest.path[-1]
    changed = replace(parent, **{name: body})
    around = nest.up(1)
    return around.with_function(changed) if not around.path else around.replaced_by((changed,))
