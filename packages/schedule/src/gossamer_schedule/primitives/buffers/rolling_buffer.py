"""`rolling_buffer`: what iterations have in common is computed once, and kept in a circular buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from gossamer_ir.analysis.accesses import EnclosingContext, accesses
from gossamer_ir.analysis.invariants import changed_in
from gossamer_ir.analysis.linear_form import LinearForm, form_of
from gossamer_ir.analysis.loops import loops_of
from gossamer_ir.arith.affine import NOTHING
from gossamer_ir.core.build import add, conjoined, conjuncts, index, index_var, sub
from gossamer_ir.dependence.init_conflicts import is_told_by_element
from gossamer_ir.dependence.mixed_radix import count_of, digits_of, lowest, without
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Block,
    BlockIter,
    Buffer,
    Compare,
    Expr,
    For,
    Function,
    Guard,
    Load,
    Module,
    Prefetch,
    Range,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.effects import outer_writes
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import collect, free_vars, resolve, rewrite_body
from gossamer_schedule.bounds.prover import point_in
from gossamer_schedule.cursor.cursor import Cursor, replaced, statements
from gossamer_schedule.cursor.resolve import (
    LOOP_STAGES,
    find_block,
    find_buffer,
    find_function,
    find_loop,
    require_serial,
    require_stage,
)
from gossamer_schedule.dependence.access import mentioned, named, values_at
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.motion.move_block import is_recurrence
from gossamer_schedule.nests.init_nest import init_nest, require_init_nest
from gossamer_schedule.nests.init_places import meeting_loops
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

_NAME = "rolling_buffer"


class _Window(NamedTuple):
    """What one iteration of a loop makes along dimension `dim` of a buffer: the elements from `base` on,
    `width` of them, by iterator `var`; `step` further on in the next iteration."""

    dim: int
    var: str
    base: Expr
    width: int
    step: int


@primitive
def rolling_buffer(
    module: Module, block: str, *, buffer: str, function: str | None = None
) -> Result:
    """Keeps what a block computed in earlier iterations of a loop. The block stands in the body of the loop
    in which its buffer is allocated, as `compute_at` leaves it, and makes in each iteration some more of
    the elements that the last one made: a window that slides along one dimension.

    The buffer is then allocated before the loop, as large as the window; index `x` along the dimension
    becomes `x % width`. Only the first iteration makes the whole window, later ones the elements that
    come in. The iterations are no longer independent of each other. An `init` becomes a block of its own,
    directly before the loops of the block: elements of the circular buffer are initialised again and again,
    and an `init` does that once. The result's names are the buffer and, where there is an `init`, its block
    and loops as of `decompose_reduction`.

    Raises `ScheduleError`: `schedule.rolling_buffer.scope` (the buffer is not allocated in the body of a
    loop, or the block does not stand there in loops of its own), `.kind` (the loop is not serial),
    `.writers` (something else writes the buffer, or the block something else), `.updates` (the
    block goes on from old values), `.changed` (what it reads is written in the loop), `.window` (no
    dimension has a window whose width and step are constants, or the block depends on the iteration
    otherwise), `.overlap` (two iterations in sequence make nothing in common), `.other_access` (the
    buffer is used before the block or by an `init`, searched, prefetched or guarded), `.not_proved` (an
    access may be outside of the window or the buffer, or points of the block initialise one element to
    different values), `.no_buffer`, `.no_block`, `.no_function`, `.stage`.

    >>> from gossamer_ir.script import print_expr
    >>> from gossamer_testkit.examples import WINDOWS
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(WINDOWS))
    for i in T.serial(n):
        W = T.alloc_buffer((n + 2,), "float32")
        for j in T.serial(3):
            with T.block("twice"):
                vj = T.axis.spatial(n + 2, i + j)
                W[vj] = X[vj] * 2.0
        with T.block("sum"):
            vi = T.axis.spatial(n, i)
            Y[vi] = W[vi] + W[vi + 1] + W[vi + 2]
    >>> rolled = rolling_buffer(WINDOWS, "twice", buffer="W").module
    >>> print(print_expr(rolled.functions[0].body[0].buffer.shape[0]))
    3
    >>> print(body_text(rolled))
    for i in T.serial(n):
        for j in T.serial(3):
            with T.block("twice"):
                vj = T.axis.spatial(n + 2, i + j)
                T.where(i == 0 or vj >= i + 2)
                W[vj % 3] = X[vj] * 2.0
        with T.block("sum"):
            vi = T.axis.spatial(n, i)
            Y[vi] = W[vi % 3] + W[(vi + 1) % 3] + W[(vi + 2) % 3]
    """
    require_stage(module, _NAME, stages=LOOP_STAGES)
    root = find_function(module, _NAME, function=function)
    cursor = find_block(root, block=block)
    found = find_buffer(root, buffer=buffer)

    target = _require_loop(cursor, buffer)
    require_serial(target)
    own = _require_own_loops(cursor, target)
    _require_repeatable(cursor, target, own, buffer=buffer)
    window = _require_window(cursor, target, own, buffer=buffer)
    assert isinstance(found, Buffer)  # only such buffers are allocated by statements
    _require_outside_shape(found, target)
    _require_after(cursor, target, buffer=buffer)
    _require_within(target, window, found)

    shape = list(found.shape)
    shape[window.dim] = index(window.width)
    rolled = replace(found, shape=tuple(shape))
    news, names = _making_news(cursor, target, own, window)
    inside = find_loop(root.with_function(news), loop=target.node.var)
    loop = replace(inside.node, body=_rolled(inside.node.body, window, buffer=buffer))
    rewritten = inside.replaced_by((Allocate(rolled), loop)).module

    taken = step(block=block, buffer=buffer, function=function)
    return Result(rewritten, (buffer, *names), Step(_NAME, taken))


def _require_loop(cursor: Cursor, buffer: str) -> Cursor:
    """The cursor at the loop around the block in the body of which the buffer is allocated."""
    for found in cursor.top.below():
        if isinstance(found.node, Allocate) and found.node.buffer.name == buffer:
            loop = found.up(1)
            if isinstance(loop.node, For) and any(loop.node is above for above in cursor.parents):
                return loop
    raise schedule_error(
        f"{_NAME}.scope",
        f"Buffer '{buffer}' is not allocated in the body of a loop around block '{cursor.node.name}'.",
        hint="Apply compute_at before.",
    )


def _require_own_loops(cursor: Cursor, target: Cursor) -> tuple[For, ...]:
    """The loops between the target and the block, which hold nothing else."""
    between = [parent for parent, _, _ in cursor.path[len(target.path) + 1 :]]
    if all(isinstance(parent, For) and len(parent.body) == 1 for parent in between):
        return tuple(between)
    raise schedule_error(
        f"{_NAME}.scope",
        f"Block '{cursor.node.name}' does not stand in loops of its own in the body of loop "
        f"'{target.node.var}'.",
    )


def _require_repeatable(
    cursor: Cursor, target: Cursor, own: tuple[For, ...], *, buffer: str
) -> None:
    """The block makes elements of the buffer, which nothing else does, from what stays the same."""
    block: Block = cursor.node
    if outer_writes((block,)) != {buffer} or _stores(target.node.body, buffer) != _stores(
        (block,), buffer
    ):
        raise schedule_error(
            f"{_NAME}.writers",
            f"Block '{block.name}' does not write '{buffer}', or something else, too; or something else "
            f"writes it.",
        )
    is_reading = any(found.buffer == buffer for found in collect(Load, *block.body))
    has_reduction = any(found.kind == "R" for found in block.iters)
    if is_recurrence(block) or ((is_reading or has_reduction) and not block.init):
        raise schedule_error(
            f"{_NAME}.updates",
            f"Block '{block.name}' goes on from values that elements have already.",
        )
    nest = resolve(own[0] if own else block, values_at(cursor))
    # the start of the loop is asked for again in each iteration
    reads = nest, target.node.start
    changed = changed_in(target.node.body, *reads, function=target.function) - {buffer}
    if changed:
        raise schedule_error(
            f"{_NAME}.changed",
            f"What block '{block.name}' or its loop reads of {', '.join(sorted(changed))} is written in loop "
            f"'{target.node.var}'.",
        )


def _stores(body: tuple[Stmt, ...], buffer: str) -> int:
    return sum(found.buffer == buffer for found in collect(Store, *body))


def _require_window(
    cursor: Cursor, target: Cursor, own: tuple[For, ...], *, buffer: str
) -> _Window:
    """The window that slides with the iterations of a loop."""
    window = next(_windows(cursor, target, own, buffer=buffer), None)
    if window is None or _depends_otherwise(cursor, target, own, window):
        raise schedule_error(
            f"{_NAME}.window",
            f"An iteration of loop '{target.node.var}' does not make a window of '{buffer}', of constant "
            "width and a constant step after the last one.",
            hint="Give the loops of the block constant extents, and no kind.",
        )
    if window.width <= window.step:
        raise schedule_error(
            f"{_NAME}.overlap",
            f"Iterations of loop '{target.node.var}' make {window.width} elements, and begin {window.step} "
            "after each other: they have none in common.",
        )
    return window


def _windows(
    cursor: Cursor, target: Cursor, own: tuple[For, ...], *, buffer: str
) -> Iterator[_Window]:
    """The dimensions along which the block makes a window."""
    block: Block = cursor.node
    loops, by_name = loops_of(cursor.function), {item.var: item for item in block.iters}
    places = {found.indices for found in collect(Store, block) if found.buffer == buffer}
    for dim, at in enumerate(places.pop() if len(places) == 1 else ()):
        item = by_name.get(at.name) if isinstance(at, Var) else None
        if item is not None and item.kind == "S":
            form = form_of(item.value, values_at(cursor), loops=loops)
            found = _window(form, dim, item, target=target, own=own, loops=loops)
            if found is not None:
                yield found


def _window(
    form: LinearForm,
    dim: int,
    item: BlockIter,
    *,
    target: Cursor,
    own: tuple[For, ...],
    loops: Mapping[str, For],
) -> _Window | None:
    inner, loop = {found.var for found in own}, target.node.var
    outer = {found.var for found in (*target.loops, target.node)}
    count = form.terms.get(loop, NOTHING)
    width = count_of(digits_of(form, inner, loops=loops).values())
    if (
        lowest(form, inner, loops=loops) is None
        or loop in form.opaque
        or form.terms.keys() - inner - outer
        or not (count.is_constant and width.is_constant)
        or count.constant < 1
        or width.constant < 1
    ):
        return None
    return _Window(dim, item.var, without(form, inner, loops=loops), width.constant, count.constant)


def _depends_otherwise(
    cursor: Cursor, target: Cursor, own: tuple[For, ...], window: _Window
) -> bool:
    """Whether what the block makes depends on the iteration by more than the window."""
    block: Block = cursor.node
    values, loop = values_at(cursor), target.node.var
    inner = {found.var for found in own}
    others = [resolve(item.value, values) for item in block.iters if item.var != window.var]
    ranges = [resolve(end, values) for found in own for end in (found.start, found.extent)]
    header = replace(block, iters=(), reads=None, writes=None)
    domains = [item.domain for item in block.iters]
    inside = (header, *domains)
    return (
        loop in free_vars(*others, *ranges)
        or not free_vars(*(resolve(part, values) for part in inside)).isdisjoint(inner | {loop})
        or bool(changed_in(target.node.body, window.base, function=target.function))
    )


def _require_outside_shape(buffer: Buffer, target: Cursor) -> None:
    """The shape of the buffer must be known before the loop."""
    known = {param.name for param in target.function.params}
    known |= {found.var for found in target.loops}
    if free_vars(*buffer.shape) - known or mentioned(buffer.shape):
        raise schedule_error(
            f"{_NAME}.scope",
            f"The shape of '{buffer.name}' is not known before loop '{target.node.var}'.",
        )


def _require_after(cursor: Cursor, target: Cursor, *, buffer: str) -> None:
    """The buffer may only be loaded from, after the block has run."""
    at = cursor.path[len(target.path)][2]
    body = target.node.body
    used = named(body[:at])
    for found in statements(body):
        if isinstance(found, Block) and found is not cursor.node:
            used |= named(found.init)
    used |= {found.buffer for found in collect((Guard, Prefetch), *body)}
    if buffer in used:
        raise schedule_error(
            f"{_NAME}.other_access",
            f"Buffer '{buffer}' is not only loaded from, after block '{cursor.node.name}' has run.",
        )


def _require_within(target: Cursor, window: _Window, buffer: Buffer) -> None:
    """All accesses must be within the window of the iteration, and within the buffer as it was: an index
    that was out of bounds would be another element of the window."""
    held = EnclosingContext((*target.loops, target.node))
    values = values_at(target)
    for access in accesses(target.node.body, values=values, held=held, buffers={buffer.name}):
        at = access.indices[window.dim]
        point = point_in(target.function)
        point.assume_held(access.held)
        if (
            isinstance(at, Range)
            or not point.is_in_range(sub(at, window.base), index(window.width))
            or not point.is_in_range(at, buffer.shape[window.dim])
        ):
            place = "a range" if isinstance(at, Range) else text_of(at)
            raise schedule_error(
                f"{_NAME}.not_proved",
                f"It is not proved that all accesses of '{buffer.name}' in loop '{target.node.var}' are "
                "within the window that the iteration makes, and within the buffer.",
                needs=f"{text_of(window.base)} <= {place} < {text_of(window.base)} + {window.width}, and "
                f"0 <= {place} < {text_of(buffer.shape[window.dim])}",
            )


def _making_news(
    cursor: Cursor, target: Cursor, own: tuple[For, ...], window: _Window
) -> tuple[Function, tuple[str, ...]]:
    """The function whose block makes what comes into the window, initialised by a block of its own; the
    names of that block and its loops."""
    loop, block = target.node, cursor.node
    kept = add(window.base, index(window.width - window.step))
    is_new = Binary(
        "or",
        Compare("eq", index_var(loop.var), loop.start),
        Compare("ge", index_var(window.var), kept),
    )
    predicate = conjoined((*conjuncts(block.predicate), is_new))
    news = replace(block, predicate=predicate, reads=None, writes=None)
    changed = cursor.replaced_by((news,))
    if not block.init:
        return changed.function, ()
    _require_one_value(cursor, own)
    made = find_block(changed, block=block.name)
    nest = require_init_nest(made, made.nest[-len(own) :])
    inits, names = init_nest(made, nest, namer=namer_of(changed.function))
    updates = find_block(made.replaced_by((replace(news, init=()),)), block=block.name)
    top = updates.up(len(own))
    return replaced(top, (*inits, top.node)), names


def _require_one_value(cursor: Cursor, own: tuple[For, ...]) -> None:
    """What the block initialises before all of its points is what the first of them initialises."""
    block: Block = cursor.node
    meeting = meeting_loops(cursor, {found.var for found in own})
    if meeting and not is_told_by_element(block, own):
        raise schedule_error(
            f"{_NAME}.not_proved",
            f"It is not proved that iterations of loop '{min(meeting)}' initialise different elements, "
            f"or one to the same value, and block '{block.name}' initialises each once.",
            needs=f"a different element in each iteration of {min(meeting)}",
        )


def _rolled(body: tuple[Stmt, ...], window: _Window, *, buffer: str) -> tuple[Stmt, ...]:
    """The body of the loop with the buffer before it."""

    def rule(node: Any) -> Any | None:
        match node:
            case Load() | Store() if node.buffer == buffer:
                indices = list(node.indices)
                at = indices[window.dim]
                indices[window.dim] = Binary("floormod", at, index(window.width))
                return replace(node, indices=tuple(indices))
            case Allocate() if node.buffer.name == buffer:
                return ()
            case Block() if node.reads is not None or node.writes is not None:
                return replace(node, reads=None, writes=None)
        return None

    return rewrite_body(body, rule)
