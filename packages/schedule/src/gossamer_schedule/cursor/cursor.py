"""Cursors: references to a statement of a module, with the path to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from gossamer_ir.errors import Place
from gossamer_ir.nodes import STATEMENTS, Block, For, Function, Iteration, Let, Module, Stmt
from gossamer_ir.support.identity_cache import memoize_by_identity
from gossamer_ir.traversal.fields import body_fields, has_bodies

PathStep: TypeAlias = tuple[Any, str, int]
"""One step down: the parent node, the name of its body, the index in it."""

_NODES_WITH_BODIES: tuple[type[Any], ...] = (Function, *filter(has_bodies, STATEMENTS))

ADDRESSABLE_BODIES: dict[type, tuple[str, ...]] = {
    kind: tuple(field for field in body_fields(kind) if field != "init")
    for kind in _NODES_WITH_BODIES
}
"""The fields that hold statements which schedules may address. Statements of inits have no names."""

_NAME_FIELDS: dict[type, str] = {For: "var", Block: "name", Iteration: "name"}
"""The field by which schedules address a statement."""


def name_of(statement: Any) -> str:
    """Return the name of a loop, block or iteration, or an empty text for other statements."""
    return getattr(statement, _NAME_FIELDS.get(type(statement), ""), "")


class Cursor(msgspec.Struct, frozen=True):
    """A reference to a statement or a function of a module.

    `path` holds the steps from the function down to the node; it is empty for the function itself.
    `primitive` is the name of the primitive that is applied. Checks that are given a cursor take from it
    the first part of their error codes and the place of their errors.

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
        owner: Function = self.path[0][0] if self.path else self.node
        return owner

    @property
    def top(self) -> Cursor:
        """The cursor at the function."""
        return self.up(len(self.path))

    @property
    def parents(self) -> tuple[Any, ...]:
        """The enclosing nodes, the function first."""
        return tuple(parent for parent, _, _ in self.path)

    @property
    def loops(self) -> tuple[For, ...]:
        """The enclosing loops, outermost first."""
        return tuple(parent for parent in self.parents if isinstance(parent, For))

    @property
    def nest(self) -> tuple[For, ...]:
        """The innermost enclosing loops with no other statement between them, outermost first."""
        count = nest_depth(self)
        return self.parents[len(self.path) - count :]

    @property
    def loops_in_block(self) -> tuple[For, ...]:
        """The enclosing loops up to the nearest enclosing block, outermost first."""
        loops: list[For] = []
        for parent in reversed(self.parents):
            if isinstance(parent, Block):
                break
            if isinstance(parent, For):
                loops.insert(0, parent)
        return tuple(loops)

    @property
    def siblings(self) -> tuple[Stmt, ...]:
        """The body that contains the statement."""
        parent, name, _ = self.path[-1]
        body: tuple[Stmt, ...] = getattr(parent, name)
        return body

    @property
    def index(self) -> int:
        """The index of the statement in the body that contains it."""
        return self.path[-1][2]

    @property
    def place(self) -> Place:
        """The place of errors about the statement: its path from the module."""
        hops = [item for _, name, index in self.path for item in (name, index)]
        return ("functions", self.module.functions.index(self.function), *hops)

    def up(self, count: int) -> Cursor:
        """Return the cursor at the ancestor `count` steps up."""
        if count == 0:
            return self
        cut = len(self.path) - count
        return Cursor(self.module, self.primitive, self.path[cut][0], self.path[:cut])

    def down(self, body: str, index: int) -> Cursor:
        """Return the cursor at statement `index` of one of the bodies."""
        child = getattr(self.node, body)[index]
        return Cursor(self.module, self.primitive, child, (*self.path, (self.node, body, index)))

    def below(self) -> Iterator[Cursor]:
        """Return cursors at all statements below, in program order, parents first."""
        stack = self._children()
        while stack:
            cursor = stack.pop()
            yield cursor
            stack += cursor._children()

    def _children(self) -> list[Cursor]:
        """Return cursors at the child statements, last one first."""
        module, primitive, node, path = self.module, self.primitive, self.node, self.path
        return [
            Cursor(module, primitive, child, (*path, (node, name, index)))
            for name in ADDRESSABLE_BODIES.get(type(node), ())
            for index, child in enumerate(getattr(node, name))
        ][::-1]

    def precedes(self, other: Cursor) -> bool:
        """Return whether the statement comes before another one in the same body."""
        parent, field, index = self.path[-1]
        other_parent, other_field, other_index = other.path[-1]
        return parent is other_parent and field == other_field and index < other_index

    def siblings_until(self, other: Cursor) -> tuple[Stmt, ...]:
        """Return the statements between the statement and a later one in the same body."""
        return self.siblings[self.index + 1 : other.index]

    def with_function(self, new: Function) -> Cursor:
        """Return the cursor at `new`, in the module in which it replaces the function."""
        module = module_with_function(self.module, self.function, new)
        return Cursor(module, self.primitive, new, ())

    def replaced_by(self, new: tuple[Stmt, ...]) -> Cursor:
        """Return the cursor at the function with the statement replaced, in the module with that function."""
        return self.with_function(function_with_replaced(self, new))


