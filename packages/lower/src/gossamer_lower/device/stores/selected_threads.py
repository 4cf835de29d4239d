"""The test that the conditions and the indices of accesses determine the thread that makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gossamer_ir.analysis.bounds.overflow import overflow_of
from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.arith.prover import Prover
from gossamer_ir.core.build import index_var
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Compare, Expr, For, Function
from gossamer_ir.traversal.names import bound_vars
from gossamer_ir.traversal.substitute import resolve, substitute
from gossamer_lower.device.stores.access_sites import AccessSite


class ThreadSelection:
    """Proves of a kernel that two threads which access one element are the same thread. `values` are those
    of variables.

    >>> from gossamer_ir.core.build import ONE, ZERO, index
    >>> from gossamer_ir.nodes import Store
    >>> loop = For("t", ZERO, index(8), (), kind="thread_binding", thread="threadIdx.x")
    >>> selection = ThreadSelection(Function("f", (), (loop,)), {})
    >>> for op in ("ge", "gt", "ne"):
    ...     condition = Compare(op, index_var("t"), index(6))
    ...     site = AccessSite(Store("Y", (ZERO,), ONE), (loop,), (condition,))
    ...     print(selection.is_of_one_thread("t", site, site))
    False
    True
    False
    """

    def __init__(self, kernel: Function, values: Mapping[str, Expr]) -> None:
        self._kernel, self._values = kernel, values

    def is_of_one_thread(self, var_name: str, one: AccessSite, other: AccessSite) -> bool:
        """Return whether a variable of a loop over threads has one value in all threads that make one of two
        accesses of an element: those for which the conditions hold, and the indices have given values."""
        # The other thread may be in another iteration of each loop in the loop over threads.
        kernel = (*one.loops[:1], *other.loops[:1])
        bound = bound_vars(kernel) | {loop.var for loop in other.loops}
        names = {name: index_var(f"other {name}") for name in bound}
        prover = Prover()
        for condition in self._constant_exprs(one.conditions):
            prover.assume(condition)
        for condition in self._constant_exprs(other.conditions):
            prover.assume(substitute(condition, names))
        for loop in one.loops:
            for start, extent in self._fixed_ranges(loop):
                prover.assume_range(loop.var, start, extent)
        for loop in other.loops:
            for start, extent in self._fixed_ranges(loop):
                renamed = (substitute(start, names), substitute(extent, names))
                prover.assume_range(names[loop.var].name, *renamed)
        for left, right in zip(one.indices, other.indices, strict=True):
            # Only if both have a value that depends on variables only.
            pair = (*self._constant_exprs((left, right)),)
            if len(pair) == 2:
                prover.assume(Compare("eq", pair[0], substitute(pair[1], names)))
        return prover.proves(Compare("eq", index_var(var_name), names[var_name]))

    def _constant_exprs(self, exprs: Iterable[Expr]) -> Iterator[Expr]:
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
