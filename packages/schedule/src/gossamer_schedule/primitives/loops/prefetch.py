"""`prefetch`: what later iterations of a loop will gather is asked for in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Literal

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.in_bounds import places_read
from gossamer_ir.analysis.invariants import changed_in
from gossamer_ir.analysis.linear_form import form_of
from gossamer_ir.analysis.loops import loops_of
from gossamer_ir.analysis.program_point import ProgramPoint
from gossamer_ir.arith.simplify import FALSE, simplify
from gossamer_ir.core.build import (
    ONE,
    ZERO,
    add,
    ceildiv,
    conjuncts,
    in_range,
    index,
    index_var,
    integer_value,
    mul,
)
from gossamer_ir.core.dtypes import DType
from gossamer_ir.dependence.mixed_radix import lowest
from gossamer_ir.interchange.records import LARGEST_SIZE, Step
from gossamer_ir.nodes import (
    Allocate,
    Block,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Module,
    Node,
    Prefetch,
    Search,
    Stmt,
    Unary,
)
from gossamer_ir.traversal.effects import READS, all_buffers
from gossamer_ir.traversal.names import Namer, namer_of
from gossamer_ir.traversal.walk import children, collect, free_vars, resolve, rewrite, substitute
from gossamer_schedule.bounds.prover import point_in
from gossamer_schedule.bounds.sizes import is_count
from gossamer_schedule.cursor.cursor import Cursor, statements
from gossamer_schedule.cursor.resolve import (
    find_block,
    find_buffer,
    find_function,
    find_loop,
    require_stage,
)
from gossamer_schedule.dependence.access import mentioned, values_within
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.result import Result
from gossamer_schedule.step.primitive import primitive
from gossamer_schedule.step.recorded import step

LINE_BYTES = 64
"""What a cache moves at once, on nearly every machine."""


@primitive
def prefetch(
    module: Module,
    block: str,
    *,
    buffer: str,
    loop: str,
    distance: int,
    function: str | None = None,
) -> Result:
    """Asks, in each iteration of a loop, for what a block in it reads of a buffer `distance`
    iterations later.

    Takes a module of the loop stage. Nothing is asked for in iterations in which the block's own
    condition says that it does not run. Loops inside may run over elements side by side; all their
    cache lines are asked for then. Where an index array ends before that, nothing is asked for.
    Results do not depend on it.

    Raises `ScheduleError`: `schedule.prefetch.distance` (less than one, or too large), `.no_access` (the
    block reads no such buffer in the loop), `.range` (loops inside run over elements that are not side by
    side), `.changing` (an index is read from what the loop writes, or the buffer is allocated in it),
    `.no_loop`, `.no_block`, `.no_buffer`, `.no_function`, `.stage`.

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
    require_stage(module, "prefetch", stages=("loop",))
    root = find_function(module, "prefetch", function=function)
    cursor = find_loop(root, loop=loop)
    found = find_buffer(root, buffer=buffer)
    assert isinstance(found, Buffer), "the loop stage has no other buffers"
    inside = find_block(root, block=block)

    _require_distance(distance, cursor)
    _require_around(found, cursor)
    reads = _require_reads(inside, found, cursor=cursor)
    spans = [_require_span(read, found, cursor=cursor) for read in reads]
    _require_lasting(spans, cursor)

    namer = namer_of(root.function)
    runs = _running(inside, cursor)
    asked = tuple(_asked(cursor, span, found, distance, runs=runs, namer=namer) for span in spans)
    body = (*cursor.node.body, *asked)

    rewritten = cursor.replaced_by((replace(cursor.node, body=body),)).module

    taken = step(block=block, buffer=buffer, loop=loop, distance=distance, function=function)
    return Result(rewritten, (loop,), Step("prefetch", taken))


# --- preconditions


def _require_distance(distance: int, cursor: Cursor) -> None:
    if not is_count(distance):
        raise schedule_error(
            "prefetch.distance",
            f"The distance is {distance}; expected at least one iteration of '{cursor.node.var}', and at "
            f"most {LARGEST_SIZE}.",
            place=cursor.place,
        )


