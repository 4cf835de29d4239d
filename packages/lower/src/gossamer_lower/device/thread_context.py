"""Where a statement of a kernel is: in which loops over threads, and whether threads get there together."""

from __future__ import annotations

from collections.abc import Mapping, Set

import msgspec

from gossamer_ir.analysis.statements.thread_axes import is_thread_axis
from gossamer_ir.nodes import Expr, Load
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.walk import collect


class ThreadContext(msgspec.Struct, frozen=True):
    """The variables of the enclosing loops over threads and blocks, by their axes, and whether all threads of
    a block get to the statement together."""

    bound: Mapping[str, str] = {}
    is_uniform: bool = True

    @property
    def threads(self) -> dict[str, str]:
        """The variables of the loops over threads of a block, by their axes."""
        return {axis: var for axis, var in self.bound.items() if is_thread_axis(axis)}


def are_uniform(context: ThreadContext, *exprs: Expr, lets: Set[str]) -> bool:
    """Return whether expressions have one value in all threads of a block; `lets` are the variables of lets.

    >>> from gossamer_ir.core.build import index_var
    >>> inside = ThreadContext({"threadIdx.x": "t"})
    >>> [are_uniform(inside, index_var(name), lets=set()) for name in "tn"]
    [False, True]
    """
    threads = set(context.threads.values())
    # A variable of a let may be computed from the number of a thread.
    return not threads or not (collect(Load, *exprs) or free_vars(*exprs) & (threads | lets))
