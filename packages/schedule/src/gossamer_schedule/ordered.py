"""Elements that later iterations of a loop touch lie behind those of earlier ones.

So it is with the values of a sparse matrix, row by row: row `i` has the positions from `indptr[i]` to
before `indptr[i + 1]`, and `indptr` never decreases. Their indices are no digits of a number (see
`digits`), but the prover orders them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import msgspec

from gossamer_ir.build import ONE, conjuncts, index_var
from gossamer_ir.lasting import lasting_facts
from gossamer_ir.nodes import (
    Binary,
    Block,
    Combine,
    Expr,
    For,
    If,
    Let,
    Load,
    Search,
    Stmt,
    Store,
    While,
)  # fmt: skip
from gossamer_ir.prove import Prover
from gossamer_ir.walk import free_vars, substitute, walk
from gossamer_schedule.accesses import mentioned, parts_of, values_at, written
from gossamer_schedule.linear import Values, resolve
from gossamer_schedule.predicates import reduction_loops
from gossamer_schedule.sites import Site

_LATER = "_later"
"""Behind the names of loops in another iteration."""


class _Known(msgspec.Struct, frozen=True):
    """What holds where a statement stands: loops it is in, and conditions, in loop variables. An
    init also runs where the loops that feed a reduction, which are `idle` then, do not."""

    loops: tuple[For, ...] = ()
    conditions: tuple[Expr, ...] = ()
    idle: frozenset[str] = frozenset()

    def expressions(self) -> tuple[Expr, ...]:
        """All that is assumed."""
        bounds = (part for loop in self.loops for part in (loop.start, loop.extent))
        return (*bounds, *self.conditions)


class _Touch(msgspec.Struct, frozen=True):
    """One access, and what holds where it happens."""

    indices: tuple[Expr, ...]
    known: _Known


def is_ordered(site: Site, buffer: str) -> bool:
    """Whether it is proved that, along a dimension of the buffer, each iteration of the loop at the
    site touches only what lies behind everything that earlier iterations touch."""
    loop: For = site.node
    changing = written(loop.body)
    touches = list(_touches(loop.body, buffer, values=values_at(site), known=_Known()))
    if any(mentioned((*touch.indices, *touch.known.expressions())) & changing for touch in touches):
        return False
    prover = Prover(lasting_facts(site.function))
    idle = {name for touch in touches for name in touch.known.idle}
    for outer in (*site.loops, loop):
        if outer.var not in idle:
            prover.assume_range(outer.var, outer.start, outer.extent)
    later = index_var(loop.var + _LATER)
    prover.assume_range(later.name, loop.start, loop.extent)
    prover.assume_nonnegative(_gap(index_var(loop.var), later))
    rank = min((len(touch.indices) for touch in touches), default=0)
    return any(_grows(touches, dim, prover=prover, loop=loop) for dim in range(rank))


def _grows(touches: Sequence[_Touch], dim: int, *, prover: Prover, loop: For) -> bool:
    return all(
        _is_before(first, second, dim, prover=prover, loop=loop)
        for first, second in product(touches, touches)
    )


def _is_before(first: _Touch, second: _Touch, dim: int, *, prover: Prover, loop: For) -> bool:
    """Whether the first access comes before the second one in a later iteration."""
    names = (loop.var, *(inner.var for inner in second.known.loops))
    renamed = {name: index_var(name + _LATER) for name in names}
    mark = prover.mark()
    _assume(prover, first.known, {})
    _assume(prover, second.known, renamed)
    after: Expr = substitute(second.indices[dim], renamed)
    is_proved = prover.proves_nonnegative(_gap(first.indices[dim], after))
    prover.release(mark)
    return is_proved


def _gap(first: Expr, second: Expr) -> Expr:
    """Nonnegative where first < second."""
    return Binary("sub", Binary("sub", second, first), ONE)


def _assume(prover: Prover, known: _Known, renamed: Values) -> None:
    for inner in known.loops:
        if inner.var in known.idle:
            continue
        start, extent = (substitute(part, renamed) for part in (inner.start, inner.extent))
        prover.assume_range(_name(inner.var, renamed), start, extent)
    for condition in known.conditions:
        prover.assume(substitute(condition, renamed))


def _name(var: str, renamed: Values) -> str:
    return var + _LATER if var in renamed else var


def _touches(
    body: tuple[Stmt, ...], buffer: str, *, values: Values, known: _Known
) -> Iterator[_Touch]:
    values = dict(values)
    for statement in body:
        match statement:
            case Let():
                values[statement.var.name] = resolve(statement.value, values)
            case Block():
                values.update({it.var: resolve(it.value, values) for it in statement.iters})
        yield from _own(statement, buffer, values=values, known=known)
        if isinstance(statement, Block):
            inside = _at_init(known, statement, values)
            yield from _touches(statement.init, buffer, values=values, known=inside)
        for inner, conditions in _inside(statement):
            deeper = _deeper(known, statement, values, conditions)
            yield from _touches(inner, buffer, values=values, known=deeper)


def _deeper(known: _Known, statement: Stmt, values: Values, conditions: tuple[Expr, ...]) -> _Known:
    resolved = tuple(resolve(condition, values) for condition in conditions)
    loops = known.loops
    if isinstance(statement, For):
        start, extent = resolve(statement.start, values), resolve(statement.extent, values)
        loops = (*loops, msgspec.structs.replace(statement, start=start, extent=extent))
    return _Known(loops, (*known.conditions, *resolved), known.idle)


def _at_init(known: _Known, block: Block, values: Values) -> _Known:
    """What holds where the init of a block runs, which is before the loops that feed a reduction."""
    fed = reduction_loops(block, values)
    outside = () if fed else known.conditions
    own = tuple(resolve(part, values) for part in _conditions_of_init(block, known))
    return _Known(known.loops, (*outside, *own), known.idle | fed)


def _conditions_of_init(block: Block, known: _Known) -> Iterator[Expr]:
    """The parts of a predicate that are only about iterators that select what the init writes."""
    needed = {name for statement in block.init for name in free_vars(statement)}
    for found in reversed(block.iters):
        if found.kind == "S" or found.var in needed:
            needed |= {found.var} | free_vars(found.value) | free_vars(found.domain)
    bound = {found.var for found in block.iters} | {loop.var for loop in known.loops}
    for part in conjuncts(block.predicate):
        if not (free_vars(part) & bound) - needed:
            yield part


def _inside(statement: Any) -> Iterator[tuple[tuple[Stmt, ...], tuple[Expr, ...]]]:
    """The bodies of a statement but for an init, with the conditions under which they run."""
    match statement:
        case For() | While():
            yield statement.body, ()
        case Block():
            yield statement.body, tuple(conjuncts(statement.predicate))
        case Combine():
            yield statement.stores, ()
        case If():
            yield statement.then_body, tuple(conjuncts(statement.condition))
            yield statement.else_body, ()


def _own(statement: Stmt, buffer: str, *, values: Values, known: _Known) -> Iterator[_Touch]:
    """The accesses of a statement apart from those in its bodies."""
    if isinstance(statement, Store) and statement.buffer == buffer:
        yield _Touch(tuple(resolve(at, values) for at in statement.indices), known)
    for part in parts_of(statement):
        for node in walk(part):
            if isinstance(node, Search) and node.buffer == buffer:
                yield _Touch((), known)
            elif isinstance(node, Load) and node.buffer == buffer:
                yield _Touch(tuple(resolve(at, values) for at in node.indices), known)
