"""Splits a program into the blocks that it marks as preprocessing and the rest."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.invariants import buffers_written_in
from gossamer_ir.core.annotations import is_preprocess
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Block, Function, Module, Param, Stmt
from gossamer_ir.traversal.buffer_definitions import buffers_allocated
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import children


class SplitEntry(msgspec.Struct, frozen=True):
    """An entry split in two parts; the buffers that the marked statements write are parameters of both."""

    function: Function
    marked: tuple[Stmt, ...]
    rest: tuple[Stmt, ...]


def split_marked(module: Module) -> SplitEntry | None:
    """Return the entry split in two parts; None if no block is marked `preprocess`.

    Raises `UnsupportedError` (`lower.inspector.marked_blocks`) if the marked part is not independent: the
    rest writes a buffer that it accesses, a loop contains blocks of both parts, or it writes a buffer that
    a statement allocates.
    """
    (entry,) = (function for function in module.functions if function.name == module.entry)
    marked = tuple(stmt for stmt in entry.body if any(map(is_preprocess, _blocks(stmt))))
    if not marked:
        return None
    rest = tuple(stmt for stmt in entry.body if stmt not in marked)
    mixed = next(
        (block for stmt in marked for block in _blocks(stmt) if not is_preprocess(block)), None
    )
    if mixed is not None:
        raise _not_alone_error(
            f"the block '{mixed.name}', which is not marked, is in the same loop"
        )
    results = buffers_written_in(marked, entry)
    changed = buffers_written_in(rest, entry) & (results | buffers_read(*marked))
    if changed:
        raise _not_alone_error(f"the rest of the program writes '{min(changed)}'")
    allocated = buffers_allocated(rest)
    if results & allocated:
        raise _not_alone_error(f"'{min(results & allocated)}' is allocated by a statement")
    return SplitEntry(_with_buffers_passed(entry, results), marked, rest)


def _blocks(stmt: Any) -> list[Block]:
    """Return the outermost blocks of a statement."""
    if isinstance(stmt, Block):
        return [stmt]
    return [block for child in children(stmt) for block in _blocks(child)]


def _with_buffers_passed(function: Function, names: frozenset[str]) -> Function:
    """Return the function with buffers that it allocated as parameters."""
    namer = namer_of(function)
    handles = {
        declared.name: namer.fresh(f"{declared.name}_ptr")
        for declared in function.buffers
        if declared.handle is None and declared.name in names
    }
    buffers = tuple(
        replace(buffer, handle=handles.get(buffer.name, buffer.handle))
        for buffer in function.buffers
    )
    params = (*function.params, *(Param(name, "handle") for name in handles.values()))
    return replace(function, params=params, buffers=buffers)


def _not_alone_error(why: str) -> UnsupportedError:
    return UnsupportedError(
        "lower.inspector.marked_blocks",
        f"The blocks marked 'preprocess' depend on the rest of the program: {why}.",
        hint="Mark blocks in loops of their own that read only what is passed to the program.",
    )
