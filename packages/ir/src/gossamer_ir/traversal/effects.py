"""The effects of each type of statement: one table for all passes and primitives.

`effects_of` returns the effects of one statement: the expressions that it evaluates, the elements that
it reads and writes, its bodies and when they run. `STATEMENT_KINDS` also has the names that it binds with
their values, the memory that it allocates, and the condition that holds after it. The same of expressions is
in `core.expression_kinds`. Tests check that both tables cover the language, so a new type of node cannot be
forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from gossamer_ir.core.build import index_var, integer_value
from gossamer_ir.core.conditions import conjunction, conjuncts, short_circuit_and
from gossamer_ir.core.expression_kinds import LAZY, dtype_of
from gossamer_ir.nodes import (
    EXPRESSIONS,
    STATEMENTS,
    Allocate,
    AnyBuffer,
    Atomic,
    Block,
    Buffer,
    Combine,
    Expr,
    For,
    Function,
    Guard,
    If,
    Iteration,
    Launch,
    Let,
    Load,
    Node,
    ParallelFor,
    Prefetch,
    Search,
    Stmt,
    Store,
    Unary,
    Var,
    While,
)
from gossamer_ir.support.identity_cache import memoize_by_identity
from gossamer_ir.traversal.fields import LABEL_FIELDS, has_bodies, name_fields
from gossamer_ir.traversal.rewrite import rewrite_body
from gossamer_ir.traversal.walk import children, collect, contains, every_statement, statements

S = TypeVar("S", bound=Stmt)


class Body(msgspec.Struct, frozen=True):
    """A body of a statement, and when it runs."""

    field: str
    """The field of the statement that holds it."""
    statements: tuple[Stmt, ...]
    condition: Expr | None = None
    """The condition that holds when the body begins to run; its own writes may invalidate it."""
    always_runs: bool = False
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
    calls: str | None = None
    """The function of the module that it calls."""
    passes: tuple[str, ...] = ()
    """The handles and allocated buffers whose addresses it passes to that function."""


def effects_of(stmt: Stmt) -> Effects:
    """Return the effects of a statement itself, without those of its bodies.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> loop = For("i", ZERO, index_var("n"), (Store("Y", (index_var("i"),), ONE),))
    >>> effects = effects_of(loop)
    >>> effects.evaluates == (ZERO, index_var("n")), effects.bodies[0].repeats
    (True, True)
    """
    return STATEMENT_KINDS[type(stmt)].effects(stmt)


def body_in(stmt: Stmt, field: str) -> Body:
    """Return the body of a statement that one of its fields holds.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> choice = If(index_var("c"), (), (Store("Y", (ZERO,), ONE),))
    >>> body_in(choice, "else_body").condition == Unary("not", index_var("c"))
    True
    """
    return next(body for body in effects_of(stmt).bodies if body.field == field)


def _present(*parts: Expr | None) -> tuple[Expr, ...]:
    return tuple([part for part in parts if part is not None])


def _store(stmt: Store) -> Effects:
    return Effects((*stmt.indices, *_present(stmt.value, stmt.predicate)), writes=(stmt,))


def _combine(stmt: Combine) -> Effects:
    """The stores are its body and have their own effects; the old elements are read before them."""
    old = [Load(store.buffer, store.indices, dtype_of(store.value)) for store in stmt.stores]
    return Effects(reads=tuple(old), bodies=(Body("stores", stmt.stores, always_runs=True),))


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
    body = Body("body", stmt.body, always_runs=(extent or 0) > 0, repeats=repeats)
    parts = _present(stmt.start, stmt.extent, stmt.weight, stmt.grain)
    return Effects(parts, bodies=(body,))


def _block(stmt: Block) -> Effects:
    # Whether an init runs depends on the loops around the block, so it is not said to run always.
    init = (Body("init", stmt.init, is_init=True),) if stmt.init else ()
    body = Body("body", stmt.body, stmt.predicate, always_runs=stmt.predicate is None)
    values = (*[iterator.value for iterator in stmt.iters], *_present(stmt.predicate))
    return Effects(values, bodies=(*init, body))


def _iteration(stmt: Iteration) -> Effects:
    init = (Body("init", stmt.init, repeats=True, is_init=True),) if stmt.init else ()
    return Effects(bodies=(*init, Body("body", stmt.body, repeats=True)))


def _parallel_for(stmt: ParallelFor) -> Effects:
    parts = _present(stmt.start, stmt.extent, *_scalars(stmt.args), stmt.weight, stmt.grain)
    return Effects(parts, calls=stmt.function, passes=_handles(stmt.args))


def _launch(stmt: Launch) -> Effects:
    extents = [thread.extent for thread in stmt.threads]
    parts = (*_scalars(stmt.args), *extents)
    return Effects(parts, calls=stmt.function, passes=_handles(stmt.args))


def _scalars(args: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple([arg for arg in args if not _is_handle(arg)])


def _handles(args: Iterable[Expr]) -> tuple[str, ...]:
    return tuple([arg.name for arg in args if isinstance(arg, Var) and _is_handle(arg)])


def _is_handle(arg: Expr) -> bool:
    return isinstance(arg, Var) and arg.dtype == "handle"


def _nothing(_stmt: Any) -> tuple[Any, ...]:
    return ()


class StatementKind(msgspec.Struct, frozen=True):
    """Properties of every statement of a type. Those beside `effects` are for callers who need nothing else
    of a statement."""

    effects: Callable[[Any], Effects]
    variables: Callable[[Any], tuple[str, ...]] = _nothing
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


STATEMENT_KINDS: dict[type[Any], StatementKind] = {
    Store: StatementKind(_store),
    Combine: StatementKind(_combine),
    Atomic: StatementKind(_atomic),
    Let: StatementKind(
        lambda stmt: Effects((stmt.value,)),
        variables=lambda stmt: (stmt.var.name,),
        values=lambda stmt: ((stmt.var, stmt.value),),
    ),
    Allocate: StatementKind(lambda stmt: Effects(stmt.buffer.shape), allocates="buffer"),
    If: StatementKind(_if),
    While: StatementKind(_while, is_loop=True),
    For: StatementKind(
        _for, variables=lambda stmt: (stmt.var,), loop=lambda stmt: stmt, is_loop=True
    ),
    Block: StatementKind(
        _block,
        variables=lambda stmt: tuple([iterator.var for iterator in stmt.iters]),
        values=lambda stmt: [(index_var(item.var), item.value) for item in stmt.iters],
    ),
    Iteration: StatementKind(_iteration, variables=lambda stmt: stmt.vars, is_loop=True),
    Prefetch: StatementKind(lambda stmt: Effects(stmt.indices)),
    Guard: StatementKind(
        lambda stmt: Effects((stmt.condition,)), condition_after=lambda stmt: stmt.condition
    ),
    ParallelFor: StatementKind(_parallel_for, variables=lambda stmt: (stmt.var,), is_loop=True),
    Launch: StatementKind(_launch),
}
"""One entry for each type of statement."""


def variables_bound(stmt: Stmt) -> tuple[str, ...]:
    """Return the variables that a statement binds: in its bodies or, if it has none, in the rest of the
    enclosing body.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> variables_bound(For("i", ZERO, ONE, ()))
    ('i',)
    """
    return STATEMENT_KINDS[type(stmt)].variables(stmt)


def values_bound(stmt: Stmt) -> Iterable[tuple[Var, Expr]]:
    """Return the variables of a let or a block, each with the expression that it is equal to.

    >>> from gossamer_ir.core.build import ONE, index_var
    >>> values_bound(Let(index_var("one"), ONE)) == ((index_var("one"), ONE),)
    True
    """
    return STATEMENT_KINDS[type(stmt)].values(stmt)


def values_after(stmt: Stmt) -> Iterable[tuple[Var, Expr]]:
    """Return the `values_bound` of a statement that binds them for the statements after it, such as a let."""
    return () if has_bodies(type(stmt)) else values_bound(stmt)


def loop_of(stmt: Stmt) -> For | None:
    """Return the loop over the values that the variable of a statement has in its body, if it is one."""
    loop = STATEMENT_KINDS[type(stmt)].loop
    return None if loop is None else loop(stmt)


def allocation_of(stmt: Stmt) -> Buffer | None:
    """Return the buffer that a statement allocates for the statements after it."""
    field = STATEMENT_KINDS[type(stmt)].allocates
    return None if field is None else getattr(stmt, field)


def condition_after(stmt: Stmt) -> Expr | None:
    """Return the condition that holds after a statement which stops the program otherwise."""
    condition = STATEMENT_KINDS[type(stmt)].condition_after
    return None if condition is None else condition(stmt)


def while_body(stmt: Stmt) -> Body | None:
    """Return the body that a statement runs again as long as a condition holds, if it has one.

    >>> from gossamer_ir.core.build import index_var
    >>> while_body(While(index_var("c"), ())).condition == index_var("c")
    True
    >>> while_body(If(index_var("c"), ())) is None
    True
    """
    bodies = effects_of(stmt).bodies
    return next((body for body in bodies if body.repeats and body.condition is not None), None)


def defines_only(stmt: Stmt) -> bool:
    """Return whether all that a statement does is to define names for the statements after it, as a let and
    an allocation do."""
    return allocation_of(stmt) is not None or bool(values_after(stmt))


def names_bound(stmt: Stmt) -> tuple[str, ...]:
    """Return the variables and buffers that a statement binds."""
    return (*variables_bound(stmt), *_allocated_name(stmt))


def names_after(stmt: Stmt) -> tuple[str, ...]:
    """Return the variables and buffers that a statement binds for the statements after it.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> names_after(Let(index_var("one"), ONE)), names_after(For("i", ZERO, ONE, ()))
    (('one',), ())
    """
    variables = () if has_bodies(type(stmt)) else variables_bound(stmt)
    return (*variables, *_allocated_name(stmt))


def _allocated_name(stmt: Stmt) -> tuple[str, ...]:
    buffer = allocation_of(stmt)
    return () if buffer is None else (buffer.name,)


def labels_of(stmt: Stmt) -> tuple[str, ...]:
    """Return the labels of a statement, by which schedules address it."""
    return tuple([getattr(stmt, field) for field in LABEL_FIELDS[type(stmt)]])


def declared_names(stmt: Stmt) -> tuple[str, ...]:
    """Return every name that a statement declares: labels, variables and buffers."""
    return (*labels_of(stmt), *names_bound(stmt))


def always_evaluated(node: Any) -> tuple[Any, ...]:
    """Return the operands of an expression, or of a statement, that are evaluated whenever it is.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> from gossamer_ir.nodes import IfThenElse
    >>> always_evaluated(IfThenElse(index_var("c"), ONE, ZERO)) == (index_var("c"),)
    True
    >>> always_evaluated(While(index_var("c"), (Store("Y", (ZERO,), ONE),))) == (index_var("c"),)
    True
    """
    kind = type(node)
    if kind in STATEMENT_KINDS:
        return STATEMENT_KINDS[kind].effects(node).evaluates
    lazy = LAZY.get(kind)
    if lazy is None:
        return tuple(children(node))
    return tuple([getattr(node, field) for field in kind.__struct_fields__ if field not in lazy])


def _buffer_nodes() -> tuple[type[Any], ...]:
    """Return the types of nodes with a field `buffer` that holds a name, ordered by their names."""
    kinds = (kind for kind in (*EXPRESSIONS, *STATEMENTS) if "buffer" in name_fields(kind))
    return tuple(sorted(kinds, key=lambda kind: kind.__name__))


ALLOCATING_STATEMENTS: Any = tuple(
    kind for kind, row in STATEMENT_KINDS.items() if row.allocates is not None
)
"""The types of statements that allocate a buffer."""
LOOPS: Any = tuple(kind for kind, row in STATEMENT_KINDS.items() if row.is_loop)
"""The types of statements that repeat their bodies, or the call of a function."""
CHECKING_STATEMENTS: Any = tuple(
    kind for kind, row in STATEMENT_KINDS.items() if row.condition_after is not None
)
"""The types of statements that stop the program unless a condition holds."""
BUFFER_NODES: Any = _buffer_nodes()
"""The types of nodes that name a buffer, to access, guard or prefetch it."""
INDEXED_NODES: Any = tuple(kind for kind in BUFFER_NODES if kind not in CHECKING_STATEMENTS)
"""Those of them that address elements: a check names a buffer only for its error message."""

_WITH_BODIES = frozenset(filter(has_bodies, STATEMENTS)).difference(BUFFER_NODES)

READS: tuple[type[Load], type[Search]] = (Load, Search)
"""The types of expressions that read memory."""


def conjunction_with_lazy_reads(first: Expr | None, second: Expr) -> Expr:
    """Return the conjunction of two conditions; None stands for true. A second one that reads memory is
    evaluated only if the first holds, since the memory may not exist otherwise.

    >>> from gossamer_ir.core.build import ZERO, index_var
    >>> from gossamer_ir.core.conditions import in_range
    >>> inside, _ = in_range(index_var("i"), index_var("n"))
    >>> nonempty, _ = in_range(Load("X", (index_var("i"),), "int64"), ZERO)
    >>> type(conjunction_with_lazy_reads(inside, nonempty)).__name__
    'IfThenElse'
    >>> type(conjunction_with_lazy_reads(nonempty, inside)).__name__
    'Binary'
    """
    if contains(READS, second):
        return short_circuit_and(first, second)
    return conjunction(first, second) or second


def buffers_named(*nodes: Node) -> frozenset[str]:
    """Return the buffers that nodes access, guard or prefetch, at any depth.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> sorted(buffers_named(Store("Y", (ZERO,), Load("X", (ONE,), "int64")), Guard(ONE, "Z")))
    ['X', 'Y', 'Z']
    """
    return frozenset().union(*map(_buffers_named_by, nodes))


def buffers_accessed(*nodes: Node) -> frozenset[str]:
    """Return the buffers that nodes access or prefetch, at any depth.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> sorted(buffers_accessed(Store("Y", (ZERO,), Load("X", (ONE,), "int64")), Guard(ONE, "Z")))
    ['X', 'Y']
    """
    return frozenset([node.buffer for node in collect(INDEXED_NODES, *nodes)])


@lru_cache(maxsize=4096)
def _buffers_named_by(node: Node) -> frozenset[str]:
    # Statement by statement, since callers often query the statements of a body next.
    if type(node) in _WITH_BODIES:
        return frozenset().union(*map(_buffers_named_by, children(node)))
    return frozenset([named.buffer for named in collect(BUFFER_NODES, node)])


def buffers_written(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers and handles that statements write, by the names that occur in them. A called
    function is assumed to write every buffer that it is passed.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> sorted(buffers_written((Store("Y", (ZERO,), ONE), Store("Z", (ZERO,), ONE))))
    ['Y', 'Z']
    """
    return directly_written(statements(body))


