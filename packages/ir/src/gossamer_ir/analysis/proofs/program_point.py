"""The conditions that hold at a point of a program, for passes that walk a function without blocks.

A pass enters loops and conditions through a `ProgramPoint` and queries it, instead of managing a prover
itself. Three rules make the answers sound:

* A condition is assumed only while the statements under it run, and only if neither they nor concurrent
  iterations write the buffers that it reads.
* The prover uses unbounded integers, machine integers wrap. Assumptions and operands of comparisons must be
  proved not to wrap. A value that is proved to be in a range may wrap in intermediate results.
* Facts are used only for buffers that the function does not write.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from gossamer_ir.analysis.accesses.buffer_accesses import EnclosingContext
from gossamer_ir.analysis.bounds.array_extents import extents_passed
from gossamer_ir.analysis.bounds.overflow import OverflowAnalysis, overflow_of
from gossamer_ir.analysis.invariants import (
    buffers_written_in,
    changing_buffers,
    invariant_facts,
    is_constant,
    mutable_buffers,
)
from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.build import ZERO, index_var, integer_value
from gossamer_ir.core.conditions import short_circuit_conjuncts
from gossamer_ir.core.operations import DIVISIONS
from gossamer_ir.core.statement_kinds import Body
from gossamer_ir.nodes import (
    Binary,
    BlockIter,
    Buffer,
    Compare,
    Expr,
    Fact,
    For,
    Function,
    IfThenElse,
    Range,
    Stmt,
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.fields import LEAVES
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.statement_queries import (
    allocation_of,
    condition_after,
    loop_of,
    values_after,
)
from gossamer_ir.traversal.walk import collect
from gossamer_support.identity_cache import memoize_by_identity


class ProgramPoint:
    """The conditions that hold at a point of a function of the position, loop or flat stage. Entering and
    leaving statements moves the point.

    >>> from gossamer_ir.core.build import index, index_var
    >>> from gossamer_ir.nodes import If, Load, Store
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
        """Create the point at the beginning of a function.

        `facts` replace the `invariant_facts` of the function, if more are known to hold everywhere. With
        `binds_all`, queries may mention all variables of the function, wherever they are bound.
        """
        buffers = [buffer for buffer in function.buffers if isinstance(buffer, Buffer)]
        self.prover = Prover(invariant_facts(function) if facts is None else facts)
        self.overflow = overflow_of(function).copy() if binds_all else OverflowAnalysis(function)
        self.shapes = {buffer.name: buffer.shape for buffer in buffers}
        self.written = mutable_buffers(function)
        self.function = function
        self._changing = self.written
        self.assumed: list[Expr] = []
        self.written_by_others: frozenset[str] = frozenset()
        # A caller cannot pass an array of negative size.
        for extent in extents_passed(function):
            if integer_value(extent) is None:
                self.prover.assume_nonnegative(extent)

    # --- moving

    def scope(self) -> AbstractContextManager[None]:
        """Return a context in which assumptions may be made; they are retracted at its end."""
        return _EnteredScope(self, _stay)

    def inside(self, loop: For) -> AbstractContextManager[None]:
        """Return a context in which the point is in the body of a loop, so that its variable is in its
        range."""
        return _EnteredScope(self, partial(self._enter, loop))

    def _enter(self, loop: For) -> None:
        self.bind_loop(loop)
        # Other iterations run at the same time,
        # so a condition can become false while statements after it run.
        if loop.kind in ("parallel", "thread_binding"):
            self.written_by_others |= buffers_written_in(loop.body, self.function)
        self.assume_range(loop, loop.extent)

    def under(self, condition: Expr, body: tuple[Stmt, ...] = ()) -> AbstractContextManager[None]:
        """Return a context in which the point is inside `body`, before which a condition was true."""
        return _EnteredScope(self, partial(self._assume_before, condition, body))

    def _assume_before(self, condition: Expr, body: tuple[Stmt, ...]) -> None:
        # The condition must stay true inside `body` only; after that, the outer set counts again.
        changing = self._changing
        self.restrict_changing(body)
        self.assume(condition)
        self._changing = changing

    def in_body(self, stmt: Stmt, body: Body) -> AbstractContextManager[None]:
        """Return a context in which the point is where a body of a statement begins: the variable of a loop
        is in its range, and the condition of the body holds. The iterators of a block are not bound.

        >>> from gossamer_ir.core.build import ZERO, index_var
        >>> from gossamer_ir.nodes import If
        >>> from gossamer_ir.core.statement_kinds import effects_of
        >>> branch = If(Compare("lt", index_var("i"), ZERO), (), ())
        >>> point = ProgramPoint(Function("f", (), (branch,)), binds_all=True)
        >>> _, otherwise = effects_of(branch).bodies
        >>> with point.in_body(branch, otherwise):
        ...     point.is_nonnegative(index_var("i"))
        True
        """
        return _EnteredScope(self, partial(self._enter_body, stmt, body))

    def _enter_body(self, stmt: Stmt, body: Body) -> None:
        loop = loop_of(stmt)
        if loop is not None:
            self._enter(loop)
        if body.condition is not None:
            self._assume_before(body.condition, body.stmts)

    def move_past(self, stmt: Stmt) -> None:
        """Move the point past a statement in the same body, and assume what the statement established."""
        # Names are unique, so the equation holds to the end of the function.
        for var, value in values_after(stmt):
            if var.dtype == "int64":
                self.overflow.bind(var.name, value)
                self.assume(Compare("eq", var, value))
        buffer, condition = allocation_of(stmt), condition_after(stmt)
        if buffer is not None:
            self.shapes[buffer.name] = buffer.shape
        if condition is not None:
            self.assume(condition)

    def bind_loop(self, loop: For) -> None:
        """Bound the magnitude of the variable of a loop by the ends of its range."""
        self.overflow.bind_loop(loop)

    # --- assuming

    def assume(self, condition: Expr) -> None:
        """Assume a condition from here on: those of its conjuncts that keep their value and do not wrap."""
        for part in short_circuit_conjuncts(condition):
            self.assumed.append(part)
            if self.is_stable_and_exact(part):
                self.prover.assume(part)

    def assume_range(self, loop: For, extent: Expr) -> None:
        """Assume that the variable of a loop is in the range with this extent, if neither end wraps."""
        end = extent if loop.start == ZERO else Binary("add", loop.start, extent)
        if self.is_stable_and_exact(end):  # then so is the start, an operand of it
            self.prover.assume_range(loop.var, loop.start, extent)
        elif loop.start == ZERO:
            # The extent does not matter: an iteration from 0 on has no negative number.
            self.prover.assume_nonnegative(index_var(loop.var))

    def assume_loop(self, loop: For) -> None:
        """Assume from here on that the point is in an iteration of a loop."""
        self.bind_loop(loop)
        self.assume_range(loop, loop.extent)

    def assume_domain(self, iterator: BlockIter) -> None:
        """Assume from here on that the variable of an iterator is in its domain."""
        self.assume_loop(For(iterator.var, iterator.domain.start, iterator.domain.extent, ()))

    def assume_iterator(self, iterator: BlockIter) -> None:
        """Assume from here on that the variable of an iterator is in its domain and equals its value."""
        self.assume_domain(iterator)
        self._assume_value(iterator)

    def assume_binding(self, iterator: BlockIter) -> None:
        """Assume from here on that the variable of an iterator equals its value. This holds where the
        predicate of the block is evaluated; the value may be outside the domain there."""
        # Not the domain: the predicate may be what excludes values outside of it.
        self.overflow.bind(iterator.var, iterator.value)
        self._assume_value(iterator)

    def _assume_value(self, iterator: BlockIter) -> None:
        self.assume(Compare("eq", index_var(iterator.var), iterator.value))

    def restrict_changing(self, body: tuple[Stmt, ...]) -> None:
        """Restrict the buffers that may change to those that these statements write, because the point is
        inside them, and to those that concurrent iterations write."""
        self._changing = buffers_written_in(body, self.function) | self.written_by_others

    def assume_context(self, context: EnclosingContext) -> None:
        """Assume the context of an access from here on."""
        for loop in context.loops:
            if loop.var not in context.idle:
                # Bound once: names are unique, and a new bound discards all that is known about overflow.
                if not self.overflow.is_bound(loop.var):
                    self.bind_loop(loop)
                self.assume_range(loop, loop.extent)
        for condition in context.conditions:
            self.assume(condition)

    # --- querying

    def is_stable_and_exact(self, expr: Expr) -> bool:
        """Return whether an expression keeps its value while the statements around the point run, and does
        not wrap."""
        if type(expr) in LEAVES:
            return True
        # `is_exact`, since the prover would reason about the number before it wraps.
        return self._changing.isdisjoint(buffers_read(expr)) and self.overflow.is_exact(expr)

    def is_stable(self, *exprs: Expr) -> bool:
        """Return whether expressions read no buffer that may change. Their values may wrap."""
        return self._changing.isdisjoint(buffers_read(*exprs))

    def is_exact(self, *exprs: Expr | Range) -> bool:
        """Return whether no operation in expressions wraps."""
        return all(map(self.overflow.is_exact, exprs))

    def is_assumed(self, condition: Expr) -> bool:
        """Return whether a condition was assumed in this form, and reads no buffer that the function writes.
        Nothing is proved, so the operands may wrap."""
        return is_constant(condition, function=self.function) and condition in self.assumed

    def is_in_range(self, index: Expr, extent: Expr) -> bool:
        """Return whether 0 <= index < extent is proved."""
        return self.is_bound_sound(index, extent) and self.prover.proves_in_range(index, extent)

    def is_bound_sound(self, index: Expr, extent: Expr) -> bool:
        """Return whether a proof of 0 <= index < extent in unbounded integers holds for machine integers. The
        index may wrap in intermediate results; the extent may not."""
        # If the unbounded index is in [0, extent), the machine index is equal to it,
        # however it was computed.
        return self.overflow.is_sound(index) and self.is_stable_and_exact(extent)

    def is_at_most(self, lesser: Expr, greater: Expr) -> bool:
        """Return whether lesser <= greater is proved."""
        # A comparison of wrapped values says nothing about the unbounded ones.
        if not (self.is_stable_and_exact(lesser) and self.is_stable_and_exact(greater)):
            return False
        return self.prover.proves_nonnegative(Binary("sub", greater, lesser))

    def is_nonnegative(self, expr: Expr) -> bool:
        """Return whether 0 <= expr is proved."""
        return self.is_stable_and_exact(expr) and self.prover.proves_nonnegative(expr)

    def proves(self, condition: Expr) -> bool:
        """Return whether a condition that is evaluated at this point is proved to hold."""
        return self.is_exact(condition) and self.prover.proves(condition)


