"""Translates the nodes of a function to Python functions of a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Protocol, TypeAlias

from gossamer_ir.analysis.statements.reductions import match_reduction
from gossamer_ir.core.annotations import is_composable
from gossamer_ir.interpret.frame import Eval, Exec, Frame
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.interpret.threads.grid import RunningStmt
from gossamer_ir.nodes import (
    AnyBuffer,
    Atomic,
    Block,
    Expr,
    For,
    Function,
    If,
    Iteration,
    Lanes,
    Let,
    Module,
    Stmt,
    Store,
    While,
)
from gossamer_ir.traversal.buffer_definitions import all_buffers
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.traversal.fields import has_bodies
from gossamer_ir.traversal.walk import stmts
from gossamer_support.items_by_name import items_by_name


class Interpreter(Protocol):
    """The members of the program that translated functions use."""

    @property
    def module(self) -> Module: ...

    @property
    def vscale(self) -> int: ...

    @property
    def chunks(self) -> int: ...

    @property
    def exprs(self) -> Mapping[type, Callable[..., Eval]]: ...

    @property
    def stmts(self) -> Mapping[type, Callable[..., Exec]]: ...

    def function(self, name: str) -> Function:
        """Return a function of the module by name."""
        ...

    def call(self, name: str, arguments: list[Any], *, is_kernel: bool = False) -> None:
        """Run a function."""
        ...


Enclosing: TypeAlias = For | If | Let
"""A statement that contains the current one or, for a let, precedes it in the same body."""


# Other statements: refused around a block with an init.
_AROUND_INITS = (For, If, While, Block, Iteration)
"""The statements through which an init is hoisted, or at which it stays."""


class EnclosingStmt:
    """An enclosing statement; the inits in `hoisted` run just before it (see `inits`)."""

    def __init__(self, node: Enclosing, conditions: tuple[Expr, ...] = ()) -> None:
        self.node = node
        self.conditions = conditions
        self.hoisted: list[Exec] = []


class Translator:
    """Translates the nodes of one function, and holds the state of that translation.

    `around` are the statements that enclose the current one, outermost first, up to the innermost block.
    `whiles` are the while loops among them: the number of statements around each, and the name under which
    its iterations are counted. `inits` are the inits that run before the body of a composable function.
    `vars` and `constants` have the translations that only read a variable or give a constant, by which a
    translation of several operands reads these without a call for each.
    """

    def __init__(self, program: Interpreter, function: Function) -> None:
        self.program = program
        self.function = function
        self.around: list[EnclosingStmt] = []
        self.whiles: list[tuple[int, str]] = []
        self.inits: list[Exec] | None = [] if is_composable(function) else None
        self.buffers = items_by_name(all_buffers(function))
        self.written = buffers_written(function.body)
        self.watched = _watched_buffers(function, self.buffers)
        self.vars: dict[Eval, str] = {}
        self.constants: dict[Eval, Any] = {}
        self._sizes: dict[Expr, Eval] = {}

    @property
    def stage(self) -> str:
        return self.program.module.stage

    def expr(self, node: Expr) -> Eval:
        """Return an expression as a function of the frame."""
        return self.program.exprs[type(node)](node, self)

    def size(self, node: Expr) -> Eval:
        """Return a size as a function of the frame; each is translated once."""
        if node not in self._sizes:
            self._sizes[node] = self.expr(node)
        return self._sizes[node]

    def exprs(self, nodes: tuple[Expr, ...]) -> Callable[[Any], tuple[Any, ...]]:
        """Return several expressions as one function of the frame that returns a tuple."""
        parts = tuple(self.expr(node) for node in nodes)
        names = [self.vars[part] for part in parts if part in self.vars]
        if parts and len(names) == len(parts):
            return _values_of(names, parts)
        # Nearly all tuples have one or two items, for which a display is faster than a loop.
        if len(parts) == 1:
            (only,) = parts
            return lambda frame: (only(frame),)
        if len(parts) == 2:
            first, second = parts
            return lambda frame: (first(frame), second(frame))
        return lambda frame: tuple([part(frame) for part in parts])

    def optional(self, node: Expr | None) -> Eval | None:
        """Return an expression as a function of the frame, None for None."""
        return self.expr(node) if node is not None else None

    def body(self, stmts: tuple[Stmt, ...], under: EnclosingStmt | None = None) -> Exec:
        """Return statements as one function of the frame; `under` is the statement that they are the body
        of."""
        depth = len(self.around)
        if under is not None:
            self.around.append(under)
        steps = tuple(self._stmt(node) for node in stmts)
        del self.around[depth:]
        return call_in_order(steps)

    def lanes(self, lanes: Lanes) -> int:
        """Return the number of lanes on the interpreted machine."""
        return lanes.count * (self.program.vscale if lanes.scalable else 1)

    # Other statements: refused around a block with an init.
    def _stmt(self, node: Stmt) -> Exec:
        if has_bodies(type(node)) and not isinstance(node, _AROUND_INITS):
            _require_no_init(node)
        run = self.program.stmts[type(node)](node, self)
        if self.watched:
            run = _note_stmt(node, run)
        # A let precedes an init in its body, and its value may select the element that the init writes.
        if isinstance(node, Let):
            self.around.append(EnclosingStmt(node))
        return run


def _values_of(names: list[str], parts: tuple[Eval, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the values of several variables as one function of the frame, which looks all of them up at
    once."""
    if len(names) == 1:
        (name,), (part,) = names, parts

        def run_one(frame: Any) -> tuple[Any, ...]:
            try:
                return (frame.values[name],)
            except KeyError:
                return (part(frame),)

        return run_one
    values_of: Callable[[Any], tuple[Any, ...]] = itemgetter(*names)

    def run(frame: Any) -> tuple[Any, ...]:
        try:
            return values_of(frame.values)
        except KeyError:
            # The first variable without a value raises an error with its name.
            return tuple([part(frame) for part in parts])

    return run


