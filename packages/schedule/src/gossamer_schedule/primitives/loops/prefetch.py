"""`prefetch`: load elements that later iterations of a loop will read into the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gossamer_ir.analysis.invariants import changing_buffers
from gossamer_ir.core.build import integer_value
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.core.statement_kinds import is_stmt
from gossamer_ir.nodes import Block, Buffer, Expr, For, Function, Load, Node, Store
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.statement_queries import body_in, values_after
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import children, collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.find import find_block, find_buffer, find_loop
from gossamer_schedule.cursor.requirements import require_between
from gossamer_schedule.cursor.variable_values import values_in_block
from gossamer_schedule.definition.change import Change
from gossamer_schedule.definition.primitive import primitive
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.regions.consecutive_elements import ElementSpan, span_below
from gossamer_schedule.staging.conditional_prefetch import conditional_prefetch, has_varying_count


@primitive(stages=("loop",))
def prefetch(
    root: Cursor[Function],
    block: str,
    *,
    buffer: str,
    loop: str,
    distance: int,
    function: str | None = None,
) -> Change:
    """Prefetch the elements of a buffer that a block will access `distance` iterations of a loop later.

    These are the elements that it reads, and those that it stores: a store waits for its cache line, too.

    Takes a module of the loop stage. The prefetch is appended to the body of the loop. If loops inside
    run over consecutive elements, each cache line of these is prefetched. Nothing is prefetched for
    iterations in which the predicate of the block does not hold, or past the end of an index array that
    selects the elements. Results do not change. The result's name is that of the loop.

    Raises `ScheduleError` with a code `schedule.prefetch.*`:

    * `.distance`: less than one, or too large
    * `.no_access`: the block accesses no element of the buffer that changes with the loop
    * `.range`: loops inside may run over elements that are not consecutive
    * `.changing`: the loop writes what selects the elements, or allocates the buffer

    >>> from gossamer_testkit.examples import GATHER
    >>> from gossamer_testkit.show import body_text
    >>> print(body_text(GATHER))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
    >>> print(body_text(prefetch(GATHER, "gather", buffer="X", loop="i", distance=8).module))
    for i in T.serial(n):
        with T.block("gather"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
        if i + 8 < n:
            T.prefetch(X, P[i + 8])
    """
    cursor = find_loop(root, loop=loop)
    target = find_buffer(root, buffer=buffer)
    assert isinstance(target, Buffer), "the loop stage has no other buffers"
    inside = find_block(root, block=block)

    # The iteration itself has read the element at distance 0; the index of a later one must not overflow.
    require_between(cursor, "distance", distance, 1, MAX_SIZE)
    _require_allocated_outside(target, cursor)
    reads = _required_indices(inside, target, cursor=cursor)
    spans = [_required_span(read, target, cursor=cursor) for read in reads]
    _require_unchanged_spans(spans, cursor)

    namer = namer_of(root.function)
    conditions = _known_conditions(inside, cursor)
    prefetches = tuple(
        conditional_prefetch(cursor, span, target, distance, conditions=conditions, namer=namer)
        for span in spans
    )
    body = (*cursor.node.body, *prefetches)

    return Change(cursor.replace_with((replace(cursor.node, body=body),)), (loop,))


def _require_allocated_outside(buffer: Buffer, cursor: Cursor[For]) -> None:
    """Refuse a buffer that each iteration allocates anew: that of the later iteration does not exist yet."""
    if buffer.name in buffers_allocated(cursor.node.body):
        raise schedule_error(
            "prefetch.changing",
            f"Buffer '{buffer.name}' is allocated in each iteration of loop '{cursor.node.var}'.",
            hint="Prefetch at a loop inside it.",
            place=cursor.place,
        )


def _required_indices(
    inside: Cursor[Block], buffer: Buffer, *, cursor: Cursor[For]
) -> list[tuple[Expr, ...]]:
    """Return the different indices at which the block accesses the buffer, in terms of loop variables."""
    node = inside.node
    block_nodes = list(_nodes_outside_inner_blocks(node.body))
    # A loop of one iteration does not choose among elements.
    single = {loop.var: loop.start for loop in inside.loops if integer_value(loop.extent) == 1}
    values = {var: resolve(value, single) for var, value in values_in_block(inside).items()}
    values |= {
        var.name: value
        for node in block_nodes
        if is_stmt(node)
        for var, value in values_after(node)
    }
    reads: list[tuple[Expr, ...]] = []
    for access in block_nodes:
        if not isinstance(access, (Load, Store)) or access.buffer != buffer.name:
            continue
        indices = tuple(resolve(at, values) for at in access.indices)
        if indices not in reads and any(cursor.node.var in free_vars(at) for at in indices):
            reads.append(indices)
    if not reads or cursor.node not in inside.loops:
        raise schedule_error(
            "prefetch.no_access",
            f"Block '{node.name}' accesses no element of '{buffer.name}' that changes with loop "
            f"'{cursor.node.var}'.",
            hint=listing("buffers that it accesses", sorted(buffers_accessed(*node.body))),
            place=inside.place,
        )
    return reads


def _nodes_outside_inner_blocks(body: Iterable[Node]) -> Iterator[Node]:
    """Yield the nodes of a block's body, without those of blocks inside it."""
    for node in body:
        if not isinstance(node, Block):
            yield node
            yield from _nodes_outside_inner_blocks(children(node))


def _require_unchanged_spans(spans: list[ElementSpan], cursor: Cursor[For]) -> None:
    """Refuse spans that depend on buffers which the loop writes or allocates: their values may still change
    between the prefetch and the access."""
    parts = [part for span in spans for part in (*span.indices, span.count)]
    if any(has_varying_count(span, cursor) for span in spans):
        parts += [cursor.node.start, cursor.node.extent]
    changing = changing_buffers(cursor.node.body, *parts, function=cursor.function)
    if changing:
        raise schedule_error(
            "prefetch.changing",
            f"The elements to prefetch depend on '{sorted(changing)[0]}', which changes in loop "
            f"'{cursor.node.var}'.",
            place=cursor.place,
        )


def _required_span(read: tuple[Expr, ...], buffer: Buffer, *, cursor: Cursor[For]) -> ElementSpan:
    """Return the elements over which the loops inside run; refuse them if they may not be consecutive."""
    span = span_below(cursor, read)
    if span is None:
        raise schedule_error(
            "prefetch.range",
            f"Cannot prove that the loops in '{cursor.node.var}' run over consecutive elements of "
            f"'{buffer.name}'.",
            hint="Prefetch at one of the loops inside.",
            place=cursor.place,
        )
    return span


def _known_conditions(inside: Cursor[Block], cursor: Cursor[Block | For]) -> list[Expr]:
    """Return the conditions of the block that are known ahead of time, outermost first.

    They do not depend on loops inside or on what the loop changes. One that loads is kept only if all
    conditions before it are, since these may guard its loads.
    """
    values = values_in_block(inside)
    inner = {loop.var for loop in collect(For, *cursor.node.body)}
    body = cursor.node.body
    kept: list[Expr] = []
    is_complete = True
    for part in (resolve(part, values) for part in _conditions_around(inside, cursor)):
        if free_vars(part) & inner or changing_buffers(body, part, function=cursor.function):
            is_complete = False
        elif is_complete or not buffers_accessed(part):
            kept.append(part)
    return kept


def _conditions_around(inside: Cursor[Block], cursor: Cursor[object]) -> Iterator[Expr]:
    """Yield the conjuncts of the conditions of a block and of the statements around it in a loop."""
    for step in inside.steps_from(cursor)[1:]:
        yield from body_in(step.parent, step.field).conditions
    yield from conjuncts(inside.node.predicate)