def _stay() -> None:
    """Leave the point where it is."""


class _EnteredScope(AbstractContextManager[None]):
    """Moves a point into a statement, and back at its end. A class, which is cheaper to enter than a
    generator: passes enter many statements."""

    def __init__(self, point: ProgramPoint, enter: Callable[[], None]) -> None:
        self._point = point
        self._enter = enter
        self._scope = point.prover.scope()

    def __enter__(self) -> None:
        self._others = self._point.written_by_others
        self._count = len(self._point.assumed)
        self._scope.__enter__()
        self._enter()

    def __exit__(self, *raised: object) -> None:
        # Bounds of variables stay: their names are unique, so nothing outside can mention them.
        self._scope.__exit__(None, None, None)
        self._point.written_by_others = self._others
        del self._point.assumed[self._count :]


def is_invariant(expr: Expr, body: tuple[Stmt, ...], function: Function) -> bool:
    """Return whether an expression has the same value before, between and after statements: they bind
    none of its variables and write no buffer that it reads."""
    if not free_vars(expr).isdisjoint(_vars_bound_in(body)):
        return False
    return type(expr) in LEAVES or not changing_buffers(body, expr, function=function)


@memoize_by_identity
def _vars_bound_in(body: tuple[Stmt, ...]) -> set[str]:
    """Return the variables that statements bind. Memoized, since queries about several expressions and one
    body follow each other."""
    return bound_vars(body)


