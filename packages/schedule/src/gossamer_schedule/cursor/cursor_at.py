"""Cursors: references to a statement of a module, with the path to it.

`Cursor[N]` is a cursor at a node of type `N`; `cursor_at` makes the first one, at a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from gossamer_ir.errors import Place
from gossamer_ir.nodes import STMTS, Block, For, Function, Iteration, Let, Module, Stmt
from gossamer_ir.traversal.fields import body_fields, has_bodies
from gossamer_support.identity_cache import memoize_by_identity

_NODES_WITH_BODIES: tuple[type[Any], ...] = (Function, *filter(has_bodies, STMTS))

ADDRESSABLE_BODIES: dict[type, tuple[str, ...]] = {
    kind: tuple(field for field in body_fields(kind) if field != "init")
    for kind in _NODES_WITH_BODIES
}
"""The fields that hold statements which schedules may address. Statements of inits have no names."""


class AddressedKind(msgspec.Struct, frozen=True):
    """A type of statement that schedules address by a name."""

    field: str
    """The field that holds the name."""
    word: str
    """The word for such a statement in errors."""


ADDRESSED: dict[type[Any], AddressedKind] = {
    For: AddressedKind("var", "loop"),
    Block: AddressedKind("name", "block"),
    Iteration: AddressedKind("name", "iteration"),
}
"""The types of statements that schedules address by a name."""


def name_of(stmt: Stmt) -> str | None:
    """Return the name of a loop, block or iteration, None for other statements."""
    kind = ADDRESSED.get(type(stmt))
    name: str | None = None if kind is None else getattr(stmt, kind.field)
    return name


class PathStep(msgspec.Struct, frozen=True):
    """One step down: from a parent node to the statement at an index of one of its fields of statements."""

    parent: Any
    field: str
    index: int

    @property
    def body(self) -> tuple[Stmt, ...]:
        """The statements of the field."""
        body: tuple[Stmt, ...] = getattr(self.parent, self.field)
        return body

    @property
    def earlier(self) -> tuple[Stmt, ...]:
        """The statements of the field before the one that the step leads to."""
        return self.body[: self.index]


N_co = TypeVar("N_co", covariant=True)
K = TypeVar("K", For, Block, Iteration)


class Cursor(msgspec.Struct, Generic[N_co], frozen=True):
    """A reference to a statement or a function of a module, of type `N_co`.

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
    node: N_co
    path: tuple[PathStep, ...]

    @property
    def function(self) -> Function:
        owner: Any = self.path[0].parent if self.path else self.node
        function: Function = owner
        return function

    @property
    def top(self) -> Cursor[Function]:
        """The cursor at the function."""
        return self.up(len(self.path))

    @property
    def parents(self) -> tuple[Any, ...]:
        """The enclosing nodes, the function first."""
        return tuple(step.parent for step in self.path)

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
    def body(self) -> tuple[Stmt, ...]:
        """The body that contains the statement."""
        return self.path[-1].body

    @property
    def index(self) -> int:
        """The index of the statement in the body that contains it."""
        return self.path[-1].index

    @property
    def place(self) -> Place:
        """The place of errors about the statement: its path from the module."""
        hops = [item for step in self.path for item in (step.field, step.index)]
        return ("functions", self.module.functions.index(self.function), *hops)

    def up(self, count: int) -> Cursor[Any]:
        """Return the cursor at the ancestor `count` steps up."""
        if count == 0:
            return self
        cut = len(self.path) - count
        return Cursor(self.module, self.primitive, self.path[cut].parent, self.path[:cut])

    def down(self, body: str, index: int) -> Cursor[Any]:
        """Return the cursor at statement `index` of one of the bodies."""
        step = PathStep(self.node, body, index)
        return Cursor(self.module, self.primitive, step.body[index], (*self.path, step))

    def steps_from(self, ancestor: Cursor[object]) -> tuple[PathStep, ...]:
        """Return the steps down from an ancestor to the statement."""
        return self.path[len(ancestor.path) :]

    def below(self) -> Iterator[Cursor[Any]]:
        """Yield cursors at all statements below, in program order, parents first."""
        # A stack instead of recursion: statements may be nested deeper than Python's stack.
        stack = self._children()
        while stack:
            cursor = stack.pop()
            yield cursor
            stack += cursor._children()

    def _children(self) -> list[Cursor[Any]]:
        """Return cursors at the child statements, last one first."""
        module, primitive, node, path = self.module, self.primitive, self.node, self.path
        return [
            Cursor(module, primitive, child, (*path, PathStep(node, name, number)))
            for name in ADDRESSABLE_BODIES.get(type(node), ())
            for number, child in enumerate(getattr(node, name))
        ][::-1]

    def is_beside(self, other: Cursor[object]) -> bool:
        """Return whether the statement and another one are in the same body."""
        # By identity of the parent, since two bodies of a program may be equal.
        this_step, other_step = self.path[-1], other.path[-1]
        return this_step.parent is other_step.parent and this_step.field == other_step.field

    def precedes(self, other: Cursor[object]) -> bool:
        """Return whether the statement comes before another one in the same body."""
        return self.is_beside(other) and self.index < other.index

    def siblings_until(self, other: Cursor[object]) -> tuple[Stmt, ...]:
        """Return the statements between the statement and a later one in the same body."""
        return self.body[self.index + 1 : other.index]

    def function_in(self, module: Module) -> Cursor[Function]:
        """Return the cursor at the function of the same name in a module that was derived from this one."""
        # By name: the function in the other module is a changed copy.
        name = self.function.name
        function = next(candidate for candidate in module.functions if candidate.name == name)
        return Cursor(module, self.primitive, function, ())

    def with_function(self, new: Function) -> Cursor[Function]:
        """Return the cursor at `new`, in the module in which it replaces the function."""
        module = module_with_function(self.module, self.function, new)
        return Cursor(module, self.primitive, new, ())

    def replace_with(self, new: tuple[Stmt, ...]) -> Cursor[Function]:
        """Return the cursor at the function with the statement replaced, in the module with that function."""
        return self.replace_run(1, new)

    def replace_run(self, count: int, new: tuple[Stmt, ...]) -> Cursor[Function]:
        """Return the cursor at the function with `count` statements replaced, of which the statement is the
        first, in the module with that function."""
        return self.with_function(function_with_replaced(self, new, count=count))


