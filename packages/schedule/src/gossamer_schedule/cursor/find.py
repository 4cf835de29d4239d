"""Look-ups by name: the cursor, or an error that lists the names that exist."""

from __future__ import annotations

from typing import Any

from gossamer_ir.nodes import AnyBuffer, Block, For, Function, Iteration, Module
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_schedule.cursor.cursor_at import (
    ADDRESSED,
    Cursor,
    K,
    addressable_stmts,
    find_by_name,
    name_of,
)
from gossamer_schedule.errors import listing, schedule_error


def find_function(module: Module, primitive: str, *, function: str | None) -> Cursor[Function]:
    """Return a cursor for a primitive, at the named function or, without a name, at the entry."""
    wanted = module.entry if function is None else function
    for candidate in module.functions:
        if candidate.name == wanted:
            return Cursor(module, primitive, candidate, ())
    names = [candidate.name for candidate in module.functions]
    raise schedule_error(
        f"{primitive}.no_function",
        f"There is no function '{wanted}' to apply {primitive} to.",
        hint=listing("functions", names),
    )


def find_loop(top: Cursor[object], *, loop: str) -> Cursor[For]:
    """Return the cursor at a loop."""
    return _find_stmt(top, For, loop, reason="no_loop")


def find_block(top: Cursor[object], *, block: str) -> Cursor[Block]:
    """Return the cursor at a block."""
    return _find_stmt(top, Block, block, reason="no_block")


def find_iteration(top: Cursor[object], *, iteration: str) -> Cursor[Iteration]:
    """Return the cursor at a sparse iteration."""
    return _find_stmt(top, Iteration, iteration, reason="no_iteration")


def find_named(top: Cursor[object], *, name: str) -> Cursor[Any]:
    """Return the cursor at a loop, block or iteration."""
    cursors = [cursor for cursor in top.below() if name_of(cursor.node) == name]
    if len(cursors) == 1:
        return cursors[0]
    count_text = "are several statements" if cursors else "is no loop, block or iteration"
    raise schedule_error(
        f"{top.primitive}.no_name",
        f"There {count_text} '{name}' in '{top.function.name}'.",
        hint=listing("names", filter(None, map(name_of, addressable_stmts(top.function.body)))),
    )


def _find_stmt(top: Cursor[object], kind: type[K], name: str, *, reason: str) -> Cursor[K]:
    # A module may have two loops of one name; a step must not depend on which of them is found first.
    cursors = find_by_name(top, kind, name)
    if len(cursors) == 1:
        return cursors[0]
    word = ADDRESSED[kind].word
    candidates = [node for node in addressable_stmts(top.function.body) if isinstance(node, kind)]
    count_text = f"are several {word}s" if cursors else f"is no {word}"
    raise schedule_error(
        f"{top.primitive}.{reason}",
        f"There {count_text} '{name}' in '{top.function.name}'.",
        hint=listing(f"{word}s", filter(None, map(name_of, candidates))),
    )


def find_buffer(cursor: Cursor[object], *, buffer: str) -> AnyBuffer:
    """Return a parameter or allocated buffer of the function of a cursor."""
    for candidate in all_buffers(cursor.function):
        if candidate.name == buffer:
            return candidate
    raise schedule_error(
        f"{cursor.primitive}.no_buffer",
        f"There is no buffer '{buffer}' in '{cursor.function.name}'.",
        hint=listing("buffers", [candidate.name for candidate in all_buffers(cursor.function)]),
    )