def _require_around(buffer: Buffer, cursor: Cursor) -> None:
    inside = statements(cursor.node.body)
    if any(isinstance(made, Allocate) and made.buffer.name == buffer.name for made in inside):
        raise schedule_error(
            "prefetch.changing",
            f"Each iteration of '{cursor.node.var}' has a buffer '{buffer.name}' of its own.",
            hint="Prefetch at a loop inside of it.",
            place=cursor.place,
        )


def _require_reads(inside: Cursor, buffer: Buffer, *, cursor: Cursor) -> list[tuple[Expr, ...]]:
    """The indices by which the block reads the buffer, in variables of loops, each once."""
    node: Block = inside.node
    own = list(_own_nodes(node.body))
    values = values_within(inside)
    values |= {found.var.name: found.value for found in own if isinstance(found, Let)}
    reads: list[tuple[Expr, ...]] = []
    for load in own:
        if not isinstance(load, Load) or load.buffer != buffer.name:
            continue
        indices = tuple(resolve(at, values) for at in load.indices)
        if indices not in reads and any(cursor.node.var in free_vars(at) for at in indices):
            reads.append(indices)
    if not reads or cursor.node not in inside.loops:
        raise schedule_error(
            "prefetch.no_access",
            f"Block '{node.name}' reads nothing of '{buffer.name}' that changes with loop "
            f"'{cursor.node.var}'.",
            hint=listing("buffers that it reads", sorted(mentioned(node.body))),
            place=inside.place,
        )
    return reads


def _own_nodes(body: Iterable[Node]) -> Iterator[Node]:
    """What stands in a block, apart from the blocks in it."""
    for node in body:
        if not isinstance(node, Block):
            yield node
            yield from _own_nodes(children(node))


def _require_lasting(spans: list[_Span], cursor: Cursor) -> None:
    """What is to be asked for does not depend on what the loop writes, or allocates."""
    parts = [part for span in spans for part in (*span.indices, span.count)]
    if any(_grows(span, cursor) for span in spans):
        parts += [cursor.node.start, cursor.node.extent]
    changing = changed_in(cursor.node.body, *parts, function=cursor.function)
    if changing:
        raise schedule_error(
            "prefetch.changing",
            f"What will be read is known only when '{sorted(changing)[0]}' has been written.",
            place=cursor.place,
        )


class _Span(msgspec.Struct, frozen=True):
    """The first of some elements side by side, and how many there are."""

    indices: tuple[Expr, ...]
    count: Expr


def _require_span(read: tuple[Expr, ...], buffer: Buffer, *, cursor: Cursor) -> _Span:
    """What the loops inside run over, which must be elements side by side."""
    loops = loops_of(cursor.function)
    inner = {found.var for found in _below(cursor.node)}
    *outer, last = read
    order = _digits(last, inner, loops)
    if order is None or any(free_vars(at) & inner for at in outer):
        raise schedule_error(
            "prefetch.range",
            f"It is not proved that the loops in '{cursor.node.var}' run over elements of "
            f"'{buffer.name}' side by side.",
            hint="Prefetch at a loop inside of them.",
            place=cursor.place,
        )
    count: Expr = ONE
    for name in order:
        count = mul(count, loops[name].extent)
    first = simplify(substitute(last, dict.fromkeys(order, ZERO)))
    return _Span((*outer, first), count)


def _digits(last: Expr, inner: Set[str], loops: Mapping[str, For]) -> tuple[str, ...] | None:
    """The loops inside, as digits without gaps of an index; None where they are none."""
    order = lowest(form_of(last, {}, loops=loops), inner, loops=loops)
    if order is None:
        return None
    return None if any(free_vars(loops[name].extent) & inner for name in order) else order


def _below(loop: For) -> list[For]:
    return [node for stmt in loop.body for node in collect(For, stmt)]


# --- what is asked for


def _running(inside: Cursor, cursor: Cursor) -> list[Expr]:
    """The parts of the conditions under which a block in a loop runs that what is inside leaves as they
    are, outermost first; those that load only where all before them are known."""
    values = values_within(inside)
    inner = {found.var for found in _below(cursor.node)}
    body = cursor.node.body
    kept: list[Expr] = []
    is_complete = True
    for part in (resolve(part, values) for part in _conditions_around(inside, cursor)):
        if free_vars(part) & inner or changed_in(body, part, function=cursor.function):
            is_complete = False
        elif is_complete or not mentioned((part,)):
            kept.append(part)
    return kept