def cursor_at(module: Module, function: Function, *, primitive: str = "") -> Cursor[Function]:
    """Return the cursor at a function of a module."""
    return Cursor(module, primitive, function, ())


def nest_depth(cursor: Cursor[object]) -> int:
    """Return the number of innermost enclosing loops with no other statement between them."""
    count = 0
    for step in reversed(cursor.path):
        if not isinstance(step.parent, For):
            break
        count += 1
    return count


def find_by_name(top: Cursor[object], kind: type[K], name: str) -> list[Cursor[K]]:
    """Return cursors at the statements below with a kind and a name.

    A schedule looks up names in each step, so no cursors are made at other statements.
    """
    # Each entry holds the one above it, so that paths are made only to the statements that are found.
    cursors: list[Cursor[K]] = []
    naming = ADDRESSED[kind].field
    stack: list[tuple[Any, Any, str, int]] = [(top.node, None, "", 0)]
    while stack:
        entry: tuple[Any, Any, str, int] = stack.pop()
        node = entry[0]
        if type(node) is kind and getattr(node, naming) == name:
            cursors.append(
                Cursor(top.module, top.primitive, node, (*top.path, *_path_of_entry(entry)))
            )
        for field in ADDRESSABLE_BODIES[type(node)]:
            for number, child in enumerate(getattr(node, field)):
                if type(child) in ADDRESSABLE_BODIES:  # all named statements have bodies
                    stack.append((child, entry, field, number))
    return cursors


def _path_of_entry(entry: Any) -> tuple[PathStep, ...]:
    hops: list[PathStep] = []
    while entry[1] is not None:
        _, above, field, number = entry
        hops.append(PathStep(above[0], field, number))
        entry = above
    return tuple(reversed(hops))


def addressable_stmts(body: tuple[Stmt, ...]) -> Iterator[Any]:
    """Yield all statements of a body, nested ones included, in program order, parents first."""
    stack = list(body[::-1])
    while stack:
        child = stack.pop()
        yield child
        for name in reversed(ADDRESSABLE_BODIES.get(type(child), ())):
            stack += getattr(child, name)[::-1]


@memoize_by_identity
def addressable_stmts_of(function: Function) -> tuple[Any, ...]:
    """Return `addressable_stmts` of the body of a function."""
    return tuple(addressable_stmts(function.body))


def function_with_replaced(
    cursor: Cursor[object], new: tuple[Stmt, ...], *, count: int = 1
) -> Function:
    """Return the function with `count` statements replaced, of which that at the cursor is the first."""
    body: tuple[Any, ...] = new
    for step in reversed(cursor.path):
        body = (*step.earlier, *body, *step.body[step.index + count :])
        body = (replace(step.parent, **{step.field: body}),)
        count = 1  # one statement of each body around them contains them
    function: Function = body[0]
    return function


def module_with_function(module: Module, old: Function, new: Function) -> Module:
    """Return the module with one function replaced."""
    # By identity, since the comparison of two functions takes time proportional to their size.
    functions = tuple(new if function is old else function for function in module.functions)
    return replace(module, functions=functions)


def has_let(cursor: Cursor[object], hops: int) -> bool:
    """Return whether a `Let` precedes the cursor in one of the last `hops` bodies on its path."""
    steps = cursor.path[len(cursor.path) - hops :]
    return any(isinstance(stmt, Let) for step in steps for stmt in step.earlier)
