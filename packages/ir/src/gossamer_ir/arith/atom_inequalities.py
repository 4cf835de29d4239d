"""The inequalities about one atom: constraints, facts of index arrays, and bounds derived from operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gossamer_ir.arith.affine import Affine, affine_of, factors_of, multiply
from gossamer_ir.arith.constraints import Constraints
from gossamer_ir.arith.index_array_facts import IndexArrayFacts
from gossamer_ir.arith.nonaffine_bounds import (
    bounds_of_binary,
    bounds_of_call,
    bounds_of_storage,
    remainder_equations,
    strip_widening,
)
from gossamer_ir.core.build import ONE
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Binary, Call, Expr, Load, Search, VScale


class AtomInequalities:
    """Derives inequalities about atoms; `holds(expr)` proves side conditions expr >= 0."""

    def __init__(
        self, constraints: Constraints, arrays: IndexArrayFacts, holds: Callable[[Expr], bool]
    ) -> None:
        self._constraints = constraints
        self._arrays = arrays
        self._holds = holds

    def about(self, atom: Expr, goal: Affine) -> Iterator[Affine]:
        """Yield forms with an atom that are not negative: constraints, then those from its operands."""
        # Constraints before derived bounds: conditions of the program are usually what a proof needs.
        yield from self._constraints.about(atom)
        inner = strip_widening(atom)
        # Facts are about elements; a masked load may yield its passthrough value instead.
        if isinstance(inner, Load) and inner.predicate is None:
            yield from self._arrays.about_load(atom, inner, goal)
        elif isinstance(inner, VScale):
            yield Affine({atom: 1}, -1)
        elif isinstance(inner, Search) and self._arrays.is_hit(inner):
            yield affine_of(Binary("sub", atom, inner.begin))
        elif isinstance(inner, Binary) and inner is atom and inner.op == "mul":
            yield from self._about_product(inner, goal)
        elif isinstance(inner, Binary):
            yield from bounds_of_binary(atom, inner)
            if inner.op == "floormod" and not has_constant_form(inner.rhs):
                yield from self._about_remainder(atom, inner)
        elif isinstance(inner, Call):
            yield from bounds_of_call(atom, inner)
        # Only of widened atoms: bounds of int64 itself would let the prover assume that nothing wraps.
        if inner is not atom:
            yield from bounds_of_storage(atom, dtype_of(inner))

    def _about_remainder(self, atom: Expr, inner: Binary) -> Iterator[Affine]:
        last = Binary("sub", inner.rhs, ONE)
        # A divisor of 0 gives the remainder 0, and a negative one a remainder that is not positive.
        if self._holds(last):
            yield Affine({atom: 1}, 0)
            yield affine_of(Binary("sub", last, atom))
            yield from remainder_equations(atom, inner)

    def _about_product(self, atom: Binary, goal: Affine) -> Iterator[Affine]:
        """Yield the inequalities of one factor, times the other factors if these are not negative."""
        factors = factors_of(atom)
        for factor in factors:
            yield from self._about_multiple(atom, factor)
        # Once for all factors: a proof of a sign may be expensive.
        signs = [self._holds(factor) for factor in factors]
        if all(signs):
            yield Affine({atom: 1}, 0)
        for number, factor in enumerate(factors):
            # An inequality may be multiplied by factors that are not negative only.
            if not all(signs[:number] + signs[number + 1 :]):
                continue
            for premise in self.about(factor, goal):
                multiple: Affine | None = premise
                for other in (*factors[:number], *factors[number + 1 :]):
                    multiple = multiple and multiply(multiple, affine_of(other))
                if multiple is not None:
                    yield multiple

    def _about_multiple(self, atom: Expr, quotient: Expr) -> Iterator[Affine]:
        """Yield 0 <= x - q * d < d for a quotient q = x // d, if q * d is a multiple of the atom."""
        if not isinstance(quotient, Binary) or quotient.op != "floordiv":
            return
        remainder = affine_of(Binary("sub", quotient.lhs, Binary("mul", quotient, quotient.rhs)))
        last = Binary("sub", quotient.rhs, ONE)
        if atom in remainder.terms and self._holds(last):
            yield remainder
            yield affine_of(last) - remainder


def has_constant_form(expr: Expr) -> bool:
    """Return whether the affine form of an expression is a constant."""
    return affine_of(expr).is_constant