def _watched_buffers(function: Function, buffers: Mapping[str, AnyBuffer]) -> frozenset[str]:
    """Return the buffers in memory of a grid or a block that a function writes, if it has loops over
    threads."""
    if not any(isinstance(stmt, For) and stmt.thread for stmt in stmts(function.body)):
        return frozenset()
    written = buffers_written(function.body)
    return frozenset(name for name in written if buffers[name].scope in ("global", "shared"))


def call_in_order(steps: tuple[Exec, ...]) -> Exec:
    """Return several functions of the frame as one that calls them in order."""
    if len(steps) == 1:
        return steps[0]
    if len(steps) == 2:
        first, second = steps

        def run_both(frame: Any) -> None:
            first(frame)
            second(frame)

        return run_both

    def run(frame: Any) -> None:
        for step in steps:
            step(frame)

    return run


# Other statements: refused if they update what other threads update; only `Atomic` may.
def _note_stmt(node: Stmt, run: Exec) -> Exec:
    """Return the function of a statement with a note of which one runs, for the accesses that it makes."""
    reduction = match_reduction(node) if isinstance(node, Store) else None
    running = RunningStmt(node)
    if isinstance(node, Atomic):
        running = RunningStmt(node, node.buffer, node.op, is_atomic=True)
    elif reduction is not None:
        running = RunningStmt(node, reduction.store.buffer, reduction.op)

    def run_noted(frame: Frame) -> None:
        frame.grid.stmt = running
        run(frame)

    return run_noted


def _require_no_init(node: Stmt) -> None:
    """Refuse an init in a statement of a type that the position of inits does not take into account."""
    if any(isinstance(inner, Block) and inner.init for inner in stmts((node,))):
        raise InterpreterError(f"A '{type(node).__name__}' around a block with an init.")
