"""The state of a verifier while it walks one function, and the diagnostics reported so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import msgspec

from gossamer_ir.core.limits import MAX_DEPTH
from gossamer_ir.errors import Diagnostic, Place
from gossamer_ir.nodes import AnyBuffer, Axis, Expr, For, Function, Node, Reducer, Scope, StageName
from gossamer_ir.traversal.names import is_identifier


class NodePlace(msgspec.Struct, frozen=True, gc=False):
    """The place of a node: a field of its parent node, and an index if the field is a tuple.

    A linked list, because one is made for every node, and `path` is called for diagnostics only.
    """

    above: NodePlace | None
    field: str
    item: int | None
    depth: int

    def down(self, field: str, item: int | None = None) -> NodePlace:
        """Return the place of a child."""
        return NodePlace(self, field, item, self.depth + 1)

    def path(self) -> Place:
        """Return the path from the root as a tuple of field names and indices."""
        parts: list[str | int] = []
        place: NodePlace | None = self
        while place is not None:
            if place.item is not None:
                parts.append(place.item)
            if place.field:
                parts.append(place.field)
            place = place.above
        return tuple(reversed(parts))


ROOT_PLACE = NodePlace(None, "", None, 1)


IndexShape: TypeAlias = tuple[tuple[object, ...], int]
"""The axes over which an array has one element each, and its number of extra elements."""


class KnownBuffer(msgspec.Struct, frozen=True):
    """The properties of a buffer that its accesses are checked against."""

    dtype: str
    ndim: int
    scope: Scope = "global"


ExprCheck: TypeAlias = Callable[["VerifyContext", Any, NodePlace], "str | None"]
"""Checks an expression and returns its dtype, or None if the dtype cannot be determined."""

StmtCheck: TypeAlias = Callable[["VerifyContext", Any, NodePlace], None]


class Stage(msgspec.Struct, frozen=True):
    """The nodes that a stage allows, with the function that checks each."""

    name: StageName
    exprs: Mapping[type[Node], ExprCheck]
    stmts: Mapping[type[Node], StmtCheck]
    buffers: tuple[type[Node], ...]
    loops: frozenset[str] = frozenset()
    has_axes: bool = False
    has_reducers: bool = True


class VerifyContext:
    """The names in scope while one function is walked, and the diagnostics so far."""

    def __init__(
        self, stage: Stage, functions: Mapping[str, Function], reported: list[Diagnostic]
    ) -> None:
        self.stage = stage
        self.functions = functions
        self.diagnostics = reported
        self.names: set[str] = set()
        """The names of values, axes and buffers that were declared anywhere so far."""
        self.labels: set[str] = set()
        """The names of blocks and iterations that were declared anywhere so far."""
        self.vars: dict[str, str] = {}
        """The dtypes of the variables in scope."""
        self.handles: dict[str, str | None] = {}
        """The pointer parameters, with the dtype bound to each; None while unbound."""
        self.axes: dict[str, Axis] = {}
        self.buffers: dict[str, KnownBuffer] = {}
        self.reducers: dict[str, Reducer] = {}
        self.index_shapes: dict[str, IndexShape] = {}
        """The shapes of index arrays, by their handles."""
        self.trusted: set[str] = set()
        """The buffers that cannot be written because axes or facts rely on their content."""
        self.hidden: frozenset[str] = frozenset()
        """The variables that an init cannot use."""
        self.iterated: tuple[str, ...] = ()
        """The axes of the enclosing iterations."""
        self.threads: dict[str, Expr] = {}
        """The extents of thread axes."""
        self.bound: frozenset[str] = frozenset()
        """The thread axes of the enclosing loops."""
        self.loops: tuple[For, ...] = ()
        """The enclosing loops."""
        self.lets: dict[str, Expr] = {}
        """The values of lets."""
        self.calls: list[tuple[str, NodePlace]] = []
        """The functions that it calls, and where."""
        self.pipelined: list[tuple[For, NodePlace]] = []
        """The loops with software pipelining, which are checked last."""
        self._scoped: list[str] = []
        self._is_too_deep = False

    def report(self, code: str, message: str, place: NodePlace, *, hint: str = "") -> None:
        """Add a diagnostic."""
        self.diagnostics.append(Diagnostic(code, message, place.path(), hint))

    def define_name(self, name: str, place: NodePlace) -> None:
        """Declare the name of a value, axis or buffer: an identifier, unique in its function."""
        self._define(name, self.names, place)

    def define_label(self, name: str, place: NodePlace) -> None:
        """Declare the name of a block or iteration, a namespace of its own: only schedules use it."""
        self._define(name, self.labels, place)

    def _define(self, name: str, taken: set[str], place: NodePlace) -> None:
        if name in taken:
            self.report("verify.name.duplicate", f"The name '{name}' is given twice.", place)
        elif not is_identifier(name):
            self.report("verify.name.identifier", f"'{name}' is not an identifier.", place)
        # Also a name that is not an identifier, so that it is reported once.
        taken.add(name)

    def define(self, name: str, dtype: str, place: NodePlace) -> None:
        """Declare a variable to the end of the scope."""
        self.define_name(name, place)
        # A duplicate is reported, and keeps the first definition: its own would end with an inner scope.
        if name not in self.vars:
            self.vars[name] = dtype
            self._scoped.append(name)

    def define_buffer(self, buffer: AnyBuffer, ndim: int, place: NodePlace) -> None:
        """Declare a buffer to the end of the scope."""
        self.define_name(buffer.name, place)
        if buffer.name not in self.buffers:
            self.buffers[buffer.name] = KnownBuffer(buffer.dtype, ndim, buffer.scope)
            self._scoped.append(buffer.name)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Return a context manager that drops, when it exits, the variables and buffers defined in it."""
        mark = len(self._scoped)
        yield
        for name in self._scoped[mark:]:
            self.vars.pop(name, None)
            self.buffers.pop(name, None)
        del self._scoped[mark:]

    def is_too_deep(self, place: NodePlace) -> bool:
        """Return whether the walk must stop at this depth; reported once per function."""
        if place.depth <= MAX_DEPTH:
            return False
        # Once: every sibling at this depth would be reported otherwise.
        if not self._is_too_deep:
            self._is_too_deep = True
            self.report("verify.depth", f"Nodes nest deeper than {MAX_DEPTH} levels.", place)
        return True

    def report_node(self, node: object, place: NodePlace) -> None:
        """Report that the stage does not allow a node."""
        self.report(
            "verify.stage.node",
            f"{type(node).__name__} is not allowed here at the stage '{self.stage.name}'.",
            place,
        )