def is_speculatable_before(
    expr: Expr, loop: For, function: Function, *, is_in_each: bool = False
) -> bool:
    """Return whether a loop-invariant expression can be evaluated (speculated) before a loop.

    A loop without iterations does not evaluate it, so it must not contain a partial operation (a read, or a
    division) unless the bounds of the loop evaluate the same operation unconditionally. With `is_in_each`,
    the caller guarantees that each iteration evaluates the expression before it does anything else; then a
    constant positive extent suffices.
    """
    if loop.var in free_vars(expr) or not is_invariant(expr, loop.body, function):
        return False
    if is_in_each and (integer_value(loop.extent) or 0) >= 1:
        return True
    # If the extent of the loop already reads P[i], reading P[i] before the loop adds no new failure.
    evaluated = set(_evaluated_partial_operations(loop.start, loop.extent))
    return evaluated.issuperset(_partial_operations(expr))


def _evaluated_partial_operations(*exprs: Expr) -> list[Expr]:
    """Return partial operations that are evaluated unconditionally."""
    # An operation on one side of an `IfThenElse` may never be evaluated.
    return [] if collect(IfThenElse, *exprs) else _partial_operations(*exprs)


def _partial_operations(*exprs: Expr) -> list[Expr]:
    """Return operations that are not defined for all operands: reads, and divisions by a value that may be
    0."""
    return [
        operation
        for operation in collect((*READS, Binary), *exprs)
        if not isinstance(operation, Binary)
        or (operation.op in DIVISIONS and not integer_value(operation.rhs))
    ]
