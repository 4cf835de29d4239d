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


class Cursor(msgspec.Struct, frozen=True):
    """A statement or a function of a module, and the way to it.

    The path begins at the function; that of the function itself is empty. `primitive` is the name of the
    primitive that the cursor was made for, which the codes of its refusals begin with.

    >>> from gossamer_testkit.examples import SCALE
    >>> top = cursor_at(SCALE, SCALE.functions[0], primitive="split")
    >>> [name_of(found.node) for found in top.below() if name_of(found.node)]
    ['i', 'scale']
    """

    module: Module
    primitive: str
    node: Any
    path: tuple[PathStep, ...]

    @property
    def function(self) -> Function:
        found: Function = self.path[0][0] if self.path else self.node
        return found

    @property
    def top(self) -> Cursor:
        """The cursor at the function."""
        return self.up(len(self.path))

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

    @property
    def place(self) -> Place:
        """The path from the module, for errors."""
        hops = [item for _, name, index in self.path for item in (name, index)]
        return ("functions", self.module.functions.index(self.function), *hops)

    def up(self, count: int) -> Cursor:
        """The cursor at the ancestor that many steps up."""
        if count == 0:
            return self
        cut = len(self.path) - count
        return Cursor(self.module, self.primitive, self.path[cut][0], self.path[:cut])

    def down(self, body: str, index: int) -> Cursor:
        """The cursor at a statement in one of the bodies."""
        child = getattr(self.node, body)[index]
        return Cursor(self.module, self.primitive, child, (*self.path, (self.node, body, index)))

    def below(self) -> Iterator[Cursor]:
        """The cursors at every statement below, in program order, parents first."""
        stack = self._children()
        while stack:
            found = stack.pop()
            yield found
            stack += found._children()

    def _children(self) -> list[Cursor]:
        """The cursors at the statements directly below, the last one first."""
        module, primitive, node, path = self.module, self.primitive, self.node, self.path
        return [
            Cursor(module, primitive, child, (*path, (node, name, index)))
            for name in BODIES.get(type(node), ())
            for index, child in enumerate(getattr(node, name))
        ][::-1]

    def with_function(self, new: Function) -> Cursor:
        """The cursor at the function that takes the place of this one, in the module that has it."""
        module = with_function(self.module, self.function, new)
        return Cursor(module, self.primitive, new, ())

    def replaced_by(self, new: tuple[Stmt, ...]) -> Cursor:
        """The cursor at the function in which the statement is replaced by others, in the module with it."""
        return self.with_function(replaced(self, new))


def cursor_at(module: Module, function: Function, *, primitive: str = "") -> Cursor:
    """The cursor at a function of a module."""
    return Cursor(module, primitive, function, ())


def nest_depth(cursor: Cursor) -> int:
    """How many loops stand directly above, one in the other."""
    count = 0
    for parent, _, _ in reversed(cursor.path):
        if not isinstance(parent, For):
            break
        count += 1
    return count


def named(top: Cursor, kind: type, name: str) -> list[Cursor]:
    """The cursors at the statements of a kind below that have a name, without making those at all others."""
    found: list[Cursor] = []
    naming = _NAMES[kind]
    stack: list[tuple[Any, Any, str, int]] = [(top.node, None, "", 0)]
    while stack:
        entry = stack.pop()
        node = entry[0]
        if type(node) is kind and getattr(node, naming) == name:
            found.append(Cursor(top.module, top.primitive, node, (*top.path, *_path(entry))))
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


def replaced(cursor: Cursor, new: tuple[Stmt, ...]) -> Function:
    """The function with the cursor's statement replaced by others."""
    body: tuple[Any, ...] = new
    for parent, name, index in reversed(cursor.path):
        old = getattr(parent, name)
        body = (replace(parent, **{name: old[:index] + body + old[index + 1 :]}),)
    function: Function = body[0]
    return function


def with_function(module: Module, old: Function, new: Function) -> Module:
    """The module with one function replaced."""
    functions = tuple(new if found is old else found for found in module.functions)
    return replace(module, functions=functions)


def has_let(cursor: Cursor, hops: int) -> bool:
    """Whether a `Let` stands before the cursor in one of the last `hops` bodies on its path."""
    for parent, name, index in cursor.path[len(cursor.path) - hops :]:
        if any(isinstance(found, Let) for found in getattr(parent, name)[:index]):
            return True
    return False
