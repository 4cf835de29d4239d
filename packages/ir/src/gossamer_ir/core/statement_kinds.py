"""The effects of each type of statement: one table for all passes and primitives.

`effects_of` returns the effects of one statement: the expressions that it evaluates, the elements that
it reads and writes, its bodies and when they run. `STMT_KINDS` also has the names that it binds with
their values, the memory that it allocates, and the condition that holds after it. The same of expressions is
in `core.expression_kinds`. Tests check that both tables cover the language, so a new type of node cannot be
forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeGuard

import msgspec

from gossamer_ir.core.build import index_var, integer_value, is_handle
from gossamer_ir.core.conditions import conjuncts
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Allocate,
    AsyncCopy,
    Atomic,
    Barrier,
    Block,
    Combine,
    CommitGroup,
    Expr,
    For,
    Guard,
    If,
    Iteration,
    Launch,
    Let,
    Load,
    ParallelFor,
    Prefetch,
    Shuffle,
    Stmt,
    Store,
    Unary,
    Var,
    WaitGroup,
    While,
)


class Body(msgspec.Struct, frozen=True):
    """A body of a statement, and when it runs."""

    field: str
    """The field of the statement that holds it."""
    stmts: tuple[Stmt, ...]
    condition: Expr | None = None
    """The condition that holds when the body begins to run; its own writes may invalidate it."""
    runs_always: bool = False
    """True if the body runs at least once each time that the statement does."""
    repeats: bool = False
    """True if the body may run several times each time that the statement does."""
    is_init: bool = False

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """The conjuncts of the condition; none if there is no condition."""
        return tuple(conjuncts(self.condition))


class Effects(msgspec.Struct, frozen=True):
    """The effects of a statement itself, without those of its bodies."""

    evaluates: tuple[Expr, ...] = ()
    """The expressions that the statement evaluates, in order."""
    reads: tuple[Load, ...] = ()
    """The elements that it reads in addition to the loads in these expressions."""
    writes: tuple[Store | Atomic, ...] = ()
    bodies: tuple[Body, ...] = ()
    callee: str | None = None
    """The function of the module that it calls."""
    passed_buffers: tuple[str, ...] = ()
    """The handles and allocated buffers whose addresses it passes to that function."""


def is_stmt(node: object) -> TypeGuard[Stmt]:
    """Return whether a node is a statement.

    >>> from gossamer_ir.core.build import ZERO
    >>> is_stmt(Store("Y", (ZERO,), ZERO)), is_stmt(ZERO)
    (True, False)
    """
    return type(node) in STMT_KINDS


def effects_of(stmt: Stmt) -> Effects:
    """Return the effects of a statement itself, without those of its bodies.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> loop = For("i", ZERO, index_var("n"), (Store("Y", (index_var("i"),), ONE),))
    >>> effects = effects_of(loop)
    >>> effects.evaluates == (ZERO, index_var("n")), effects.bodies[0].repeats
    (True, True)
    """
    return STMT_KINDS[type(stmt)].effects(stmt)


def _present(*parts: Expr | None) -> tuple[Expr, ...]:
    return tuple([part for part in parts if part is not None])


def _store(stmt: Store) -> Effects:
    return Effects((*stmt.indices, *_present(stmt.value, stmt.predicate)), writes=(stmt,))


def _combine(stmt: Combine) -> Effects:
    # The stores are its body and have their own effects; the old elements are read before them.
    old = [Load(store.buffer, store.indices, dtype_of(store.value)) for store in stmt.stores]
    return Effects(reads=tuple(old), bodies=(Body("stores", stmt.stores, runs_always=True),))


def _atomic(stmt: Atomic) -> Effects:
    old = Load(stmt.buffer, stmt.indices, dtype_of(stmt.value))
    return Effects((*stmt.indices, stmt.value), (old,), (stmt,))


def _if(stmt: If) -> Effects:
    sides = (
        Body("then_body", stmt.then_body, stmt.condition),
        Body("else_body", stmt.else_body, Unary("not", stmt.condition)),
    )
    return Effects((stmt.condition,), bodies=sides)


def _while(stmt: While) -> Effects:
    body = Body("body", stmt.body, stmt.condition, repeats=True)
    return Effects((stmt.condition,), bodies=(body,))


def _for(stmt: For) -> Effects:
    extent = integer_value(stmt.extent)
    repeats = extent is None or extent > 1
    body = Body("body", stmt.body, runs_always=(extent or 0) > 0, repeats=repeats)
    parts = _present(stmt.start, stmt.extent, stmt.weight, stmt.grain)
    return Effects(parts, bodies=(body,))


def _block(stmt: Block) -> Effects:
    # Whether an init runs depends on the loops around the block, so it is not said to run always.
    init = (Body("init", stmt.init, is_init=True),) if stmt.init else ()
    body = Body("body", stmt.body, stmt.predicate, runs_always=stmt.predicate is None)
    values = (*[iterator.value for iterator in stmt.iters], *_present(stmt.predicate))
    return Effects(values, bodies=(*init, body))


def _iteration(stmt: Iteration) -> Effects:
    init = (Body("init", stmt.init, repeats=True, is_init=True),) if stmt.init else ()
    return Effects(bodies=(*init, Body("body", stmt.body, repeats=True)))


def _parallel_for(stmt: ParallelFor) -> Effects:
    parts = _present(stmt.start, stmt.extent, *_scalars(stmt.args), stmt.weight, stmt.grain)
    return Effects(parts, callee=stmt.function, passed_buffers=_handles(stmt.args))


def _launch(stmt: Launch) -> Effects:
    extents = [thread.extent for thread in stmt.threads]
    parts = (*_scalars(stmt.args), *extents)
    return Effects(parts, callee=stmt.function, passed_buffers=_handles(stmt.args))


def _scalars(args: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple([arg for arg in args if not is_handle(arg)])


def _handles(args: Iterable[Expr]) -> tuple[str, ...]:
    return tuple([arg.name for arg in args if is_handle(arg)])


def _nothing(_stmt: Any) -> tuple[Any, ...]:
    return ()


class ThreadEffects(msgspec.Struct, frozen=True):
    """Effects of statements of a type on other threads, besides the elements that they read and write."""

    waits_for: Literal["block", "warp"] | None = None
    """The threads that wait for each other there: those of the block, or those of a warp only."""
    exchanges: bool = False
    """True if the variables that a statement binds have values of other threads."""
    is_async: bool = False
    """True if a copy only begins there: its thread may write what is in the bodies later, until it waits for
    the group of the copy."""
    commits: bool = False
    """True if the copies that have begun become a group."""
    pending_groups: Callable[[Any], int] | None = None
    """Returns the number of groups, the latest, for which a thread does not wait there; None if it waits for
    no group."""


ONE_THREAD = ThreadEffects()
"""The effects of statements that mean nothing for other threads."""


class StmtKind(msgspec.Struct, frozen=True):
    """Properties of every statement of a type. Those besides `effects` and `threads` are for callers who need
    nothing else of a statement."""

    effects: Callable[[Any], Effects]
    threads: ThreadEffects
    """Has no default: the passes for GPUs, which find these statements by it, are wrong about a type whose
    row does not say it."""
    vars: Callable[[Any], tuple[str, ...]] = _nothing
    """Returns the variables that a statement binds: in its bodies or, if it has none, in the rest of the
    enclosing body."""
    values: Callable[[Any], Iterable[tuple[Var, Expr]]] = _nothing
    """Returns those of them that are equal to an expression, each with this expression."""
    loop: Callable[[Any], For] | None = None
    """Returns the loop over the values of its variable, for analyses: a `For` with the same range."""
    allocates: str | None = None
    """The field with the buffer that a statement allocates in the rest of the enclosing body."""
    condition_after: Callable[[Any], Expr] | None = None
    """Returns the condition that holds after a statement: it stops the program where it does not hold."""
    is_loop: bool = False
    """True if it repeats its bodies, or the call of a function."""


STMT_KINDS: dict[type[Any], StmtKind] = {
    Store: StmtKind(_store, ONE_THREAD),
    Combine: StmtKind(_combine, ONE_THREAD),
    Atomic: StmtKind(_atomic, ONE_THREAD),
    Let: StmtKind(
        lambda stmt: Effects((stmt.value,)),
        ONE_THREAD,
        vars=lambda stmt: (stmt.var.name,),
        values=lambda stmt: ((stmt.var, stmt.value),),
    ),
    Allocate: StmtKind(lambda stmt: Effects(stmt.buffer.shape), ONE_THREAD, allocates="buffer"),
    If: StmtKind(_if, ONE_THREAD),
    While: StmtKind(_while, ONE_THREAD, is_loop=True),
    For: StmtKind(
        _for,
        ONE_THREAD,
        vars=lambda stmt: (stmt.var,),
        loop=lambda stmt: stmt,
        is_loop=True,
    ),
    Block: StmtKind(
        _block,
        ONE_THREAD,
        vars=lambda stmt: tuple([iterator.var for iterator in stmt.iters]),
        values=lambda stmt: [(index_var(iterator.var), iterator.value) for iterator in stmt.iters],
    ),
    Iteration: StmtKind(_iteration, ONE_THREAD, vars=lambda stmt: stmt.vars, is_loop=True),
    Prefetch: StmtKind(lambda stmt: Effects(stmt.indices), ONE_THREAD),
    Guard: StmtKind(
        lambda stmt: Effects((stmt.condition,)),
        ONE_THREAD,
        condition_after=lambda stmt: stmt.condition,
    ),
    Barrier: StmtKind(lambda stmt: Effects(), ThreadEffects(waits_for="block")),
    Shuffle: StmtKind(
        lambda stmt: Effects((stmt.value,)),
        ThreadEffects(waits_for="warp", exchanges=True),
        vars=lambda stmt: (stmt.var.name,),
    ),
    AsyncCopy: StmtKind(
        lambda stmt: Effects(bodies=(Body("body", stmt.body, runs_always=True),)),
        ThreadEffects(is_async=True),
    ),
    CommitGroup: StmtKind(lambda stmt: Effects(), ThreadEffects(commits=True)),
    WaitGroup: StmtKind(
        lambda stmt: Effects(), ThreadEffects(pending_groups=lambda stmt: stmt.pending)
    ),
    ParallelFor: StmtKind(_parallel_for, ONE_THREAD, vars=lambda stmt: (stmt.var,), is_loop=True),
    Launch: StmtKind(_launch, ONE_THREAD),
}
"""One entry for each type of statement."""

LOOPS: Any = tuple(stmt_type for stmt_type, kind in STMT_KINDS.items() if kind.is_loop)
"""The types of statements that repeat their bodies, or the call of a function."""

ALLOCATING_STMTS: Any = tuple(
    stmt_type for stmt_type, kind in STMT_KINDS.items() if kind.allocates is not None
)
"""The types of statements that allocate a buffer."""

NAME_BINDING_STMTS: Any = frozenset(
    stmt_type
    for stmt_type, kind in STMT_KINDS.items()
    if kind.vars is not _nothing or kind.allocates is not None
)
"""The types of statements that bind variables or buffers; most statements are of others."""

VALUE_BINDING_STMTS: Any = frozenset(
    stmt_type for stmt_type, kind in STMT_KINDS.items() if kind.values is not _nothing
)
"""The types of statements that bind variables to the values of expressions."""

CHECKING_STMTS: Any = tuple(
    stmt_type for stmt_type, kind in STMT_KINDS.items() if kind.condition_after is not None
)
"""The types of statements that stop the program unless a condition holds."""

SYNCHRONIZING_STMTS: Any = tuple(
    stmt_type for stmt_type, kind in STMT_KINDS.items() if kind.threads.waits_for is not None
)
"""The types of statements at which threads wait for each other."""

BLOCK_BARRIERS: Any = tuple(
    stmt_type for stmt_type, kind in STMT_KINDS.items() if kind.threads.waits_for == "block"
)
"""Those at which all threads of a block wait."""

WRITES: tuple[type[Store], type[Atomic]] = (Store, Atomic)
"""The types of statements that write an element themselves; a test compares them with the table."""

CALLING_STMTS: tuple[type[ParallelFor], type[Launch]] = (ParallelFor, Launch)
"""The types of statements that call a function of the module; a test compares them with the table."""
