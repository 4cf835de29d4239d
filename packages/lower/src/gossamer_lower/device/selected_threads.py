"""Whether the conditions and the indices of a store determine the thread that executes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.build import index_var
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Compare, Expr, For, Function
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_lower.device.let_dependences import values_of_vars


class StoreContext(msgspec.Struct, frozen=True):
    """The loops around a store, from an outermost loop over threads or blocks on, and the conditions under
    which it runs."""

    loops: tuple[For, ...] = ()
    conditions: tuple[Expr, ...] = ()


class ThreadSelection:
    """Proves of a kernel that two threads which store to one element are the same thread.

    >>> from gossamer_ir.core.build import ZERO, index
    >>> loop = For("t", ZERO, index(8), (), kind="thread_binding", thread="threadIdx.x")
    >>> kernel = Function("f", (), (loop,))
    >>> for op in ("ge", "gt", "ne"):
    ...     context = StoreContext((loop,), (Compare(op, index_var("t"), index(6)),))
    ...     print(ThreadSelection(kernel).is_of_one_thread("t", context, ()))
    False
    True
    False
    """

    def __init__(self, kernel: Function) -> None:
        self._kernel = kernel
        self._values = values_of_vars(kernel)

    def is_of_one_thread(
        self, var_name: str, context: StoreContext, indices: Sequence[Expr]
    ) -> bool:
        """Return whether a variable of a loop over threads has one value in all threads that store to an
        element: those for which the conditions hold, and the indices have given values."""
        # The other thread may be in another iteration of each loop in the loop over threads.
        other = {name: index_var(f"other {name}") for name in bound_vars(context.loops[:1])}
        prover = Prover()
        for condition in self._constant_exprs(context.conditions):
            prover.assume(condition)
            prover.assume(substitute(condition, other))
        for loop in context.loops:
            for start, extent in self._fixed_ranges(loop):
                prover.assume_range(loop.var, start, extent)
                renamed = (substitute(start, other), substitute(extent, other))
                prover.assume_range(other[loop.var].name, *renamed)
        for index in self._constant_exprs(indices):
            prover.assume(Compare("eq", index, substitute(index, other)))
        return prover.proves(Compare("eq", index_var(var_name), other[var_name]))

    def _constant_exprs(self, exprs: Sequence[Expr]) -> Iterator[Expr]:
        """Yield the expressions whose value depends on variables only, in terms of those of loops."""
        overflow = overflow_of(self._kernel)
        for expr in exprs:
            value: Expr = resolve(expr, self._values)
            # A proof is about integers that do not wrap, in arrays that do not change.
            is_of_integers = dtype_of(value) in ("bool", "int64")
            if (
                is_of_integers
                and is_constant(value, function=self._kernel)
                and overflow.is_exact(value)
            ):
                yield value

    def _fixed_ranges(self, loop: For) -> Iterator[tuple[Expr, Expr]]:
        bounds = (*self._constant_exprs((loop.start, loop.extent)),)
        if len(bounds) == 2:
            yield bounds[0], bounds[1]
