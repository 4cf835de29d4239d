"""What holds where a statement runs, for passes that walk a function without blocks.

A pass enters loops and choices through a `ProgramPoint` and asks it, instead of keeping a prover of
its own. Three rules make what it says sound:

* A condition is assumed only while the statements under it run, and only if they (and what runs at
  the same time) write nothing that it reads.
* Proofs are about unbounded integers, machine integers wrap. What is assumed, and what is compared,
  must be proved not to wrap; what is proved to lie in a range may wrap on the way there.
* Facts are used about buffers that the function does not write.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from gossamer_ir.analysis.accesses import EnclosingContext
from gossamer_ir.analysis.invariants import (
    changed_in,
    invariant_facts,
    is_constant,
    written_by,
    written_in,
)
from gossamer_ir.analysis.overflow import Magnitudes, extents_passed, magnitudes_of
from gossamer_ir.arith.prover import Prover
from gossamer_ir.arith.simplify import FALSE
from gossamer_ir.core import build
from gossamer_ir.nodes import (  # fmt: skip
    Allocate,
    Binary,
    BlockIter,
    Buffer,
    Compare,
    Expr,
    Fact,
    For,
    Function,
    Guard,
    IfThenElse,
    Let,
    Load,
    Range,
    Search,
    Stmt,
)
from gossamer_ir.traversal.identity_cache import memoize_by_identity
from gossamer_ir.traversal.names import bound_variables
from gossamer_ir.traversal.walk import LEAVES, buffers_read, collect, free_vars


class ProgramPoint:
    """What holds at one place of a function of the position, loop or flat stage; entering and leaving
    statements moves it.

    >>> from gossamer_ir.core.build import index, index_var
    >>> from gossamer_ir.nodes import If, Store
    >>> function = Function("f", (), (), buffers=(Buffer("Y", (index_var("n"),), "float32", "y"),))
    >>> i, n = index_var("i"), index_var("n")
    >>> loop = For("i", index(0), n, (Store("Y", (i,), Load("Y", (i,), "float32")),))
    >>> point = ProgramPoint(function)
    >>> with point.inside(loop):
    ...     point.is_in_range(i, n)
    True
    >>> point.is_in_range(i, n)
    False
    """

    def __init__(
        self,
        function: Function,
        *,
        facts: tuple[Fact, ...] | None = None,
        binds_all: bool = False,
    ) -> None:
        """`facts` that hold everywhere, where they are more than the `invariant_facts` of the function;
        with `binds_all` it may be asked about all variables of the function, wherever they are bound."""
        buffers = [found for found in function.buffers if isinstance(found, Buffer)]
        self.prover = Prover(invariant_facts(function) if facts is None else facts)
        self.magnitudes = magnitudes_of(function).copy() if binds_all else Magnitudes(function)
        self.shapes = {buffer.name: buffer.shape for buffer in buffers}
        self.written = written_by(function)
        self._function = function
        self._changing = self.written
        self.written_by_others: frozenset[str] = frozenset()
        for extent in extents_passed(function):
            if build.integer_value(extent) is None:
                self.prover.assume_nonnegative(extent)

    # --- moving

    def scope(self) -> AbstractContextManager[None]:
        """What is assumed until the end is forgotten there."""
        return self.prover.scope()

    def inside(self, loop: For) -> AbstractContextManager[None]:
        """The place is in the body of a loop: its variable lies in its range."""
        return _Moved(self, partial(self._enter, loop))

    def _enter(self, loop: For) -> None:
        self.bind_loop(loop)
        if loop.kind in ("parallel", "thread_binding"):
            self.written_by_others |= written_in(loop.body, self._function)
        self.assume_range(loop, loop.extent)

    def under(self, condition: Expr, body: tuple[Stmt, ...] = ()) -> AbstractContextManager[None]:
        """The place is where a condition was true before `body`, which is around the place, began."""
        return _Moved(self, partial(self._assume_before, condition, body))

    def _assume_before(self, condition: Expr, body: tuple[Stmt, ...]) -> None:
        changing = self._changing
        self.begin(body)
        self.assume(condition)
        self._changing = changing

    def after(self, stmt: Stmt) -> None:
        """The place is after a statement, in the same body: what it made true holds from here on."""
        match stmt:
            case Let() if stmt.var.dtype == "int64":
                self.magnitudes.bind(stmt.var.name, stmt.value)
                self.assume(Compare("eq", stmt.var, stmt.value))
            case Allocate():
                self.shapes[stmt.buffer.name] = stmt.buffer.shape
            case Guard():
                self.assume(stmt.condition)

    def bind_loop(self, loop: For) -> None:
        """The variable of a loop is at most as large as its ends."""
        self.magnitudes.bind(loop.var, loop.start, loop.extent)

    # --- assuming

    def assume(self, condition: Expr) -> None:
        """A condition holds from here on, as far as it stays true and means what it says."""
        if isinstance(condition, Binary) and condition.op == "and":
            self.assume(condition.lhs)
            self.assume(condition.rhs)
        elif isinstance(condition, IfThenElse) and condition.if_false == FALSE:
            self.assume(condition.condition)
            self.assume(condition.if_true)
        elif self.is_lasting(condition):
            self.prover.assume(condition)

    def assume_range(self, loop: For, extent: Expr) -> None:
        """The variable of a loop lies in the range of this extent, if neither end wraps around."""
        end = extent if loop.start == build.ZERO else Binary("add", loop.start, extent)
        if self.is_lasting(end):  # and so the start, which is a part of it
            self.prover.assume_range(loop.var, loop.start, extent)

    def assume_loop(self, loop: For) -> None:
        """A loop runs from here on."""
        self.bind_loop(loop)
        self.assume_range(loop, loop.extent)

    def assume_domain(self, item: BlockIter) -> None:
        """The variable of an iterator is in its domain from here on."""
        self.assume_loop(For(item.var, item.domain.start, item.domain.extent, ()))

    def assume_iterator(self, item: BlockIter) -> None:
        """The variable of an iterator is in its domain, and has its value, from here on."""
        self.assume_domain(item)
        self._assume_value(item)

    def assume_binding(self, item: BlockIter) -> None:
        """The variable of an iterator has its value from here on. It may be outside of its domain where the
        predicate of the block is evaluated, which tells whether the block runs there."""
        self.magnitudes.bind(item.var, item.value)
        self._assume_value(item)

    def _assume_value(self, item: BlockIter) -> None:
        self.assume(Compare("eq", build.index_var(item.var), item.value))

    def begin(self, body: tuple[Stmt, ...]) -> None:
        """The place is in some statements, and before that no other ones run: what these do not write
        stays as it is."""
        self._changing = written_in(body, self._function) | self.written_by_others

    def assume_held(self, held: EnclosingContext) -> None:
        """What holds where an element is touched holds from here on."""
        for loop in held.loops:
            if loop.var not in held.idle:
                self.assume_loop(loop)
        for condition in held.conditions:
            self.assume(condition)

    # --- asking

    def is_lasting(self, expr: Expr) -> bool:
        """Whether an expression keeps its value, which is that of unbounded integers."""
        if type(expr) in LEAVES:
            return True
        return self._changing.isdisjoint(buffers_read(expr)) and self.magnitudes.is_exact(expr)

    def is_unchanging(self, *exprs: Expr) -> bool:
        """Whether expressions read nothing that changes; their values may wrap."""
        return self._changing.isdisjoint(buffers_read(*exprs))

    def is_constant(self, *exprs: Expr) -> bool:
        """Whether expressions read nothing that the function writes anywhere."""
        return is_constant(*exprs, function=self._function)

    def is_exact(self, *exprs: Expr | Range) -> bool:
        """Whether the values of expressions are those of unbounded integers."""
        return all(map(self.magnitudes.is_exact, exprs))

    def is_in_range(self, index: Expr, extent: Expr) -> bool:
        """Whether 0 <= index < extent is proved."""
        return self.is_known(index, extent) and self.prover.proves_in_range(index, extent)

    def is_known(self, index: Expr, extent: Expr) -> bool:
        """Whether what is proved of both as unbounded integers holds: the index may wrap on the way into
        a range, its end may not."""
        return self.magnitudes.is_sound(index) and self.is_lasting(extent)

    def is_at_most(self, lesser: Expr, greater: Expr) -> bool:
        """Whether lesser <= greater is proved."""
        if not (self.is_lasting(lesser) and self.is_lasting(greater)):
            return False
        return self.prover.proves_nonnegative(Binary("sub", greater, lesser))

    def is_nonnegative(self, expr: Expr) -> bool:
        """Whether 0 <= expr is proved."""
        return self.is_lasting(expr) and self.prover.proves_nonnegative(expr)

    def proves(self, condition: Expr) -> bool:
        """Whether a condition is proved to hold where it is evaluated here."""
        return self.is_exact(condition) and self.prover.proves(condition)

    def is_invariant(self, expr: Expr, body: tuple[Stmt, ...]) -> bool:
        """Whether an expression has the same value before, between and after statements: they bind no
        variable of it and write nothing that it reads."""
        return is_invariant(expr, body, self._function)

    def is_known_before(self, expr: Expr, loop: For) -> bool:
        """As the function of this name."""
        return is_known_before(expr, loop, self._function)


class _Moved(AbstractContextManager[None]):
    """A place that is left again (a class, since passes enter many)."""

    def __init__(self, point: ProgramPoint, enter: Callable[[], None]) -> None:
        self._point = point
        self._enter = enter
        self._scope = point.prover.scope()

    def __enter__(self) -> None:
        self._others = self._point.written_by_others
        self._scope.__enter__()
        self._enter()

    def __exit__(self, *raised: object) -> None:
        self._scope.__exit__(None, None, None)
        self._point.written_by_others = self._others


def is_invariant(expr: Expr, body: tuple[Stmt, ...], function: Function) -> bool:
    """As `ProgramPoint.is_invariant`."""
    if not free_vars(expr).isdisjoint(_bound_in(body)):
        return False
    return type(expr) in LEAVES or not changed_in(body, expr, function=function)


@memoize_by_identity
def _bound_in(body: tuple[Stmt, ...]) -> set[str]:
    """Several expressions are asked about, one after the other."""
    return bound_variables(body)


def is_known_before(expr: Expr, loop: For, function: Function, *, is_in_each: bool = False) -> bool:
    """Whether an expression has a value before a loop, also where that has no iteration, and keeps it;
    `is_in_each` of what each iteration evaluates before it does anything."""
    if loop.var in free_vars(expr) or not is_invariant(expr, loop.body, function):
        return False
    if is_in_each and (build.integer_value(loop.extent) or 0) >= 1:
        return True
    return set(_in_any_case(loop.start, loop.extent)).issuperset(_partial(expr))


def _in_any_case(*exprs: Expr) -> list[Expr]:
    """What expressions read and divide, unless they may leave it out."""
    return [] if collect(IfThenElse, *exprs) else _partial(*exprs)


def _partial(*exprs: Expr) -> list[Expr]:
    """What may have no value in expressions: reads, and quotients by what may be zero."""
    return [
        found for found in collect((Load, Search, Binary), *exprs)
        if not isinstance(found, Binary)
        or (found.op in ("floordiv", "floormod") and not build.integer_value(found.rhs))
    ]  # fmt: skip