def cursor_at(module: Module, function: Function, *, primitive: str = "") -> Cursor:
    """Return the cursor at a function of a module."""
    return Cursor(module, primitive, function, ())


def nest_depth(cursor: Cursor) -> int:
    """Return the number of innermost enclosing loops with no other statement between them."""
    count = 0
    for parent, _, _ in reversed(cursor.path):
        if not isinstance(parent, For):
            break
        count += 1
    return count


def find_by_name(top: Cursor, kind: type, name: str) -> list[Cursor]:
    """Return cursors at the statements below with a kind and a name.

    A schedule looks up names in each step, so no cursors are made at other statements.
    """
    cursors: list[Cursor] = []
    naming = _NAME_FIELDS[kind]
    stack: list[tuple[Any, Any, str, int]] = [(top.node, None, "", 0)]
    while stack:
        entry = stack.pop()
        node = entry[0]
        if type(node) is kind and getattr(node, naming) == name:
            cursors.append(
                Cursor(top.module, top.primitive, node, (*top.path, *_path_of_entry(entry)))
            )
        for field in ADDRESSABLE_BODIES[type(node)]:
            for at, child in enumerate(getattr(node, field)):
                if type(child) in ADDRESSABLE_BODIES:  # all named statements have bodies
                    stack.append((child, entry, field, at))
    return cursors


def _path_of_entry(entry: Any) -> tuple[PathStep, ...]:
    hops: list[PathStep] = []
    while entry[1] is not None:
        _, above, field, at = entry
        hops.append((above[0], field, at))
        entry = above
    return tuple(reversed(hops))


def addressable_statements(body: tuple[Stmt, ...]) -> Iterator[Any]:
    """Return all statements of a body, nested ones included, in program order, parents first."""
    stack = list(body[::-1])
    while stack:
        child = stack.pop()
        yield child
        for name in reversed(ADDRESSABLE_BODIES.get(type(child), ())):
            stack += getattr(child, name)[::-1]


@memoize_by_identity
def addressable_statements_of(function: Function) -> tuple[Any, ...]:
    """Return `addressable_statements` of the body of a function."""
    return tuple(addressable_statements(function.body))


def function_with_replaced(cursor: Cursor, new: tuple[Stmt, ...]) -> Function:
    """Return the function with the statement at the cursor replaced."""
    body: tuple[Any, ...] = new
    for parent, name, index in reversed(cursor.path):
        old = getattr(parent, name)
        body = (replace(parent, **{name: old[:index] + body + old[index + 1 :]}),)
    function: Function = body[0]
    return function


def module_with_function(module: Module, old: Function, new: Function) -> Module:
    """Return the module with one function replaced."""
    functions = tuple(new if function is old else function for function in module.functions)
    return replace(module, functions=functions)


def has_let(cursor: Cursor, hops: int) -> bool:
    """Return whether a `Let` precedes the cursor in one of the last `hops` bodies on its path."""
    for parent, name, index in cursor.path[len(cursor.path) - hops :]:
        if any(isinstance(statement, Let) for statement in getattr(parent, name)[:index]):
            return True
    return False
