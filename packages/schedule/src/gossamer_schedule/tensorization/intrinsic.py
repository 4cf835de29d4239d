"""Intrinsics by name: the description of what each computes, and its implementation on a machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

import msgspec

from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Intrinsic
from gossamer_ir.nodes import Block, Expr, For, Function, Search, Stmt, Store
from gossamer_ir.traversal.buffer_uses import buffers_accessed
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import contains
from gossamer_schedule.cursor.cursor_at import Cursor
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.nests.block_nest import single_block


class ParsedIntrinsic(msgspec.Struct, frozen=True):
    """An intrinsic: the store and loops of its description, and an equivalent implementation.

    Loops with one iteration are left out.
    """

    name: str
    mark: str
    loops: tuple[For, ...]
    store: Store
    semantics: Function
    implementation: Function


def find_intrinsic(
    intrinsics: Sequence[Intrinsic], name: str, *, cursor: Cursor[object]
) -> ParsedIntrinsic:
    """Return the intrinsic of a name; raises `.no_intrinsic` and `.intrinsic`."""
    candidates = [item for item in intrinsics if item.name == name]
    if len(candidates) != 1:
        raise schedule_error(
            f"{cursor.primitive}.no_intrinsic",
            f"There {'are several intrinsics' if candidates else 'is no intrinsic'} '{name}'.",
            hint=listing("intrinsics", (item.name for item in intrinsics)),
        )
    parsed = _parsed_intrinsic(candidates[0])
    if parsed is None:
        raise schedule_error(
            f"{cursor.primitive}.intrinsic",
            f"Intrinsic '{name}' cannot be matched: expected loops around one block with one store, which "
            "use all sizes and buffers, and an implementation with the same parameters and buffers.",
        )
    return parsed


@lru_cache(maxsize=64)
def _parsed_intrinsic(intrinsic: Intrinsic) -> ParsedIntrinsic | None:
    from gossamer_ir.script import parse_module  # the parser is for intrinsics only

    texts = (intrinsic.semantics, intrinsic.implementation)
    (semantics,), (implementation,) = (parse_module(text).functions for text in texts)
    is_same = (
        semantics.params == implementation.params and semantics.buffers == implementation.buffers
    )
    loops, block = _loops_of_nest(semantics.body), single_block(semantics.body)
    if block is None or not is_same or len(block.body) != 1 or block.init or block.predicate:
        return None
    if contains(
        Search, *semantics.body, *implementation.body
    ):  # a search covers a row, and a buffer binding maps single elements
        return None
    loops, values = matched_loops(loops, block)
    store = resolve(block.body[0], values)
    digest = sha256("\0".join((intrinsic.name, *texts)).encode()).hexdigest()[:16]
    sizes = {param.name for param in semantics.params if param.dtype != "handle"}
    is_complete = sizes <= free_vars(store, *(loop.extent for loop in loops))
    if not isinstance(store, Store) or not is_complete:
        return None
    if {buffer.name for buffer in semantics.buffers} != {store.buffer} | buffers_accessed(store):
        return None
    return ParsedIntrinsic(
        intrinsic.name, f"{intrinsic.name}@{digest}", loops, store, semantics, implementation
    )


def _loops_of_nest(body: tuple[Stmt, ...]) -> tuple[For, ...]:
    """Return the loops of a perfect nest, from the outermost."""
    loops: list[For] = []
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    return tuple(loops)


def matched_loops(loops: tuple[For, ...], block: Block) -> tuple[tuple[For, ...], dict[str, Expr]]:
    """Return the loops of a nest that take part in a match, and the values of all other variables.

    A loop with one iteration has a value, not a range, and would not match any loop of the other nest.
    """
    values = {iterator.var: iterator.value for iterator in block.iters}
    values |= {loop.var: loop.start for loop in loops if integer_value(loop.extent) == 1}
    return tuple(loop for loop in loops if loop.var not in values), values
