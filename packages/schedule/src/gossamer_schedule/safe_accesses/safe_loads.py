"""Proofs that loads are in bounds for all values of iterators or loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.buffer_accesses import accesses
from gossamer_ir.analysis.proofs.bounded_reads import BoundedReads
from gossamer_ir.core.conditions import in_range
from gossamer_ir.nodes import BlockIter, Expr, For, Function, Node, Range
from gossamer_schedule.cursor.program_points import point_in_function


def are_loads_safe(
    function: Function,
    reads: Iterable[Node],
    *,
    iters: Sequence[BlockIter],
    conditions: Iterable[Expr],
) -> bool:
    """Return whether all loads of `reads` are proved in bounds at each point of the iterators' domains at
    which the conditions hold.

    Domains and conditions are evaluated first, so their loads must be in bounds without what follows them.
    """
    proof = _BoundsProof(function)
    for iterator in iters:
        if not proof.is_safe(iterator.domain):
            return False
        proof.point.assume_domain(iterator)
    for condition in conditions:
        if not proof.is_safe(condition):
            return False
        proof.point.assume(condition)
    return all(proof.is_safe(read) for read in reads)


def are_loads_safe_in_loops(function: Function, expr: Node, loops: Iterable[For]) -> bool:
    """Return whether all loads of an expression are proved in bounds inside of some loops.

    The ranges of the loops have been evaluated, so the elements that they load exist.
    """
    proof = _BoundsProof(function)
    for loop in loops:
        proof.point.assume_loop(loop)
        proof.assume_range_exists(loop)
    return proof.is_safe(expr)


class _BoundsProof:
    """The conditions assumed so far, and the loads that are in bounds under them."""

    def __init__(self, function: Function) -> None:
        self.point = point_in_function(function)
        self._reads = BoundedReads(function, self.point)
        self.is_safe = self._reads.are_in_bounds

    def assume_range_exists(self, loop: For) -> None:
        """Assume that the elements that the range of a loop loads are in bounds."""
        for access in accesses((replace(loop, body=(), weight=None),)):
            indices = tuple(at for at in access.indices if not isinstance(at, Range))
            if access.is_certain and len(indices) == len(access.indices):
                extents = self._reads.extents(access.buffer, indices)
                for at, extent in zip(indices, extents, strict=False):
                    for condition in in_range(at, extent):
                        self.point.assume(condition)
