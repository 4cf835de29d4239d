"""Hoists allocations whose size depends on loop variables before the loops, with the largest size.

A program may not read uninitialized memory, so values that an earlier iteration left in the buffer do no
harm. Buffers of constant size are not hoisted: they are registers or part of the stack frame. Nor are
buffers that are passed to the function of a parallel loop, which declares their size.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.analysis.statements.software_pipelining import is_pipelined
from gossamer_ir.core.build import ONE, ZERO, index_var, integer_value
from gossamer_ir.core.statement_kinds import CALLING_STMTS, CHECKING_STMTS, effects_of
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Expr,
    For,
    Function,
    Guard,
    IfThenElse,
    Let,
    Load,
    Module,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars, namer_of
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_ir.traversal.substitute import substitute
from gossamer_ir.traversal.walk import children, collect
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import reuse_if_same, with_bodies, with_body


@lowering_pass(
    takes=("flat",),
    acts_on="allocations of varied size",
    after={
        "outline_parallel": "a buffer of a parallel iteration is then allocated once for a chunk of them"
    },
)
def hoist_allocations(module: Module) -> Module:
    """Move allocations of variable size out of serial loops, with the maximum of their sizes.

    The size must be computable before the loops: it may read only memory that the function does not write.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> from gossamer_lower import outline_parallel
    >>> before = program('''
    ... for i in T.serial(n - 1):
    ...     row = T.alloc_buffer((P[i + 1] - P[i],), "float32")
    ...     row[0] = X[i]
    ...     Y[i] = row[0]
    ... ''')
    >>> print(body_text(hoist_allocations(outline_parallel(before))))
    row_most = T.alloc_buffer((1,), "int64", scope="local")
    row_most[0] = 0
    for i_1 in T.serial(n - 1):
        row_most[0] = T.max(row_most[0], P[i_1 + 1] - P[i_1])
    row_length: T.int64 = row_most[0]
    row = T.alloc_buffer((row_length,), "float32")
    for i in T.serial(n - 1):
        row[0] = X[i]
        Y[i] = row[0]
    """
    return map_functions(module, _hoist_function)


def _hoist_function(function: Function) -> Function:
    return with_body(function, _AllocationHoister(function).body(function.body))


class _HoistedBuffer(msgspec.Struct, frozen=True):
    """A buffer that is being hoisted, and the loops that it has left and on which its size depends,
    outermost first."""

    buffer: Buffer
    loops: tuple[For, ...] = ()

    def over(self, loop: For) -> _HoistedBuffer:
        """Return the buffer hoisted out of one more loop."""
        return (
            _HoistedBuffer(self.buffer, (loop, *self.loops)) if loop.var in self.depends() else self
        )

    def exprs(self) -> tuple[Expr, ...]:
        bounds = (part for loop in self.loops for part in (loop.start, loop.extent))
        return (*self.buffer.shape, *bounds)

    def depends(self) -> frozenset[str]:
        """Return the variables on which its size depends, outside the loops that it has left."""
        return free_vars(*self.exprs()) - {loop.var for loop in self.loops}


class _AllocationHoister:
    def __init__(self, function: Function) -> None:
        self._namer = namer_of(function)
        self._function = function
        self._declared = {buffer.name for buffer in function.buffers}
        self._handed = _names_passed(function)
        self._conditional: list[Guard] = []

    def body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return statements that are in no loop out of which allocations may be hoisted."""
        kept, _ = self._body(body, None)
        return kept

    def _body(
        self, body: tuple[Stmt, ...], loop: For | None
    ) -> tuple[tuple[Stmt, ...], tuple[_HoistedBuffer, ...]]:
        """Return the statements that stay in the body of a loop, and the buffers hoisted out of it."""
        kept: list[Stmt] = []
        leaving: list[_HoistedBuffer] = []
        guards, outer = list[Guard](), [*self._conditional]
        for stmt in body:
            if isinstance(stmt, CHECKING_STMTS):
                guards.append(stmt)
                # Such a guard checks only under its condition, so it may protect a read inside that
                # no longer happens under the condition outside.
                if collect(IfThenElse, stmt.condition):
                    self._conditional.append(stmt)
            new, moving = self._stmt(stmt)
            for allocation in moving:
                if loop is not None and self._may_leave(allocation, loop, guards):
                    leaving.append(allocation)
                else:
                    kept += self._placement(allocation)
            kept += () if new is None else (new,)
        self._conditional = outer
        return reuse_if_same(body, tuple(kept)), tuple(leaving)

    # Other statements: only their bodies are visited.
    def _stmt(self, stmt: Stmt) -> tuple[Stmt | None, tuple[_HoistedBuffer, ...]]:
        """Return the statement without hoisted allocations, and the buffers to allocate before it."""
        match stmt:
            case Allocate() if self._may_grow(stmt.buffer):
                return None, (_HoistedBuffer(stmt.buffer),)
            case For():
                body, leaving = self._body(stmt.body, stmt)
                moving = tuple(allocation.over(stmt) for allocation in leaving)
                return with_bodies(stmt, lambda _: body), moving
        return with_bodies(stmt, self.body), ()

    def _may_grow(self, buffer: Buffer) -> bool:
        varies = any(integer_value(extent) is None for extent in buffer.shape)
        return varies and buffer.name not in self._handed

    def _may_leave(self, moving: _HoistedBuffer, loop: For, guards: list[Guard]) -> bool:
        """Return whether the loop is serial and the size can be computed before it."""
        # Stages of a pipelined loop overlap, so iterations must not share a buffer.
        if loop.kind != "serial" or is_pipelined(loop):
            return False
        parts = moving.exprs()
        # A size read from an allocated buffer is not known before that buffer is filled.
        if not buffers_read(*parts) <= self._declared:
            return False
        if not is_constant(*parts, function=self._function):
            return False
        # The size uses a variable that does not exist before the loop.
        if not moving.depends().isdisjoint(bound_vars(loop.body)):
            return False
        # Before the loop, a read in the size may be out of bounds: its guard stays inside, or holds only
        # if the loop has an iteration.
        return not any(_may_protect(guard, moving) for guard in (*guards, *self._conditional))

    def _placement(self, moving: _HoistedBuffer) -> Iterator[Stmt]:
        """Yield the statements that compute the size of each dimension, and the allocation."""
        shape: list[Expr] = []
        for extent in moving.buffer.shape:
            # The same in all iterations: no maximum is needed.
            if free_vars(extent).isdisjoint(loop.var for loop in moving.loops):
                shape.append(extent)
                continue
            length = Var(self._namer.fresh(f"{moving.buffer.name}_length"), "int64")
            yield from self._longest(length, extent, moving)
            shape.append(length)
        yield Allocate(replace(moving.buffer, shape=tuple(shape)))

    def _longest(self, length: Var, extent: Expr, moving: _HoistedBuffer) -> Iterator[Stmt]:
        """Yield statements that compute the maximum of an extent in the loops, at least 0."""
        largest = Buffer(
            self._namer.fresh(f"{moving.buffer.name}_most"), (ONE,), "int64", scope="local"
        )
        size = Load(largest.name, (ZERO,), "int64")
        fresh = {loop.var: index_var(self._namer.fresh(loop.var)) for loop in moving.loops}
        larger = Binary("max", size, substitute(extent, fresh))
        step: Stmt = Store(largest.name, (ZERO,), larger)
        # The loops of the original nest, since inner bounds may depend on outer variables.
        for loop in reversed(moving.loops):
            start, count = substitute(loop.start, fresh), substitute(loop.extent, fresh)
            step = For(fresh[loop.var].name, start, count, (step,))
        yield from (Allocate(largest), Store(largest.name, (ZERO,), ZERO), step)
        yield Let(length, size)


def _may_protect(guard: Guard, moving: _HoistedBuffer) -> bool:
    """Return whether a guard before the allocation may be what makes a read in the size safe. Such a size
    cannot be computed before the loop. A read without a guard is proved in bounds for all iterations."""
    read_from = collect(READS, *moving.exprs())
    # The guard names the buffer that the size reads, so it may be the check of that very read.
    if any(read.buffer == guard.buffer for read in read_from):
        return True
    indices = [part for read in read_from for part in children(read)]
    checked = {*collect(READS, guard.condition), *collect(Var, guard.condition)}
    return not checked.isdisjoint({*collect(READS, *indices), *collect(Var, *indices)})


def _names_passed(function: Function) -> set[str]:
    """Return the handles and allocated buffers that the function passes to others."""
    calls = nodes_of_type(function, *CALLING_STMTS)
    return {name for call in calls for name in effects_of(call).passed_buffers}
