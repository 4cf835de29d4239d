"""The context of a statement of a kernel: loops over threads, and whether threads get there together."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer_ir.analysis.invariants import is_constant
from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.nodes import Expr, Function
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import exchanged_vars
from gossamer_ir.traversal.substitute import resolve
from gossamer_lower.device.let_dependences import values_of_vars


class ThreadContext(msgspec.Struct, frozen=True):
    """The variables of the enclosing loops over threads and blocks, by their axes, and whether all threads of
    a block get to the statement together."""

    bound: Mapping[str, str] = {}
    is_uniform: bool = True

    @property
    def threads(self) -> dict[str, str]:
        """The variables of the loops over threads of a block, by their axes."""
        return {axis: var for axis, var in self.bound.items() if is_thread_axis(axis)}


class UniformValues:
    """Decides which expressions have one value in all threads of a block of a kernel.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.nodes import Let
    >>> inside = ThreadContext({"threadIdx.x": "t"})
    >>> values = UniformValues(Function("f", (), (Let(index_var("u"), index_var("t")),)))
    >>> [values.are_uniform(inside, index_var(name)) for name in "tun"]
    [False, False, True]
    """

    def __init__(self, kernel: Function) -> None:
        self._kernel, self._values = kernel, values_of_vars(kernel)
        self._exchanged = exchanged_vars(kernel.body)

    def are_uniform(self, context: ThreadContext, *exprs: Expr) -> bool:
        """Return whether expressions have one value in the threads that get to a context."""
        threads = set(context.threads.values())
        if not threads:
            return True
        values = [resolve(expr, self._values) for expr in exprs]
        # Threads read an array that changes at different times, and have private ones of their own.
        is_read_only = is_constant(*values, function=self._kernel)
        return is_read_only and free_vars(*values).isdisjoint(threads | self._exchanged)
