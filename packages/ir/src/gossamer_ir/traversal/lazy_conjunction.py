"""The conjunction of two conditions, of which the second may only be evaluated under the first."""

from __future__ import annotations

from gossamer_ir.core.conditions import conjunction, short_circuit_and
from gossamer_ir.nodes import Expr
from gossamer_ir.traversal.access_types import READS
from gossamer_ir.traversal.walk import contains


def conjunction_with_lazy_reads(first: Expr | None, second: Expr) -> Expr:
    """Return the conjunction of two conditions; None stands for true. A second one that reads memory is
    evaluated only if the first holds, since the memory may not exist otherwise.

    >>> from gossamer_ir.core.build import ZERO, index_var
    >>> from gossamer_ir.core.conditions import in_range
    >>> from gossamer_ir.nodes import Load
    >>> inside, _ = in_range(index_var("i"), index_var("n"))
    >>> nonempty, _ = in_range(Load("X", (index_var("i"),), "int64"), ZERO)
    >>> type(conjunction_with_lazy_reads(inside, nonempty)).__name__
    'IfThenElse'
    >>> type(conjunction_with_lazy_reads(nonempty, inside)).__name__
    'Binary'
    """
    if contains(READS, second):
        return short_circuit_and(first, second)
    return conjunction(first, second) or second