def _conditions_around(inside: Cursor, cursor: Cursor) -> Iterator[Expr]:
    """The conditions of a block and of all that stands around it in a loop."""
    for parent, field, _ in inside.path[len(cursor.path) + 1 :]:
        if isinstance(parent, Block):
            yield from conjuncts(parent.predicate)
        elif isinstance(parent, If):
            is_else = field == "else_body"
            yield from [Unary("not", parent.condition)] if is_else else conjuncts(parent.condition)
    yield from conjuncts(inside.node.predicate)


def _asked(
    cursor: Cursor, span: _Span, buffer: Buffer, distance: int, *, runs: list[Expr], namer: Namer
) -> Stmt:
    var = cursor.node.var
    later: dict[str, Expr] = {var: add(index_var(var), index(distance))}
    indices = tuple(substitute(at, later) for at in span.indices)
    count = substitute(span.count, later)
    condition = _all(
        [*_exists(cursor, span, later[var]), *_conditions(cursor, runs, (*indices, count))]
    )
    asked = _lines(cursor, _Span(indices, count), buffer, namer=namer)
    return asked if condition is None else If(condition, (asked,))


def _exists(cursor: Cursor, span: _Span, later: Expr) -> Iterator[Expr]:
    """That the loop has the later iteration, where it says itself how much is asked for, which may be any
    number beyond the last one. What is read of an array ends with that."""
    if _grows(span, cursor):
        yield Compare("lt", later, add(cursor.node.start, cursor.node.extent))


def _grows(span: _Span, cursor: Cursor) -> bool:
    bare = rewrite(span.count, lambda node: ZERO if isinstance(node, READS) else None)
    return cursor.node.var in free_vars(bare)


def _all(conditions: list[Expr]) -> Expr | None:
    """All conditions, each evaluated only where those before it hold."""
    if not conditions:
        return None
    first, rest = conditions[0], _all(conditions[1:])
    return first if rest is None else IfThenElse(first, rest, FALSE)


def _lines(cursor: Cursor, span: _Span, buffer: Buffer, *, namer: Namer) -> Stmt:
    """A prefetch for each line of the elements; a loop over them, where there are several."""
    per_line = max(1, 8 * LINE_BYTES // DType.parse(buffer.dtype).bits)
    count = integer_value(span.count)
    if count is not None and count <= per_line:
        return Prefetch(buffer.name, span.indices)
    line = namer.fresh(f"{cursor.node.var}_line")
    *outer, first = span.indices
    at = add(first, mul(index_var(line), index(per_line)))
    kind: Literal["unrolled", "serial"] = "serial" if count is None else "unrolled"
    asked = Prefetch(buffer.name, (*outer, at))
    return For(line, ZERO, ceildiv(span.count, per_line), (asked,), kind=kind)


def _conditions(cursor: Cursor, runs: Iterable[Expr], asked: Iterable[Expr]) -> Iterator[Expr]:
    """Some conditions, before each that the elements exist which it reads; then that those exist which
    say what is asked for."""
    point = point_in(cursor.function)
    for outer in (*cursor.loops, cursor.node):
        point.assume_loop(outer)
    buffers = all_buffers(cursor.function)
    shapes = {found.name: found.shape for found in buffers if isinstance(found, Buffer)}
    for condition in runs:
        yield from _existing(condition, point, shapes)
        point.assume(condition)
        yield condition
    for expr in asked:
        yield from _existing(expr, point, shapes)


def _existing(
    expr: Expr, point: ProgramPoint, shapes: Mapping[str, Sequence[Expr]]
) -> Iterator[Expr]:
    """That the elements exist which an expression reads, as far as it is not known."""
    for look in _inner_first(expr):
        for at, extent in places_read(look, shapes[look.buffer]):
            for condition in in_range(at, extent):
                if not point.proves(condition):
                    point.assume(condition)
                    yield condition


def _inner_first(expr: Expr) -> Iterator[Load | Search]:
    """The loads and searches in an expression, those that others need before them."""
    yield from dict.fromkeys(reversed(collect(READS, expr)))
