"""What a program marks as preparing data, apart from the rest of it."""

from __future__ import annotations

from typing import Any

import msgspec

from gossamer_ir.analysis.invariants import written_in
from gossamer_ir.core.marks import is_preprocess
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Block, Function, Module, Param, Stmt
from gossamer_ir.traversal.effects import buffers_allocated
from gossamer_ir.traversal.names import namer_of
from gossamer_ir.traversal.walk import buffers_read, children


class Parted(msgspec.Struct, frozen=True):
    """An entry whose marked statements are a function of their own: what they write is passed to both."""

    function: Function
    marked: tuple[Stmt, ...]
    rest: tuple[Stmt, ...]


def part_marked(module: Module) -> Parted | None:
    """The entry in two parts, if some of its blocks are marked `preprocess`.

    Raises `UnsupportedError` (`lower.preprocess.order`) where the marked part does not stand alone: the
    rest writes what it reads or writes, a loop holds blocks of both, or it allocates what it writes in a
    statement.
    """
    (entry,) = (found for found in module.functions if found.name == module.entry)
    marked = tuple(stmt for stmt in entry.body if any(map(is_preprocess, _blocks(stmt))))
    if not marked:
        return None
    rest = tuple(stmt for stmt in entry.body if stmt not in marked)
    mixed = next(
        (found for stmt in marked for found in _blocks(stmt) if not is_preprocess(found)), None
    )
    if mixed is not None:
        raise _not_alone(
            f"the block '{mixed.name}', which is not marked, stands in one loop with it"
        )
    results = written_in(marked, entry)
    changed = written_in(rest, entry) & (results | buffers_read(*marked))
    if changed:
        raise _not_alone(f"the rest of the program writes '{min(changed)}'")
    allocated = buffers_allocated(rest)
    if results & allocated:
        raise _not_alone(f"'{min(results & allocated)}' is allocated by a statement")
    return Parted(_passing(entry, results), marked, rest)


def _blocks(stmt: Any) -> list[Block]:
    """The outermost blocks of a statement."""
    if isinstance(stmt, Block):
        return [stmt]
    return [found for child in children(stmt) for found in _blocks(child)]


def _passing(function: Function, names: frozenset[str]) -> Function:
    """A function to which buffers that it allocated are passed."""
    namer = namer_of(function)
    handles = {
        found.name: namer.fresh(f"{found.name}_ptr")
        for found in function.buffers
        if found.handle is None and found.name in names
    }
    buffers = tuple(
        msgspec.structs.replace(found, handle=handles.get(found.name, found.handle))
        for found in function.buffers
    )
    params = (*function.params, *(Param(name, "handle") for name in handles.values()))
    return msgspec.structs.replace(function, params=params, buffers=buffers)


def _not_alone(why: str) -> UnsupportedError:
    return UnsupportedError(
        "lower.preprocess.order",
        f"What is marked 'preprocess' does not stand alone: {why}.",
        hint="Mark what only reads what is passed, in loops of its own.",
    )
