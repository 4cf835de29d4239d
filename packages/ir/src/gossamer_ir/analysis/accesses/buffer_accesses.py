"""The buffer accesses of statements in program order, each with its enclosing loops and conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.init_nests import (
    EnclosedBlock,
    ValuesOfVars,
    conditions_of_init,
    reduction_loops,
)
from gossamer_ir.core.build import sub
from gossamer_ir.core.expression_kinds import LAZY
from gossamer_ir.core.statement_kinds import WRITES, Body, Effects, effects_of
from gossamer_ir.nodes import Atomic, Block, Expr, For, Load, Range, Search, Stmt, Store, Var
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_uses import buffers_named
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.statement_queries import always_evaluated, loop_of
from gossamer_ir.traversal.substitute import resolve, resolved_values
from gossamer_ir.traversal.walk import children

_AccessNode: TypeAlias = Load | Search | Store | Atomic
C = TypeVar("C")


class EnclosingContext(msgspec.Struct, frozen=True):
    """The enclosing loops (outermost first) and conditions of a statement, in terms of loop variables. An
    init may execute even if the reduction loops (`idle`) have no iteration."""

    loops: tuple[For, ...] = ()
    conditions: tuple[Expr, ...] = ()
    idle: frozenset[str] = frozenset()

    def exprs(self) -> tuple[Expr, ...]:
        """Return the bounds of all loops, and the conditions."""
        bounds = (part for loop in self.loops for part in (loop.start, loop.extent))
        return (*bounds, *self.conditions)

    def assumptions(self) -> frozenset[object]:
        """Return the ranges of the loops that have an iteration, and the conditions."""
        running = (loop for loop in self.loops if loop.var not in self.idle)
        return frozenset(
            (*((loop.var, loop.start, loop.extent) for loop in running), *self.conditions)
        )


class Access(msgspec.Struct, frozen=True):
    """One load, search or store. A search has the range that it covers as its last index. If `is_certain`,
    the access happens whenever the statement in this `context` is executed."""

    buffer: str
    indices: tuple[Expr | Range, ...]
    is_store: bool
    is_certain: bool
    context: EnclosingContext


def accesses(
    body: tuple[Stmt, ...],
    *,
    values: ValuesOfVars | None = None,
    context: EnclosingContext | None = None,
    buffers: Set[str] | None = None,
    conditions: bool = True,
) -> Iterator[Access]:
    """Yield the accesses of a body at the position or loop stage, in program order.

    Lets and block variables are resolved, so that indices are in terms of loop variables and of variables
    that are bound outside the body. `buffers` restricts the result to some buffers. Without `conditions`,
    the context of each access is left empty, which is faster.

    >>> from gossamer_ir.script import parse_module
    >>> module = parse_module('''
    ... @T.prim_func
    ... def scale(x: T.handle, n: T.int64) -> None:
    ...     X = T.match_buffer(x, (n,), "float32")
    ...     for i in T.serial(n):
    ...         X[i] = X[i] * 2.0
    ... ''')
    >>> [(access.buffer, access.is_store) for access in accesses(module.functions[0].body)]
    [('X', False), ('X', True)]
    """
    inside = _context_inside if conditions else _same_context
    walk = stmts_in_context(
        body, context or EnclosingContext(), inside, values=values or {}, buffers=buffers
    )
    for enclosed in walk:
        for node, is_certain in _direct_accesses(enclosed.effects):
            if buffers is None or node.buffer in buffers:
                yield _access_of(node, enclosed.values, enclosed.context, is_certain=is_certain)


class StmtInContext(msgspec.Struct, Generic[C], frozen=True):
    """A statement, and the facts that hold before it."""

    stmt: Stmt
    effects: Effects
    values: ValuesOfVars
    """The values of lets and block variables in scope; empty if the walk does not follow them."""
    context: C


def stmts_in_context(
    body: tuple[Stmt, ...],
    context: C,
    inside: Callable[[StmtInContext[C], Body], C],
    *,
    values: ValuesOfVars | None = None,
    buffers: Set[str] | None = None,
) -> Iterator[StmtInContext[C]]:
    """Yield the statements of a body at any depth, in program order, each with the context of the body that
    it stands in.

    `inside` returns the context of a body of a statement. With `values`, those of variables that are bound
    before, the walk follows lets and block variables. An init comes before its block. With `buffers`,
    statements that name none of them, at any depth, are left out.

    >>> from gossamer_ir.core.build import ONE, ZERO, index_var
    >>> from gossamer_ir.nodes import Store
    >>> loop = For("i", ZERO, index_var("n"), (Store("Y", (index_var("i"),), ONE),))
    >>> walk = stmts_in_context((loop,), 0, lambda enclosed, body: enclosed.context + 1)
    >>> [(type(enclosed.stmt).__name__, enclosed.context) for enclosed in walk]
    [('For', 0), ('Store', 1)]
    """
    bound = None if values is None else dict(values)
    for stmt in body:
        if bound is not None:
            # Before the filter: a let of any buffer may occur in the indices of later accesses.
            bound.update(resolved_values(stmt, bound))
        # Most statements name other buffers, and contexts take time to build.
        if buffers is not None and buffers.isdisjoint(buffers_named(stmt)):
            continue
        effects = effects_of(stmt)
        enclosed = StmtInContext(stmt, effects, {} if bound is None else bound, context)
        for inner in effects.bodies:
            if inner.is_init:
                yield from stmts_in_context(
                    inner.stmts, inside(enclosed, inner), inside, values=bound, buffers=buffers
                )
        # Inits first: a reduction reads what its init has stored.
        yield enclosed
        for inner in effects.bodies:
            if not inner.is_init:
                yield from stmts_in_context(
                    inner.stmts, inside(enclosed, inner), inside, values=bound, buffers=buffers
                )


def accesses_of_block(block: Block) -> Iterator[Access]:
    """Yield the accesses of the init, predicate and body of a block, in terms of its block variables."""
    yield from accesses(block.init)
    if block.predicate is not None:
        for node, is_certain in reads_in(block.predicate):
            yield _access_of(node, {}, EnclosingContext(), is_certain=is_certain)
    yield from accesses(block.body)


def _same_context(enclosed: StmtInContext[EnclosingContext], _body: Body) -> EnclosingContext:
    return enclosed.context


def _context_inside(enclosed: StmtInContext[EnclosingContext], body: Body) -> EnclosingContext:
    """Return the context of a body of a statement; the init of a block runs before the reduction loops."""
    context, stmt, values = enclosed.context, enclosed.stmt, enclosed.values
    # The reduction loops may have no iteration, and conditions inside of them do not hold there.
    if body.is_init and isinstance(stmt, Block):
        return context_at_init(context, stmt, values)
    resolved = tuple(resolve(condition, values) for condition in body.conditions)
    loops, loop = context.loops, loop_of(stmt)
    if loop is not None:
        start, extent = resolve(loop.start, values), resolve(loop.extent, values)
        loops = (*loops, replace(loop, start=start, extent=extent))
    return EnclosingContext(loops, (*context.conditions, *resolved), context.idle)


def context_at_init(
    context: EnclosingContext, block: Block, values: ValuesOfVars
) -> EnclosingContext:
    """Return the context of the init of a block, which runs before the reduction loops.

    With reduction loops, conditions around the block are dropped: they may be inside these loops.
    """
    fed = reduction_loops(block, values)
    outside = () if fed else context.conditions
    parts = conditions_of_init(EnclosedBlock(block, context.loops, values))
    init_conditions = tuple(resolve(part, values) for part in parts)
    return EnclosingContext(context.loops, (*outside, *init_conditions), context.idle | fed)


def _direct_accesses(effects: Effects) -> Iterator[tuple[_AccessNode, bool]]:
    """Yield the accesses of a statement without those in its bodies, reads first, each with whether it
    happens whenever the statement is executed."""
    for part in effects.evaluates:
        yield from reads_in(part)
    yield from ((read, True) for read in effects.reads)
    for write in effects.writes:
        yield write, _is_unmasked(write)


def reads_in(expr: Expr) -> list[tuple[Load | Search, bool]]:
    """Return the loads and searches of an expression, each with whether it happens whenever the expression is
    evaluated."""
    reads: list[tuple[Load | Search, bool]] = []
    if type(expr) in LEAVES:
        return reads
    stack: list[tuple[Any, bool]] = [(expr, True)]
    while stack:
        node, is_certain = stack.pop()
        kind = type(node)
        if kind in READS:
            reads.append((node, is_certain and _is_unmasked(node)))
        # An access in an operand that may stay unevaluated, as a side of an `IfThenElse`, may not happen.
        if kind in LAZY:
            for name in reversed(kind.__struct_fields__):
                stack.append((getattr(node, name), is_certain and name not in LAZY[kind]))
            continue
        for child in reversed(children(node)):
            if type(child) not in LEAVES:
                stack.append((child, is_certain))
    return reads


def _is_unmasked(node: _AccessNode) -> bool:
    return getattr(node, "predicate", None) is None


def is_evaluated(name: str, expr: Any) -> bool:
    """Return whether a variable is evaluated whenever an expression is.

    >>> from gossamer_ir.core.build import ZERO, index_var
    >>> from gossamer_ir.nodes import Compare, IfThenElse
    >>> selection = IfThenElse(Compare("lt", index_var("i"), ZERO), index_var("j"), ZERO)
    >>> is_evaluated("i", selection), is_evaluated("j", selection)
    (True, False)
    """
    kind = type(expr)
    if kind is Var:
        return bool(expr.name == name)
    return any(is_evaluated(name, part) for part in always_evaluated(expr))


def _access_of(
    node: _AccessNode, values: ValuesOfVars, context: EnclosingContext, *, is_certain: bool
) -> Access:
    indices = _indices(node, values)
    is_store = isinstance(node, WRITES)
    return Access(node.buffer, indices, is_store=is_store, is_certain=is_certain, context=context)


def _indices(node: _AccessNode, values: ValuesOfVars) -> tuple[Expr | Range, ...]:
    if isinstance(node, Search):
        begin, end = resolve(node.begin, values), resolve(node.end, values)
        return (*(resolve(at, values) for at in node.prefix), Range(begin, sub(end, begin)))
    return tuple(resolve(at, values) for at in node.indices)
