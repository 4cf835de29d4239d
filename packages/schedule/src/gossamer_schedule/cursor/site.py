"""Where loops, blocks and iterations stand, and replacing what stands there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.errors import Place
from gossamer_ir.nodes import (
    STATEMENTS,
    Block,
    For,
    Function,
    Iteration,
    Let,
    Module,
    Stmt,
)
from gossamer_ir.traversal.identity_cache import memoize_by_identity
from gossamer_ir.traversal.walk import body_fields, has_bodies

PathStep: TypeAlias = tuple[Any, str, int]
"""One step down: the parent node, the name of its body, the index in it."""

_HOLDING: tuple[type[Any], ...] = (Function, *filter(has_bodies, STATEMENTS))

BODIES: dict[type, tuple[str, ...]] = {
    kind: tuple(field for field in body_fields(kind) if field != "init") for kind in _HOLDING
}
"""The fields that hold statements which a schedule may address; those of inits have no names."""


_NAMES: dict[type, str] = {For: "var", Block: "name", Iteration: "name"}
"""The field by which schedules address a statement."""


def name_of(statement: Any) -> str:
    """The name of a loop, block or iteration; nothing for another statement."""
    return getattr(statement, _NAMES.get(type(statement), ""), "")


class Site(msgspec.Struct, frozen=True):
    """A statement and the way to it from its function, which is the first hop's parent."""

    node: Any
    path: tuple[PathStep, ...]

    @property
    def function(self) -> Function:
        found: Function = self.path[0][0]
        return found

    @property
    def parents(self) -> tuple[Any, ...]:
        """The nodes above, the function first."""
        return tuple(parent for parent, _, _ in self.path)

    @property
    def loops(self) -> tuple[For, ...]:
        """The loops above, outermost first."""
        return tuple(parent for parent in self.parents if isinstance(parent, For))

    @property
    def nest(self) -> tuple[For, ...]:
        """The loops directly above, outermost first, with nothing but loops between them."""
        count = nest_depth(self)
        return self.parents[len(self.path) - count :]

    @property
    def scope(self) -> tuple[For, ...]:
        """The loops above in the same block, outermost first, whatever stands between them."""
        found: list[For] = []
        for parent in reversed(self.parents):
            if isinstance(parent, Block):
                break
            if isinstance(parent, For):
                found.insert(0, parent)
        return tuple(found)

    @property
    def siblings(self) -> tuple[Stmt, ...]:
        """The body that the statement stands in."""
        parent, name, _ = self.path[-1]
        found: tuple[Stmt, ...] = getattr(parent, name)
        return found

    def up(self, count: int) -> Site:
        """The site of the ancestor that many hops up."""
        if count == 0:
            return self
        cut = len(self.path) - count
        return Site(self.path[cut][0], self.path[:cut])

    def place(self, module: Module) -> Place:
        """The path from the module."""
        hops = [item for _, name, index in self.path for item in (name, index)]
        return ("functions", module.functions.index(self.function), *hops)


def nest_depth(site: Site) -> int:
    """How many loops stand directly above, one in the other."""
    count = 0
    for parent, _, _ in reversed(site.path):
        if not isinstance(parent, For):
            break
        count += 1
    return count


def sites(top: Any, path: tuple[PathStep, ...] = ()) -> Iterator[Site]:
    """Every statement below, in program order, parents first."""
    stack = _sites_in(top, path)
    while stack:
        site = stack.pop()
        yield site
        stack += _sites_in(site.node, site.path)


def _sites_in(top: Any, path: tuple[PathStep, ...]) -> list[Site]:
    """The statements directly below, the last one first."""
    return [
        Site(child, (*path, (top, name, index)))
        for name in BODIES.get(type(top), ())
        for index, child in enumerate(getattr(top, name))
    ][::-1]


def named(top: Any, kind: type, name: str) -> list[Site]:
    """The sites of the statements of a kind that have a name, without those of all others."""
    found: list[Site] = []
    naming = _NAMES[kind]
    stack: list[tuple[Any, Any, str, int]] = [(top, None, "", 0)]
    while stack:
        entry = stack.pop()
        node = entry[0]
        if type(node) is kind and getattr(node, naming) == name:
            found.append(Site(node, _path(entry)))
        for field in BODIES[type(node)]:
            for at, child in enumerate(getattr(node, field)):
                if type(child) in BODIES:  # what has a name has a body
                    stack.append((child, entry, field, at))
    return found


def _path(entry: Any) -> tuple[PathStep, ...]:
    hops: list[PathStep] = []
    while entry[1] is not None:
        _, above, field, at = entry
        hops.append((above[0], field, at))
        entry = above
    return tuple(reversed(hops))


def statements(body: tuple[Stmt, ...]) -> Iterator[Any]:
    """Every statement of a body and below it, in program order, parents first."""
    stack = list(body[::-1])
    while stack:
        child = stack.pop()
        yield child
        for name in reversed(BODIES.get(type(child), ())):
            stack += getattr(child, name)[::-1]


@memoize_by_identity
def statements_of(function: Function) -> tuple[Any, ...]:
    """`statements` of a whole function."""
    return tuple(statements(function.body))


def replaced(site: Site, new: tuple[Stmt, ...]) -> Function:
    """The function with the site's statement replaced by others."""
    body: tuple[Any, ...] = new
    for parent, name, index in reversed(site.path):
        old = getattr(parent, name)
        body = (replace(parent, **{name: old[:index] + body + old[index + 1 :]}),)
    function: Function = body[0]
    return function


def with_function(module: Module, old: Function, new: Function) -> Module:
    """The module with one function replaced."""
    functions = tuple(new if found is old else found for found in module.functions)
    return replace(module, functions=functions)


def has_let(site: Site, hops: int) -> bool:
    """Whether a `Let` stands before the site in one of the last `hops` bodies on its path."""
    for parent, name, index in site.path[len(site.path) - hops :]:
        if any(isinstance(found, Let) for found in getattr(parent, name)[:index]):
            return True
    return False
