"""What each kind of statement and expression does: one table for all passes and primitives.

`effects_of` answers for one statement: the expressions that it evaluates, the elements that it reads
and writes itself, the names that it binds, the memory that it allocates, the bodies that it has and
when they run, whether it may stop the program. `EXPRESSION_EFFECTS` says of each kind of expression
whether it reads memory, and which of its operands may stay unevaluated. Tests see to it that both
tables cover the language, so that a new kind of node cannot be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import msgspec

from gossamer_ir.core.build import conjuncts, dtype_of, integer_value
from gossamer_ir.nodes import (
    EXPRESSIONS,
    STATEMENTS,
    Allocate,
    AnyBuffer,
    Atomic,
    Binary,
    Block,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Combine,
    Compare,
    Const,
    Expr,
    For,
    Function,
    Guard,
    If,
    IfThenElse,
    Iteration,
    LaneReduce,
    Launch,
    Let,
    Load,
    Node,
    ParallelFor,
    Prefetch,
    Ramp,
    Reinterpret,
    Search,
    Select,
    Stmt,
    Store,
    TransposeReduce,
    Unary,
    Var,
    VScale,
    While,
)  # fmt: skip
from gossamer_ir.traversal.identity_cache import memoize_by_identity
from gossamer_ir.traversal.walk import children, collect, every_statement, has_bodies, statements


class Body(msgspec.Struct, frozen=True):
    """Statements inside of a statement, and when they run."""

    statements: tuple[Stmt, ...]
    conditions: tuple[Expr, ...] = ()
    """What holds when the first of them begins to run."""
    always_runs: bool = False
    """Whether they run at least once wherever the statement does."""
    repeats: bool = False
    """Whether they may run several times each time that the statement does."""
    is_init: bool = False


class Effects(msgspec.Struct, frozen=True):
    """What a statement does itself, apart from what its bodies do."""

    evaluates: tuple[Expr, ...] = ()
    """Expressions that are evaluated where the statement stands, in order."""
    reads: tuple[Load, ...] = ()
    """Elements that it reads besides those that these expressions read."""
    writes: tuple[Store | Atomic, ...] = ()
    binds: tuple[str, ...] = ()
    """Variables: of its bodies, or, where it has none, of what follows in the enclosing body."""
    labels: tuple[str, ...] = ()
    """Names that schedules address it by."""
    allocates: Buffer | None = None
    bodies: tuple[Body, ...] = ()
    may_stop: bool = False
    """Whether it stops the program itself where a condition does not hold."""
    calls: str | None = None
    """A function of the module that it runs."""
    passes: tuple[str, ...] = ()
    """Handles and allocated buffers whose addresses that function is given."""


def effects_of(stmt: Stmt) -> Effects:
    """What a statement does itself.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> loop = For("i", ZERO, index_var("n"), (Store("Y", (index_var("i"),), ONE),))
    >>> found = effects_of(loop)
    >>> found.binds, found.evaluates == (ZERO, index_var("n")), found.bodies[0].repeats
    (('i',), True, True)
    """
    return EFFECTS[type(stmt)](stmt)


def _present(*parts: Expr | None) -> tuple[Expr, ...]:
    return tuple([part for part in parts if part is not None])


def _store(stmt: Store) -> Effects:
    return Effects((*stmt.indices, *_present(stmt.value, stmt.predicate)), writes=(stmt,))


def _combine(stmt: Combine) -> Effects:
    """The stores evaluate and write as statements of their own; the old elements are read before."""
    old = [Load(store.buffer, store.indices, dtype_of(store.value)) for store in stmt.stores]
    return Effects(reads=tuple(old), bodies=(Body(stmt.stores, always_runs=True),))


def _atomic(stmt: Atomic) -> Effects:
    old = Load(stmt.buffer, stmt.indices, dtype_of(stmt.value))
    return Effects((*stmt.indices, stmt.value), (old,), (stmt,))


def _if(stmt: If) -> Effects:
    sides = (
        Body(stmt.then_body, tuple(conjuncts(stmt.condition))),
        Body(stmt.else_body, (Unary("not", stmt.condition),)),
    )
    return Effects((stmt.condition,), bodies=sides)


def _while(stmt: While) -> Effects:
    return Effects((stmt.condition,), bodies=(Body(stmt.body, (stmt.condition,), repeats=True),))


def _for(stmt: For) -> Effects:
    extent = integer_value(stmt.extent)
    body = Body(stmt.body, always_runs=(extent or 0) > 0, repeats=extent is None or extent > 1)
    parts = _present(stmt.start, stmt.extent, stmt.weight, stmt.grain)
    return Effects(parts, binds=(stmt.var,), bodies=(body,))


def _block(stmt: Block) -> Effects:
    init = (Body(stmt.init, is_init=True),) if stmt.init else ()
    conditions = tuple(conjuncts(stmt.predicate))
    body = Body(stmt.body, conditions, always_runs=stmt.predicate is None)
    values = (*[found.value for found in stmt.iters], *_present(stmt.predicate))
    binds = tuple([found.var for found in stmt.iters])
    return Effects(values, binds=binds, labels=(stmt.name,), bodies=(*init, body))


def _iteration(stmt: Iteration) -> Effects:
    init = (Body(stmt.init, repeats=True, is_init=True),) if stmt.init else ()
    bodies = (*init, Body(stmt.body, repeats=True))
    return Effects(binds=stmt.vars, labels=(stmt.name,), bodies=bodies)


def _parallel_for(stmt: ParallelFor) -> Effects:
    parts = _present(stmt.start, stmt.extent, *_scalars(stmt.args), stmt.weight, stmt.grain)
    return Effects(parts, binds=(stmt.var,), calls=stmt.function, passes=_handles(stmt.args))


def _launch(stmt: Launch) -> Effects:
    extents = [found.extent for found in stmt.threads]
    parts = (*_scalars(stmt.args), *extents)
    return Effects(parts, calls=stmt.function, passes=_handles(stmt.args))


def _scalars(args: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple([arg for arg in args if not _is_handle(arg)])


def _handles(args: Iterable[Expr]) -> tuple[str, ...]:
    return tuple([arg.name for arg in args if isinstance(arg, Var) and _is_handle(arg)])


def _is_handle(arg: Expr) -> bool:
    return isinstance(arg, Var) and arg.dtype == "handle"


EFFECTS: dict[type[Any], Callable[[Any], Effects]] = {
    Store: _store,
    Combine: _combine,
    Atomic: _atomic,
    Let: lambda stmt: Effects((stmt.value,), binds=(stmt.var.name,)),
    Allocate: lambda stmt: Effects(stmt.buffer.shape, allocates=stmt.buffer),
    If: _if,
    While: _while,
    For: _for,
    Block: _block,
    Iteration: _iteration,
    Prefetch: lambda stmt: Effects(stmt.indices),
    Guard: lambda stmt: Effects((stmt.condition,), may_stop=True),
    ParallelFor: _parallel_for,
    Launch: _launch,
}
"""One entry for each kind of statement."""


class ExpressionEffects(msgspec.Struct, frozen=True):
    """What evaluating a kind of expression may do besides computing a value."""

    reads: bool = False
    """Whether it reads memory, and so has to be in bounds."""
    lazy: tuple[str, ...] = ()
    """Operands that are evaluated only where a condition chooses them."""


_PURE = ExpressionEffects()

EXPRESSION_EFFECTS: dict[type[Any], ExpressionEffects] = {
    **dict.fromkeys((Const, Var, VScale), _PURE),
    **dict.fromkeys((Unary, Binary, Compare, Cast, Reinterpret, Select, Call), _PURE),
    **dict.fromkeys((Ramp, Broadcast, LaneReduce, TransposeReduce), _PURE),
    IfThenElse: ExpressionEffects(lazy=("if_true", "if_false")),
    Load: ExpressionEffects(reads=True),
    Search: ExpressionEffects(reads=True),
}
"""One entry for each kind of expression."""

LAZY = {kind: frozenset(found.lazy) for kind, found in EXPRESSION_EFFECTS.items() if found.lazy}
"""The operands that may stay unevaluated, of the kinds that have some."""


def always_evaluated(node: Any) -> tuple[Any, ...]:
    """The expressions directly below an expression or a statement that are evaluated wherever it is.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> always_evaluated(IfThenElse(index_var("c"), ONE, ZERO)) == (index_var("c"),)
    True
    >>> always_evaluated(While(index_var("c"), (Store("Y", (ZERO,), ONE),))) == (index_var("c"),)
    True
    """
    kind = type(node)
    if kind in EFFECTS:
        return EFFECTS[kind](node).evaluates
    lazy = LAZY.get(kind)
    if lazy is None:
        return tuple(children(node))
    return tuple([getattr(node, field) for field in kind.__struct_fields__ if field not in lazy])


def _naming_a_buffer() -> frozenset[type[Any]]:
    """Kinds with a field `buffer` that holds a name."""
    return frozenset(
        kind for kind in (*EXPRESSIONS, *STATEMENTS) if kind.__annotations__.get("buffer") == "str"
    )


NAMING_BUFFERS = _naming_a_buffer()
"""Kinds of nodes that name the buffer that they access, guard or announce."""

_WITH_BODIES = frozenset(kind for kind in STATEMENTS if has_bodies(kind)) - NAMING_BUFFERS

NAMING: Any = tuple(sorted(NAMING_BUFFERS, key=lambda kind: kind.__name__))
"""These kinds in a fixed order."""
TOUCHING: Any = tuple(kind for kind in NAMING if kind is not Guard)
"""Those of them that say which elements."""

READS: tuple[type[Load], type[Search]] = (Load, Search)
"""The kinds of expressions that read memory."""


def buffers_named(*nodes: Node) -> frozenset[str]:
    """The buffers that nodes access, guard or announce, at any depth.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> sorted(buffers_named(Store("Y", (ZERO,), Load("X", (ONE,), "int64")), Guard(ONE, "Z")))
    ['X', 'Y', 'Z']
    """
    return frozenset().union(*map(_buffers_named_by, nodes))


def buffers_touched(*nodes: Node) -> frozenset[str]:
    """The buffers that nodes access or announce, at any depth.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> sorted(buffers_touched(Store("Y", (ZERO,), Load("X", (ONE,), "int64")), Guard(ONE, "Z")))
    ['X', 'Y']
    """
    return frozenset([found.buffer for found in collect(TOUCHING, *nodes)])


@lru_cache(maxsize=4096)
def _buffers_named_by(node: Node) -> frozenset[str]:
    if type(node) in _WITH_BODIES:  # asked about the statements in it next, often
        return frozenset().union(*map(_buffers_named_by, children(node)))
    return frozenset([found.buffer for found in collect(NAMING, node)])


def buffers_written(body: Iterable[Stmt]) -> frozenset[str]:
    """The buffers and handles that statements write, by the names that they use; a function that is
    called may write all that it is given.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> sorted(buffers_written((Store("Y", (ZERO,), ONE), Store("Z", (ZERO,), ONE))))
    ['Y', 'Z']
    """
    return stored_by(statements(body))


def buffers_allocated(body: Iterable[Stmt]) -> frozenset[str]:
    """The buffers that statements allocate, at any depth."""
    return frozenset(
        [found.buffer.name for found in statements(body) if isinstance(found, Allocate)]
    )


def outer_writes(body: Iterable[Stmt]) -> frozenset[str]:
    """The buffers that statements write, but for those that they allocate.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> own = Allocate(Buffer("W", (ONE,), "int64"))
    >>> sorted(outer_writes((own, Store("W", (ZERO,), ONE), Store("Y", (ZERO,), ONE))))
    ['Y']
    """
    every = tuple(statements(body))
    own = [found.buffer.name for found in every if isinstance(found, Allocate)]
    return stored_by(every).difference(own)


def stored_by(every: Iterable[Stmt]) -> frozenset[str]:
    """The buffers that statements write themselves, not those in their bodies."""
    found: set[str] = set()
    for stmt in every:
        if isinstance(stmt, Store):  # most statements; `effects_of` builds what is not asked for
            found.add(stmt.buffer)
        elif type(stmt) in _WRITING:
            effects = effects_of(stmt)
            found.update([write.buffer for write in effects.writes], effects.passes)
    return frozenset(found)


WRITES: tuple[type[Store], type[Atomic]] = (Store, Atomic)
"""The kinds of statements that write an element themselves; a test compares them with the table."""
CALLS: tuple[type[ParallelFor], type[Launch]] = (ParallelFor, Launch)
"""The kinds of statements that run a function of the module; a test compares them with the table."""
ACCESSES: Any = (*READS, *WRITES)
"""The kinds of nodes that access an element, or several."""
_WRITING = frozenset({*WRITES, *CALLS}) - {Store}


BINDING: dict[type[Any], Callable[[Any], tuple[str, ...]]] = {
    Let: lambda stmt: (stmt.var.name,),
    For: lambda stmt: (stmt.var,),
    Block: lambda stmt: tuple([found.var for found in stmt.iters]),
    Iteration: lambda stmt: stmt.vars,
    ParallelFor: lambda stmt: (stmt.var,),
}
"""The variables of the kinds of statements that bind some, without the rest of their effects; a test
compares them with the table."""
TAKING: dict[type[Any], Callable[[Any], tuple[str, ...]]] = {
    **BINDING,
    Block: lambda stmt: (stmt.name, *[found.var for found in stmt.iters]),
    Iteration: lambda stmt: (stmt.name, *stmt.vars),
    Allocate: lambda stmt: (stmt.buffer.name,),
}
"""Every name that they take: labels and buffers, too."""


def binds(stmt: Stmt) -> tuple[str, ...]:
    """Every name that a statement takes: variables, a buffer, and those that schedules use."""
    names = TAKING.get(type(stmt))
    return () if names is None else names(stmt)


@memoize_by_identity
def all_buffers(function: Function) -> tuple[AnyBuffer, ...]:
    """The buffers that a function declares, and those that it allocates."""
    found = [stmt.buffer for stmt in every_statement(function) if isinstance(stmt, Allocate)]
    return (*function.buffers, *found)


def handles_of(function: Function) -> dict[str, str]:
    """The handle of each buffer that is bound to one."""
    return {buffer.name: buffer.handle for buffer in function.buffers if buffer.handle}