def buffers_allocated(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers that statements allocate, at any depth."""
    return frozenset([buffer.name for buffer in allocations(statements(body))])


def outer_writes(body: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers that statements write, without those that they allocate.

    >>> from gossamer_ir.core.build import ONE, ZERO
    >>> own = Allocate(Buffer("W", (ONE,), "int64"))
    >>> sorted(outer_writes((own, Store("W", (ZERO,), ONE), Store("Y", (ZERO,), ONE))))
    ['Y']
    """
    every = tuple(statements(body))
    return directly_written(every).difference([buffer.name for buffer in allocations(every)])


def directly_written(every: Iterable[Stmt]) -> frozenset[str]:
    """Return the buffers that statements write themselves, without those written in their bodies."""
    names: set[str] = set()
    for stmt in every:
        if isinstance(stmt, Store):  # the common case; `effects_of` would build more than is needed
            names.add(stmt.buffer)
        elif type(stmt) in _WRITING:
            effects = effects_of(stmt)
            # The called function may write every buffer whose address it gets.
            names.update([write.buffer for write in effects.writes], effects.passes)
    return frozenset(names)


WRITES: tuple[type[Store], type[Atomic]] = (Store, Atomic)
"""The types of statements that write an element themselves; a test compares them with the table."""
CALLING_STATEMENTS: tuple[type[ParallelFor], type[Launch]] = (ParallelFor, Launch)
"""The types of statements that call a function of the module; a test compares them with the table."""
ACCESSES: Any = (*READS, *WRITES)
"""The types of nodes that access elements of a buffer, and stop the program if these are out of bounds."""
HINTS: Any = tuple(kind for kind in INDEXED_NODES if kind not in ACCESSES)
"""The types that address elements without an access to them: these may be out of bounds."""
ELEMENT_NODES: Any = tuple(kind for kind in INDEXED_NODES if "indices" in kind.__struct_fields__)
"""The types that address one element, or one vector, by a field `indices`. A `Search` has a range instead."""
ELEMENT_ACCESSES: Any = tuple(kind for kind in ACCESSES if kind in ELEMENT_NODES)
"""The types that access one element, or one vector."""
_WRITING = frozenset({*WRITES, *CALLING_STATEMENTS}) - {Store}


@memoize_by_identity
def all_buffers(function: Function) -> tuple[AnyBuffer, ...]:
    """Return the buffers that a function declares, then those that it allocates."""
    return (*function.buffers, *allocations(every_statement(function)))


def allocations(every: Iterable[Stmt]) -> Iterator[Buffer]:
    """Yield the buffers that statements allocate themselves, without those allocated in their bodies."""
    for stmt in every:
        buffer = allocation_of(stmt)
        if buffer is not None:
            yield buffer


def with_allocation(stmt: S, buffer: Buffer) -> S:
    """Return a statement that allocates another buffer instead of its own.

    >>> from gossamer_ir.core.build import ONE, index
    >>> short, long = (Buffer("W", (size,), "int64") for size in (ONE, index(8)))
    >>> with_allocation(Allocate(short), long) == Allocate(long)
    True
    """
    field = STATEMENT_KINDS[type(stmt)].allocates
    return stmt if field is None else replace(stmt, **{field: buffer})


def without_allocations(body: tuple[Stmt, ...], names: Container[str]) -> tuple[Stmt, ...]:
    """Return statements without the allocations of some buffers, at any depth.

    >>> from gossamer_ir.core.build import ONE
    >>> without_allocations((Allocate(Buffer("W", (ONE,), "int64")),), {"W"})
    ()
    """

    def rule(node: Any) -> tuple[Stmt, ...] | None:
        if not isinstance(node, ALLOCATING_STATEMENTS):
            return None
        return () if names_after(node)[-1] in names else None

    return rewrite_body(body, rule, leaves=False)


def handles_of(function: Function) -> dict[str, str]:
    """Return the handle of each buffer that is bound to a parameter."""
    return {buffer.name: buffer.handle for buffer in function.buffers if buffer.handle}
