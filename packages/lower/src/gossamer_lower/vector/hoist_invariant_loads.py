"""Hoists loop-invariant vector loads, so that the vectors stay in registers while the loop runs.

LLVM cannot hoist a load that is not executed in every iteration, because it might be out of bounds. Here
the load is proved in bounds, so it can be speculated before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gossamer_ir.analysis.accesses.buffer_accesses import reads_in
from gossamer_ir.analysis.lane_projection import in_lane
from gossamer_ir.analysis.proofs.program_point import is_invariant
from gossamer_ir.core.build import ONE, ZERO, index, index_var
from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.statement_kinds import CHECKING_STMTS, effects_of
from gossamer_ir.nodes import For, Function, Let, Load, Module, Node, Ramp, Search, Var
from gossamer_ir.traversal.fields import has_bodies
from gossamer_ir.traversal.node_index import types_in
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.statement_queries import values_after
from gossamer_ir.traversal.substitute import resolve
from gossamer_ir.traversal.walk import collect
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import Stmts, with_body
from gossamer_lower.statements.serial_loops import SerialLoopVisitor, if_iterated

DEFAULT_KEPT_VECTORS = 16
"""Half of the 32 vector registers of AVX-512, Arm and RISC-V, so that the others hold the values of the loop.
On a machine with 16 registers, the backend spills the vectors that do not fit: they are loaded again in the
loop, as they were before this pass."""


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    after={"unroll_loops": "equal loads of several copies share a register and count once"},
)
def hoist_invariant_loads(module: Module, *, max_vectors: int = DEFAULT_KEPT_VECTORS) -> Module:
    """Load vectors before the outermost serial loop in which they are invariant.

    Nothing is hoisted out of a loop with more than `max_vectors` such loads, for which there would not be
    enough registers. It runs after vectorization and unrolling. Only loads of consecutive elements are
    hoisted that the function does not write and that are in bounds whenever the loop has an iteration.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... if n > 7:
    ...     for i in T.serial(n // 8):
    ...         if P[i] > 0:
    ...             Y[T.ramp(i * 8, 1, 8)] = X[T.ramp(0, 1, 8)]
    ... ''')
    >>> print(body_text(hoist_invariant_loads(before)))
    if n > 7:
        if n // 8 > 0:
            X_kept: T.float32x8 = X[T.ramp(0, 1, 8)]
            for i in T.serial(n // 8):
                if P[i] > 0:
                    Y[T.ramp(i * 8, 1, 8)] = X_kept
    """
    return map_functions(module, lambda function: _hoist_function(function, max_vectors))


def _hoist_function(function: Function, max_vectors: int) -> Function:
    if Ramp not in types_in(function):
        return function
    return with_body(function, _LoadHoister(function, max_vectors).body(function.body))


class _LoadHoister(SerialLoopVisitor):
    """Hoists the loads of one function."""

    def __init__(self, function: Function, max_vectors: int) -> None:
        super().__init__(function)
        self._max_vectors = max_vectors

    def serial_loop(self, loop: For) -> Stmts:
        lets = {**self._lets(loop), **self._row_lets(loop)}
        if not lets:
            return (self.inside(loop),)
        kept = rewrite(loop, lambda node: _var(node, lets), leaves=False)
        # A speculated load is in bounds only if the loop has an iteration.
        return if_iterated(loop, (*lets.values(), self.inside(kept)))

    def _lets(self, loop: For) -> dict[Load, Let]:
        """Return the loads to hoist before a loop, with their lets; none if there are too many."""
        around = (loop,)
        loads = [load for load in collect(Load, *loop.body) if self._is_run(load)]
        hoisted = [load for load in dict.fromkeys(loads) if self._is_same(load, around)]
        if not hoisted:
            return {}
        with self.point.inside(loop):
            hoisted = [load for load in hoisted if self._exists(load)]
        return (
            {load: self._let(load) for load in hoisted}
            # All or none: the loads are not ranked by benefit.
            if len(hoisted) <= self._max_vectors
            else {}
        )

    def _row_lets(self, loop: For) -> dict[Load, Let]:
        """Return the lets of the numbers of gathered rows, of which the loop reads vectors: LLVM may leave
        them in the loop, with the addresses of the rows."""
        rows = dict.fromkeys(
            row
            for load in collect(Load, *loop.body)
            if isinstance(load.indices[-1], Ramp)
            for row in collect(Load, *load.indices[:-1])
        )
        bound = (pair for stmt in loop.body for pair in values_after(stmt))
        values = {var.name: value for var, value in bound}
        # In terms of variables that are bound before the loop.
        resolved = {row: resolve(row, values) for row in rows}
        certain = set(_reads_at_start(loop))
        return {
            row: self._let(value)
            for row, value in resolved.items()
            if row in certain and self._is_row(value, loop)
        }

    def _is_row(self, row: Load, loop: For) -> bool:
        """Return whether a scalar load, whose index is loaded, is loop invariant."""
        parts = collect(Load, row)
        are_constant = all(
            part.buffer in self.constant_shapes and not DType.parse(part.dtype).is_vector
            for part in parts
        )
        return are_constant and len(parts) > 1 and is_invariant(row, (loop,), self.function)

    def _is_run(self, load: Load) -> bool:
        """Return whether a load is of consecutive elements that the function does not write."""
        last = load.indices[-1]
        return (
            load.buffer in self.constant_shapes
            and isinstance(last, Ramp)
            and last.stride == ONE
            and not last.lanes.scalable
        )

    def _is_same(self, load: Load, around: tuple[For]) -> bool:
        """Return whether a load is loop invariant, and none of its indices is loaded."""
        # An index that is itself loaded would need a bounds check before the loop.
        return is_invariant(load, around, self.function) and len(collect(Load, load)) == 1

    def _exists(self, load: Load) -> bool:
        """Return whether a load is proved in bounds, given that the loop has an iteration."""
        *_, last = load.indices
        assert isinstance(last, Ramp)
        lane = index_var(self.namer.fresh("lane"))
        lanes = For(lane.name, ZERO, index(last.lanes.count), ())
        with self.point.inside(lanes):
            if load.predicate is not None:
                self.point.assume(in_lane(load.predicate, lane))
            return self.is_in_bounds(load, [in_lane(at, lane) for at in load.indices])

    def _let(self, load: Load) -> Let:
        return Let(Var(self.namer.fresh(f"{load.buffer}_kept"), load.dtype), load)


def _reads_at_start(loop: For) -> Iterator[Load | Search]:
    """Yield the loads of each iteration of a loop before anything that may stop it: a load before the loop is
    not speculated if the loop has an iteration."""
    for stmt in loop.body:
        if isinstance(stmt, CHECKING_STMTS):
            return
        for part in effects_of(stmt).evaluates:
            yield from (node for node, is_certain in reads_in(part) if is_certain)
        if has_bodies(type(stmt)):
            return


def _var(node: Node, lets: Mapping[Load, Let]) -> Var | None:
    return lets[node].var if isinstance(node, Load) and node in lets else None
