"""Intrinsics by name: what they compute, and what a machine does instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256

import msgspec

from gossamer_ir.core.build import integer_value
from gossamer_ir.interchange.records import Intrinsic
from gossamer_ir.nodes import Expr, For, Function, Search, Stmt, Store
from gossamer_ir.traversal.walk import contains, free_vars, resolve
from gossamer_schedule.cursor.cursor import Cursor
from gossamer_schedule.dependence.access import mentioned
from gossamer_schedule.errors import listing, schedule_error
from gossamer_schedule.reductions.reassociation import single_block

INTRINSIC = "intrinsic"
"""The annotation of a block that an intrinsic computes: its name and digest."""


class Described(msgspec.Struct, frozen=True):
    """An intrinsic: one nest of loops, but for those of one iteration, around one store, and the emission
    that does the same."""

    name: str
    mark: str
    loops: tuple[For, ...]
    store: Store
    semantics: Function
    emission: Function


def find_intrinsic(intrinsics: Sequence[Intrinsic], name: str, *, at: Cursor) -> Described:
    """The intrinsic of a name; raises `.no_intrinsic` and `.intrinsic`."""
    found = [item for item in intrinsics if item.name == name]
    if len(found) != 1:
        raise schedule_error(
            f"{at.primitive}.no_intrinsic",
            f"There {'are several intrinsics' if found else 'is no intrinsic'} '{name}'.",
            hint=listing("intrinsics", (item.name for item in intrinsics)),
        )
    described = _described(found[0])
    if described is None:
        raise schedule_error(
            f"{at.primitive}.intrinsic",
            f"Intrinsic '{name}' is not one nest of loops, which tells all sizes, around one block of one "
            "store that uses all buffers, with an emission of the same parameters and buffers.",
        )
    return described


@lru_cache(maxsize=64)
def _described(intrinsic: Intrinsic) -> Described | None:
    from gossamer_ir.script import parse_module  # only where there is an intrinsic

    texts = (intrinsic.semantics, intrinsic.template)
    (semantics,), (emission,) = (parse_module(text).functions for text in texts)
    is_same = semantics.params == emission.params and semantics.buffers == emission.buffers
    loops, block = _nest(semantics.body), single_block(semantics.body)
    if block is None or not is_same or len(block.body) != 1 or block.init or block.predicate:
        return None
    if contains(
        Search, *semantics.body, *emission.body
    ):  # of whole rows, not of elements of a view
        return None
    values = {found.var: found.value for found in block.iters} | unit_values(loops)
    loops = tuple(loop for loop in loops if loop.var not in values)
    store = resolve(block.body[0], values)
    digest = sha256("\0".join((intrinsic.name, *texts)).encode()).hexdigest()[:16]
    sizes = {param.name for param in semantics.params if param.dtype != "handle"}
    is_told = sizes <= free_vars(store, *(loop.extent for loop in loops))
    if not isinstance(store, Store) or not is_told:
        return None
    if {found.name for found in semantics.buffers} != {store.buffer} | mentioned((store,)):
        return None
    return Described(
        intrinsic.name, f"{intrinsic.name}@{digest}", loops, store, semantics, emission
    )


def _nest(body: tuple[Stmt, ...]) -> tuple[For, ...]:
    loops: list[For] = []
    while len(body) == 1 and isinstance(body[0], For):
        loops.append(body[0])
        body = body[0].body
    return tuple(loops)


def unit_values(loops: Iterable[For]) -> dict[str, Expr]:
    """The values of the variables of loops that have one iteration."""
    return {loop.var: loop.start for loop in loops if integer_value(loop.extent) == 1}
