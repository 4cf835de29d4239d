"""The emission of an intrinsic in the place of what it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

from msgspec.structs import replace

from gossamer_ir.analysis.linear_form import along
from gossamer_ir.arith.affine import UNIT, affine_of
from gossamer_ir.nodes import Allocate, Block, Expr, For, Function, Guard, Load, Stmt, Store, Var
from gossamer_ir.traversal.effects import NAMING, binds
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.walk import free_vars, rewrite_body, statements, substitute, walk
from gossamer_schedule.tensorization.unify import Match, View


def emitted(emission: Function, match: Match, *, namer: Namer) -> tuple[Stmt, ...]:
    """The body of an emission, its names fresh, its scalars and buffers being what they match."""
    names = {name: namer.fresh(name) for name in _bound(emission)}
    views = {buffer.name: match.views[buffer.name] for buffer in emission.buffers}

    def rule(node: Any) -> Any | None:
        if isinstance(node, NAMING):
            view = views.get(node.buffer)
            return replace(node, buffer=names[node.buffer]) if view is None else _viewed(node, view)
        if isinstance(node, Var):
            scalar = match.scalars.get(node.name)
            return replace(node, name=names[node.name]) if scalar is None else scalar
        renaming = RENAMING.get(type(node))
        return None if renaming is None else renaming(node, names)

    return rewrite_body(emission.body, rule)


def _bound(function: Function) -> Iterator[str]:
    """The names that the body of a function binds."""
    for found in statements(function.body):
        yield from binds(found)


def _viewed(node: Any, view: View) -> Any:
    """An access of an element of a view; a guard names the buffer and no element."""
    if isinstance(node, Guard):
        return replace(node, buffer=view.buffer)
    return replace(node, buffer=view.buffer, indices=_element(view, node.indices))


def _block(node: Block, names: Mapping[str, str]) -> Block:
    iters = tuple(replace(item, var=names[item.var]) for item in node.iters)
    return replace(node, name=names[node.name], iters=iters)


RENAMING: dict[type[Any], Callable[[Any, Mapping[str, str]], Any]] = {
    For: lambda node, names: replace(node, var=names[node.var]),
    Allocate: lambda node, names: replace(
        node, buffer=replace(node.buffer, name=names[node.buffer.name])
    ),
    Block: _block,
}
"""The kinds of statements of an emission that take names as texts (`Let` has a variable, which is
renamed as one); a test compares them with the table of effects."""


def _element(view: View, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The element of a view at indices of the pattern's buffer."""
    pairs = zip(view.loops, at, strict=True)
    places = {loop: expr for loop, expr in pairs if loop is not None}
    return tuple(substitute(part, places) for part in view.indices)


def vector_loops(emission: Function, match: Match) -> dict[str, Set[str]]:
    """The loops along which the emission uses each buffer of the pattern in vectors."""
    vectors = {
        found.var
        for found in statements(emission.body)
        if isinstance(found, For) and found.kind == "vectorized"
    }
    found: dict[str, set[str]] = {buffer.name: set() for buffer in emission.buffers}
    for node in walk(*emission.body):
        if isinstance(node, (Load, Store)) and node.buffer in found:
            loops = match.views[node.buffer].loops
            found[node.buffer] |= {
                loop
                for loop, at in zip(loops, node.indices, strict=True)
                if loop is not None and free_vars(at) & vectors
            }
    return {name: frozenset(loops) for name, loops in found.items()}


def is_run(view: View, loop: str) -> bool:
    """Whether the elements of a view along a loop are next to each other."""
    parts = along(affine_of(view.indices[-1]), loop)
    is_by_one = parts is not None and parts[0] == UNIT
    return is_by_one and loop not in free_vars(*view.indices[:-1])
