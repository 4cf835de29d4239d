"""Arguments that are the text of an expression: parsed, and proved safe where a primitive evaluates it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gossamer_ir.errors import ParseError, Place
from gossamer_ir.nodes import AnyBuffer, Block, Buffer, Expr, Load, Search, Var
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import collect
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.cursor.variable_values import values_at
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.safe_accesses.safe_loads import are_loads_safe_in_loops
from gossamer_support.items_by_name import items_by_name
from gossamer_support.message_texts import amount


def expr_of_text(
    text: str,
    cursor: Cursor[object],
    vars: Iterable[str] = (),
    *,
    argument: str,
    place: Place = (),
) -> Expr:
    """Return the expression of a text, which is an argument of a primitive.

    It may use the parameters and buffers of the function of a cursor, and index variables.

    Raises `.text`.

    >>> from gossamer_schedule.cursor.find import find_function, find_loop
    >>> from gossamer_testkit.examples import SCALE
    >>> top = find_function(SCALE, "parallel", function=None)
    >>> expr_of_text("n +", find_loop(top, loop="i"), argument="weight")
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.ScheduleError: 'n +' is not an expression for argument 'weight' of parallel: The script is not valid Python: invalid syntax. [schedule.parallel.text]
    """  # noqa: E501  (the error is one line)
    from gossamer_ir.script import parse_expr  # imported late: most schedules have no texts

    buffers = items_by_name(all_buffers(cursor.function))
    dtypes = {
        param.name: param.dtype for param in cursor.function.params if param.dtype != "handle"
    }
    dtypes |= {name: buffer.dtype for name, buffer in buffers.items()}
    try:
        expr: Expr = parse_expr(text, dtypes | dict.fromkeys(vars, "int64"))
    except ParseError as error:
        message, hint = error.diagnostics[0].message, error.diagnostics[0].hint
    else:
        misused = next(_misused_buffers(expr, buffers), None)
        if misused is None:
            return expr
        message = f"'{misused}' has {amount(_rank_of(buffers[misused]), 'dimension')}."
        hint = "Give one index per dimension."
    raise schedule_error(
        f"{cursor.primitive}.text",
        f"{text!r} is not an expression for argument '{argument}' of {cursor.primitive}: {message}",
        hint=hint,
        place=place,
    )


def expr_at(text: str, cursor: Cursor[object], *, argument: str) -> Expr:
    """Return the expression of an argument of a primitive, given as text, for use at a statement.

    It may use parameters, the loops and iterators around the statement, and elements of the caller's
    buffers that are proved to exist.

    Raises `.text` and `.not_proved`.
    """
    place = cursor.place
    expr = expr_of_text(text, cursor, index_vars_at(cursor), argument=argument, place=place)
    caller_buffers = {
        buffer.name for buffer in all_buffers(cursor.function) if buffer.handle is not None
    }
    read = buffers_read(expr)
    if not read <= caller_buffers or not are_loads_safe_in_loops(
        cursor.function, resolve(expr, values_at(cursor)), cursor.loops
    ):
        raise schedule_error(
            f"{cursor.primitive}.not_proved",
            f"Cannot prove that the elements that '{text}' reads exist.",
            needs=f"its elements of {', '.join(sorted(read))} are in bounds, and given by the caller",
            place=place,
        )
    return expr


def index_vars_at(cursor: Cursor[object]) -> tuple[str, ...]:
    """Return the index variables that a statement may use: the loops around it in the same block, and the
    iterators of the blocks around it."""
    iters = [
        iterator
        for parent in cursor.parents
        if isinstance(parent, Block)
        for iterator in parent.iters
    ]
    return (*(loop.var for loop in cursor.loops_in_block), *(iterator.var for iterator in iters))


def _misused_buffers(expr: Expr, buffers: Mapping[str, AnyBuffer]) -> Iterator[str]:
    """Yield the buffers that are read with another number of indices than they have dimensions."""
    for read in collect(READS, expr):
        if _index_count(read) != _rank_of(buffers[read.buffer]):
            yield read.buffer
    yield from (node.name for node in collect(Var, expr) if node.name in buffers)


def _index_count(read: Load | Search) -> int:
    return len(read.indices) if isinstance(read, Load) else len(read.prefix) + 1


def _rank_of(buffer: AnyBuffer) -> int:
    return len(buffer.shape if isinstance(buffer, Buffer) else buffer.axes)
