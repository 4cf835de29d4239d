"""`horizontal_fuse`: fuse concurrent loops, one after the other, into one loop, which is one launch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations, pairwise

import msgspec

from gossamer_ir.analysis.accesses.init_nests import reduction_loops
from gossamer_ir.analysis.proofs.bounded_reads import BoundedReads
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.analysis.statements.atomic_accumulation import atomic_annotation
from gossamer_ir.analysis.statements.thread_axes import is_block_axis
from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.annotations import ATOMIC
from gossamer_ir.core.build import ONE, ZERO, add, index_var, integer_value, sub
from gossamer_ir.core.integers import MAX_INT64
from gossamer_ir.core.operations import DIVISIONS
from gossamer_ir.errors import Place
from gossamer_ir.nodes import (
    AnnotationValue,
    Binary,
    Compare,
    Expr,
    For,
    Function,
    If,
    IfThenElse,
    Stmt,
)
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.substitute import substitute, substitute_body
from gossamer_ir.traversal.walk import collect, stmts
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_loop
from gossamer_schedule.cursor.program_points import point_in_function
from gossamer_schedule.cursor.requirements import LOOP_STAGES, require_zero_start
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.legality.independent_loops import jointly_atomic_buffers, require_independent
from gossamer_schedule.legality.loop_invariance import require_unchanged
from gossamer_schedule.made_names import horizontally_fused_name
from gossamer_schedule.nests.init_checks import blocks_with_init, reinitializing_loops


@primitive(stages=LOOP_STAGES)
def horizontal_fuse(root: Cursor[Function], *loops: str, function: str | None = None) -> Change:
    """Fuse loops that are all parallel, or all bound to one axis of blocks such as "blockIdx.x", and follow
    each other, into one such loop `<first>_fused`.

    The fused loop runs over the sum of their extents, which may be symbolic. Each of its iterations is an
    iteration of one of the loops, so that one launch distributes the iterations of all of them. Its
    weight is the sum of the weights of the loops; an iteration of a loop without one weighs 1. Its grain
    is the largest. Loops around one of them that have a single iteration are removed, and conditions
    around one of them are moved into it: its iterations do nothing where they do not hold. The result's
    name is that of the fused loop.

    Iterations of different loops run at once, so none may access an element that one of another loop writes,
    unless both accumulate it atomically. Elements that index arrays select are different where these are
    declared `disjoint`. Updates stay plain where they were: the fused loop is annotated `atomic` for a buffer
    only where a loop that it fuses is, and no annotated loop inside of that has all updates. Loops inside
    that are bound to one axis need the same extent, since all are in one kernel.

    Raises `ScheduleError` with a code `schedule.horizontal_fuse.*`:

    * `.loops`: fewer than two loops, or one twice
    * `.kind`: the loops are neither all parallel nor all bound to one axis of blocks
    * `.extent`: loops inside are bound to one axis and have different extents
    * `.start`: a loop does not start at 0
    * `.not_adjacent`: other statements are between the loops, or around one of them
    * `.annotations`: a loop has other annotations than `atomic`
    * `.init`: the init of a block runs before a loop
    * `.race`: iterations of two loops access one element, and one writes it
    * `.not_proved`: they may; or an extent may be negative or be changed by another loop, or may be undefined
      where a condition around its loop does not hold

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
    for i_fused in T.parallel(m + n, weight=T.min(i_fused, m) + 2 * T.max(i_fused - m, 0), grain=64):
        if i_fused < m:
            X[i_fused] = 1.0
        else:
            Y[i_fused - m] = 2.0
    """
    cursors = [find_loop(root, loop=name) for name in loops]

    _require_concurrent(cursors)
    nests = [_nest_of(cursor) for cursor in cursors]
    _require_adjacent(nests)
    _require_extents(nests)
    _require_inits_inside(nests)
    _require_one_launch(nests)
    for first, second in combinations(cursors, 2):
        require_independent(first, second)

    name = namer_of(root.function).fresh(horizontally_fused_name(loops[0]))
    changed = nests[0].top.replace_run(len(nests), (_fused_loop(nests, name),))

    return Change(changed, (name,), dict.fromkeys(loops, (name,)))


class _Nest(msgspec.Struct, frozen=True):
    """A loop to fuse, below the conditions around it, and the loops that run once, which contain only it.

    `units` are these loops, `conditions` the conditions, outermost first. `top` is at the first of all, or at
    the loop itself if there is none. The fused loop takes the place of `top`: each of `units` is replaced by
    the value that it starts at.
    """

    cursor: Cursor[For]
    top: Cursor[For]
    units: tuple[For, ...]
    conditions: tuple[Expr, ...]

    @property
    def loop(self) -> For:
        return self.cursor.node

    @property
    def values(self) -> dict[str, Expr]:
        """The values of the variables of the loops that run once."""
        values: dict[str, Expr] = {}
        for unit in self.units:
            # A loop may start at the variable of one around it.
            values[unit.var] = substitute(unit.start, values)
        return values

    @property
    def sizes(self) -> list[Expr]:
        """The extent, and the weight and the grain if there are any, as `extent` is."""
        others = (self.loop.weight, self.loop.grain)
        return [
            self.extent,
            *(substitute(size, self.values) for size in others if size is not None),
        ]

    @property
    def extent(self) -> Expr:
        """The extent of the loop, where the loops around it that run once are removed."""
        extent = self.loop.extent
        simplified: Expr = simplify(substitute(extent, self.values)) if self.units else extent
        return simplified


# Other statements: they stay around the loop.
def _nest_of(cursor: Cursor[For]) -> _Nest:
    top = cursor
    while top.path and len(top.body) == 1 and _is_removable(top.up(1).node):
        top = top.up(1)
    around = [step.parent for step in cursor.steps_from(top)]
    return _Nest(
        cursor,
        top,
        tuple(stmt for stmt in around if isinstance(stmt, For)),
        tuple(stmt.condition for stmt in around if isinstance(stmt, If)),
    )


def _is_removable(node: Function | Stmt) -> bool:
    """Return whether a statement around a loop is removed when the loop is fused."""
    if isinstance(node, If):
        return not node.else_body
    return _runs_once(node)


def _runs_once(node: Function | Stmt) -> bool:
    """Return whether a node is a plain loop with a single iteration."""
    if not isinstance(node, For) or node.kind != "serial" or node.annotations:
        return False
    return integer_value(node.extent) == 1


def _require_concurrent(cursors: Sequence[Cursor[For]]) -> None:
    names = [cursor.node.var for cursor in cursors]
    if len(names) < 2 or len(set(names)) < len(names):
        raise schedule_error(
            "horizontal_fuse.loops",
            f"horizontal_fuse needs at least two different loops; they are {', '.join(names) or 'none'}.",
        )
    for cursor in cursors:
        loop = cursor.node
        _require_kind_of(loop, cursors[0].node, place=cursor.place)
        require_zero_start(cursor)
        if any(key != ATOMIC for key, _ in loop.annotations):
            raise schedule_error(
                "horizontal_fuse.annotations",
                f"Loop '{loop.var}' has annotations, which would hold for the iterations of all loops.",
                hint="Fuse the loops before they are annotated.",
                place=cursor.place,
            )


def _require_kind_of(loop: For, first: For, *, place: Place) -> None:
    """Refuse a loop that does not run as the first one does: in parallel, or on an axis of blocks. Threads of
    a block are a constant number, which a sum of extents would exceed."""
    if loop.kind == "parallel" == first.kind:
        return
    is_of_blocks = is_block_axis(loop.thread)
    if not (is_of_blocks and loop.thread == first.thread):
        axis = "" if loop.thread is None else f" to '{loop.thread}'"
        raise schedule_error(
            "horizontal_fuse.kind",
            f"Loop '{loop.var}' is {loop.kind.replace('_', ' ')}{axis}, and horizontal_fuse fuses loops that "
            "are all parallel, or all bound to one axis of blocks.",
            hint="Apply parallel, or bind with thread='blockIdx.x', to each of them before.",
            place=place,
        )


def _require_one_launch(nests: Sequence[_Nest]) -> None:
    """Refuse loops inside that are bound to one axis and have different extents, or would be nested."""
    extents: dict[str, Expr] = {}
    for nest in nests:
        for inner in stmts(nest.loop.body):
            if not isinstance(inner, For) or inner.thread is None:
                continue
            extent = extents.setdefault(inner.thread, inner.extent)
            if extent != inner.extent:
                raise schedule_error(
                    "horizontal_fuse.extent",
                    f"Loop '{inner.var}' is bound to '{inner.thread}' with the extent "
                    f"{text_of(inner.extent)}, and another loop on that axis has {text_of(extent)}.",
                    hint="Split the loops so that each part has as many threads.",
                    place=nest.cursor.place,
                )


def _require_adjacent(nests: Sequence[_Nest]) -> None:
    """Refuse loops that are not statements of one body, one directly after the other."""
    for before, after in pairwise(nest.top for nest in nests):
        if not after.is_beside(before) or after.index != before.index + 1:
            raise schedule_error(
                "horizontal_fuse.not_adjacent",
                f"Loop '{after.node.var}' does not directly follow the loop before it.",
                hint="Name all such loops of one body in their order.",
                place=after.place,
            )


def _require_extents(nests: Sequence[_Nest]) -> None:
    """Refuse extents that may be negative or change, and sums of them that may not fit: the fused loop begins
    with the sum of all extents."""
    first = nests[0].cursor
    point = point_in_function(first.function)
    for outer in nests[0].top.loops:
        point.assume_loop(outer)
    parts = [part for nest in nests for part in (*nest.sizes, *nest.conditions)]
    for nest in nests:
        if nest.conditions:
            _require_defined(nest, point)
        if not point.proves(Compare("ge", nest.extent, ZERO)):
            raise schedule_error(
                "horizontal_fuse.not_proved",
                f"Cannot prove that the extent of loop '{nest.loop.var}' is not negative.",
                needs=f"{text_of(nest.extent)} >= 0",
                place=nest.cursor.place,
            )
        what = "the extent, weight, grain or condition"
        require_unchanged(nest.loop, parts, cursor=nest.cursor, what=what)
    # Constants are added when the sum is built, where it would wrap.
    constant_extent = sum(integer_value(nest.extent) or 0 for nest in nests)
    extent = reduce(add, (nest.extent for nest in nests))
    if constant_extent > MAX_INT64 or not point.is_exact(extent):
        raise schedule_error(
            "horizontal_fuse.not_proved",
            "Cannot prove that the number of iterations of the fused loop fits int64.",
            needs=f"{text_of(extent)} <= {MAX_INT64}",
            hint="The sizes of arrays are known to fit.",
            place=first.place,
        )


def _require_defined(nest: _Nest, point: ProgramPoint) -> None:
    """Refuse an extent, weight or grain that may be undefined without the conditions around the loop: the
    fused loop evaluates them first."""
    reads = BoundedReads(nest.cursor.function, point)
    divided = [part for part in collect(Binary, *nest.sizes) if part.op in DIVISIONS]
    with point.scope():
        point.assume_range(
            nest.loop, add(nest.extent, ONE)
        )  # a weight is that of all iterations before
        is_defined = reads.are_in_bounds(*nest.sizes)
    if not is_defined or not all(integer_value(division.rhs) for division in divided):
        raise schedule_error(
            "horizontal_fuse.not_proved",
            f"Cannot prove that the extent and the weight of loop '{nest.loop.var}' are defined where the "
            "condition around it does not hold.",
            needs=", ".join(map(text_of, nest.conditions)),
            place=nest.cursor.place,
        )


def _require_inits_inside(nests: Sequence[_Nest]) -> None:
    """Refuse a loop before which the init of a block runs: its iterations initialize shared elements."""
    for nest in nests:
        loops = {loop.var for loop in (*nest.units, nest.loop)}
        for block in blocks_with_init(nest.cursor):
            reducing = reduction_loops(block.node, values_at(block))
            if reducing & loops or reinitializing_loops(block, loops):
                raise schedule_error(
                    "horizontal_fuse.init",
                    f"The init of block '{block.node.name}' runs before loop '{nest.loop.var}'.",
                    hint="Apply decompose_reduction before.",
                    place=block.place,
                )


def _fused_loop(nests: Sequence[_Nest], name: str) -> For:
    """Return the loop whose iterations are those of all loops, in their order."""
    offset: Expr = ZERO
    weights: list[Expr] = []
    bodies: list[tuple[Expr, tuple[Stmt, ...]]] = []
    fused = index_var(name)
    for number, nest in enumerate(nests):
        iteration = sub(fused, offset)
        # The last loop needs no upper bound, the first none below.
        done = iteration if number == 0 else Binary("max", iteration, ZERO)
        if number < len(nests) - 1:
            done = Binary("min", done, nest.extent)
        conditions = [substitute(condition, nest.values) for condition in nest.conditions]
        weights.append(_weight_at(nest, done, conditions))
        body = substitute_body(nest.loop.body, {**nest.values, nest.loop.var: iteration})
        for condition in reversed(conditions):
            body = (If(condition, body),)
        offset = add(offset, nest.extent)
        bodies.append((Compare("lt", fused, offset), body))
    *conditional, (_, body) = bodies
    for condition, earlier in reversed(conditional):
        body = (If(condition, earlier, body),)
    loops = [nest.loop for nest in nests]
    is_weighted = any(loop.weight is not None for loop in loops)
    return For(
        name,
        ZERO,
        offset,
        body,
        kind=loops[0].kind,
        thread=loops[0].thread,
        annotations=_annotations(loops),
        weight=reduce(add, weights) if is_weighted else None,
        grain=_largest_grain(loops),
    )


def _weight_at(nest: _Nest, iteration: Expr, conditions: Sequence[Expr]) -> Expr:
    """Return the weight of the iterations of a loop before this one: none where a condition around the loop
    does not hold, under which alone it is known not to decrease."""
    weight = nest.loop.weight or index_var(nest.loop.var)
    weight = substitute(weight, {**nest.values, nest.loop.var: iteration})
    for condition in reversed(conditions):
        weight = IfThenElse(condition, weight, ZERO)
    return weight


def _largest_grain(loops: Sequence[For]) -> Expr | None:
    grains = [loop.grain for loop in loops if loop.grain is not None]
    return reduce(_larger, grains) if grains else None


def _larger(one: Expr, other: Expr) -> Expr:
    numbers = integer_value(one), integer_value(other)
    if numbers[0] is not None and numbers[1] is not None:
        return one if numbers[0] >= numbers[1] else other
    return Binary("max", one, other)


def _annotations(loops: Sequence[For]) -> tuple[tuple[str, AnnotationValue], ...]:
    """Return the annotation of the fused loop: the buffers that one of the loops accumulates atomically,
    where no loop inside says so."""
    names = sorted({name for loop in loops for name in jointly_atomic_buffers(loop)})
    return (atomic_annotation(names),) if names else ()
