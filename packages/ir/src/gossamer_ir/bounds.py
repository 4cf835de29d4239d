"""The least and the greatest value that an index takes while loops run, as affine forms.

They hold wherever each of the loops runs at least once; elsewhere there is no value to bound. Loop
by loop, the innermost first, a variable gives way to an end of its range, so that what an inner
range shares with the index cancels: over a row, `indptr[i] + j` is at most `indptr[i + 1] - 1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from gossamer_ir import build
from gossamer_ir.affine import Affine, affine_of, combine, expr_of, factors_of, product
from gossamer_ir.lasting import lasting_facts, written_by
from gossamer_ir.magnitudes import magnitudes_of
from gossamer_ir.nodes import (
    Binary,
    Block,
    Buffer,
    Cast,
    Compare,
    Expr,
    For,
    Function,
    IfThenElse,
    InRange,
    Let,
    Load,
    Monotone,
    Search,
    Stmt,
    Var,
)
from gossamer_ir.prove import Prover
from gossamer_ir.walk import free_vars, walk


class Bounds:
    """Bounds of the indices of a body, by the facts of its function and by what is around it."""

    def __init__(self, function: Function, body: tuple[Stmt, ...]) -> None:
        facts = lasting_facts(function)
        self._changing = written_by(function)
        self._magnitudes = magnitudes_of(function)
        self._monotone = {fact.buffer for fact in facts if isinstance(fact, Monotone)}
        self._ranges = {fact.buffer: fact for fact in facts if isinstance(fact, InRange)}
        buffers = [found for found in function.buffers if isinstance(found, Buffer)]
        self._lengths = {found.name: found.shape[-1] for found in buffers if found.shape}
        self._prover = Prover(facts)
        for found in buffers:
            for extent in found.shape if found.handle is not None else ():
                self._prover.assume_nonnegative(extent)
        for node in _around(function, body):
            self._assume(node)

    def _assume(self, node: Any) -> None:
        if isinstance(node, For) and not self._is_changing(node.start, node.extent):
            self._prover.assume_range(node.var, node.start, node.extent)
        elif isinstance(node, Let) and not self._is_changing(node.value):
            self._prover.assume(Compare("eq", node.var, node.value))
        for found in node.iters if isinstance(node, Block) else ():
            if not self._is_changing(found.domain.start, found.domain.extent):
                self._prover.assume_range(found.var, found.domain.start, found.domain.extent)

    def of(self, expr: Expr, loops: Sequence[For]) -> tuple[Affine, Affine] | None:
        """The least and the greatest value of an index while loops run, outermost first; None where
        it may be anything."""
        if self._is_changing(expr) or not self._magnitudes.is_exact(expr):
            return None
        low: Affine | None = affine_of(expr)
        high = low
        for loop in reversed(loops):
            low = low and self._end(low, loop, up=False)
            high = high and self._end(high, loop, up=True)
        return None if low is None or high is None else (low, high)

    def within(self, low: Affine, high: Affine, extent: Expr) -> tuple[Affine, Affine]:
        """Bounds of an index, cut to 0, ..., extent - 1 where they are not proved to lie there."""
        last = affine_of(build.sub(extent, build.ONE))
        return self.chosen("max", low, Affine({}, 0)), self.chosen("min", high, last)

    def chosen(self, op: Literal["min", "max"], first: Affine, second: Affine) -> Affine:
        """The lesser or the greater of two bounds."""
        apart = expr_of(combine(first, second, -1))
        if self._prover.proves_nonnegative(apart):
            return first if op == "max" else second
        if self._prover.proves_nonnegative(build.sub(build.ZERO, apart)):
            return second if op == "max" else first
        return affine_of(Binary(op, expr_of(first), expr_of(second)))

    def _is_changing(self, *parts: Expr) -> bool:
        return any(
            isinstance(node, (Load, Search)) and node.buffer in self._changing
            for part in parts
            for node in walk(part)
        )

    def _end(self, form: Affine, loop: For, *, up: bool) -> Affine | None:
        """What a form is at most, or at least, while a loop runs."""
        result = Affine({}, form.constant)
        for atom, coefficient in form.terms.items():
            part = self._end_of_atom(atom, loop, up=up == (coefficient > 0))
            if part is None:
                return None
            result = combine(result, part, coefficient)
        return result

    def _end_of_atom(self, atom: Expr, loop: For, *, up: bool) -> Affine | None:
        if loop.var not in free_vars(atom):
            return Affine({atom: 1}, 0)
        match atom:
            case Var():
                return self._end_of_loop(loop, up=up)
            case Binary(op="mul"):
                return self._end_of_product(atom, loop, up=up)
            case Binary(op="floordiv" | "floormod", rhs=divisor):
                return self._end_of_division(atom, loop, build.integer_value(divisor), up=up)
            case Binary(op="min" | "max", lhs=lhs, rhs=rhs):
                ends = [self._end(affine_of(side), loop, up=up) for side in (lhs, rhs)]
                known = [expr_of(end) for end in ends if end is not None]
                return affine_of(Binary(atom.op, *known)) if len(known) == 2 else None
            case Cast(dtype="int64", value=Load() as load) | (Load() as load):
                return self._end_of_load(load, loop, up=up)
        return None

    def _end_of_loop(self, loop: For, *, up: bool) -> Affine | None:
        extent = loop.extent
        while isinstance(extent, IfThenElse) and build.integer_value(extent.if_false) == 0:
            extent = extent.if_true
        if self._is_changing(loop.start, extent):
            return None
        start = affine_of(loop.start)
        return combine(combine(start, affine_of(extent), 1), Affine({}, -1), 1) if up else start

    def _end_of_product(self, atom: Binary, loop: For, *, up: bool) -> Affine | None:
        """One factor depends on the loop, the others are not negative."""
        factors = factors_of(atom)
        moving = [factor for factor in factors if loop.var in free_vars(factor)]
        others = [factor for factor in factors if loop.var not in free_vars(factor)]
        if len(moving) != 1 or not all(map(self._prover.proves_nonnegative, others)):
            return None
        result = self._end_of_atom(moving[0], loop, up=up)
        for factor in others:
            result = result and product(result, affine_of(factor))
        return result

    def _end_of_division(
        self, atom: Binary, loop: For, divisor: int | None, *, up: bool
    ) -> Affine | None:
        """A quotient grows with what is divided; a remainder is less than the divisor."""
        if divisor is None or divisor <= 0:
            return None
        if atom.op == "floormod":
            return Affine({}, divisor - 1 if up else 0)
        inner = self._end(affine_of(atom.lhs), loop, up=up)
        return inner and affine_of(build.floordiv(expr_of(inner), atom.rhs))

    def _end_of_load(self, load: Load, loop: For, *, up: bool) -> Affine | None:
        """A load from values that never decrease grows with its index; any other has the range that
        facts give its buffer."""
        *outer, last = load.indices
        is_fixed = all(loop.var not in free_vars(at) for at in outer) and load.predicate is None
        inner = self._end(affine_of(last), loop, up=up)
        length = self._lengths.get(load.buffer) if load.buffer in self._monotone else None
        if length is not None and is_fixed and inner is not None:
            place = expr_of(self.within(inner, inner, length)[up])
            return affine_of(build.widen(Load(load.buffer, (*outer, place), load.dtype)))
        found = self._ranges.get(load.buffer)
        if found is None:
            return None
        return combine(affine_of(found.high), Affine({}, -1), 1) if up else affine_of(found.low)


def _around(function: Function, body: tuple[Stmt, ...]) -> list[Any]:
    """The loops, blocks and lets around a body that bind what it mentions, outermost first."""
    nodes: list[Any] = [node for stmt in function.body for node in walk(stmt)]
    inside = {name for stmt in body for node in walk(stmt) for name in _bound_by(node)}
    needed = {name for stmt in body for name in free_vars(stmt)}
    found: list[Any] = []
    for node in reversed(nodes):
        if (needed - inside) & _bound_by(node):
            found.append(node)
            needed |= free_vars(node) if isinstance(node, Let) else _in_ranges(node)
    return found[::-1]


def _bound_by(node: Any) -> set[str]:
    match node:
        case For():
            return {node.var}
        case Let():
            return {node.var.name}
        case Block():
            return {found.var for found in node.iters}
    return set()


def _in_ranges(node: Any) -> set[str]:
    """The variables that the ranges of a loop or of block variables depend on."""
    if isinstance(node, For):
        return set(free_vars(node.start) | free_vars(node.extent))
    return {name for found in node.iters for name in free_vars(found.domain)}
