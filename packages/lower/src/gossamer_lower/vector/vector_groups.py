"""Reductions over lanes in groups of vectors: an unrolled loop of vectors inside a serial loop.

Whole groups run without masks. The vectors that are left over are masked, and run in a loop, since up to a
group of them would cost as much as a whole one if it were unrolled, too.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import bound_of_position
from gossamer_ir.analysis.proofs.program_point import ProgramPoint, is_speculatable_before
from gossamer_ir.arith.affine import ONE_FORM, affine_of
from gossamer_ir.core.build import ONE, ZERO, add, floordiv, index_var, integer_value, mul, sub
from gossamer_ir.core.conditions import conjunction, conjuncts
from gossamer_ir.nodes import Binary, Compare, Expr, For, Stmt
from gossamer_ir.traversal.names import Namer
from gossamer_ir.traversal.substitute import substitute_body


class VectorGroups(msgspec.Struct, frozen=True):
    """A serial loop over groups of vectors, the unrolled loop over the vectors of a group, and the loop over
    lanes; the part of the condition that bounds the position of a lane, the bound, and the other parts."""

    outer: For
    vectors: For
    lanes: For
    condition: Expr
    bound: Expr
    others: Expr | None

    @property
    def group(self) -> Expr:
        """The number of elements of a group."""
        return mul(self.vectors.extent, self.lanes.extent)


def loops_of_groups(outer: For) -> tuple[For, For] | None:
    """Return the unrolled loop over vectors in a serial loop, and the one over lanes; None if there are none.

    >>> from gossamer_ir.core.build import index
    >>> lanes = For("l", ZERO, index(8), (), "vectorized")
    >>> vectors = For("v", ZERO, index(4), (lanes,), "unrolled")
    >>> loops_of_groups(For("i", ZERO, index_var("n"), (vectors,))) == (vectors, lanes)
    True
    >>> loops_of_groups(For("i", ZERO, index_var("n"), (lanes,)))
    """
    match outer:
        case For(
            kind="serial",
            body=(For(kind="unrolled", body=(For(kind="vectorized") as lanes,)) as vectors,),
        ):
            is_first = all(loop.start == ZERO for loop in (outer, vectors, lanes))
            return (vectors, lanes) if is_first and integer_value(vectors.extent) else None
    return None


def vector_groups(
    outer: For, loops: tuple[For, For], condition: Expr | None, *, point: ProgramPoint
) -> VectorGroups | None:
    """Return the groups of a reduction whose condition bounds positions, if its loops run up to the bound."""
    vectors, lanes = loops
    group, vector = affine_of(mul(vectors.extent, lanes.extent)), affine_of(lanes.extent)
    coefficients = {outer.var: group, vectors.var: vector, lanes.var: ONE_FORM}
    parts = list(conjuncts(condition))
    for part in parts:
        bound = bound_of_position(part, coefficients)
        if bound is None or not is_speculatable_before(bound, outer, point.function):
            continue
        others = conjunction(*[other for other in parts if other is not part])
        groups = VectorGroups(outer, vectors, lanes, part, bound, others)
        with point.inside(outer), point.inside(vectors), point.inside(lanes):
            # The bound is solved from the condition, which is equivalent if neither wraps.
            if _reaches_bound(groups) and point.is_exact(part, bound):
                return groups
    return None


def grouped_loops(
    groups: VectorGroups,
    *,
    whole: tuple[Stmt, ...],
    masked: tuple[Stmt, ...],
    prefetches: tuple[Stmt, ...],
    namer: Namer,
    is_nonnegative: bool,
) -> tuple[Stmt, ...]:
    """Return the loop over whole groups, with prefetches after each, and that over the vectors that are left
    over."""
    outer, vectors, lanes = groups.outer, groups.vectors, groups.lanes
    count = floordiv(groups.bound, groups.group)
    # A negative bound would make the number of groups negative, and the rest would start before 0.
    if not is_nonnegative:
        count = Binary("max", count, ZERO)
    rest = sub(groups.bound, mul(count, groups.group))
    extent = floordiv(add(rest, sub(lanes.extent, ONE)), lanes.extent)
    var = namer.fresh(f"{vectors.var}_rest")
    values = {outer.var: count, vectors.var: index_var(var)}
    return (
        replace(outer, extent=count, body=(replace(vectors, body=whole), *prefetches)),
        For(var, ZERO, extent, substitute_body(masked, values)),
    )


def rest_condition(groups: VectorGroups) -> Expr | None:
    """Return the condition of a lane of the rest: its position among the elements after the whole groups."""
    outer = index_var(groups.outer.var)
    position = add(
        mul(index_var(groups.vectors.var), groups.lanes.extent), index_var(groups.lanes.var)
    )
    rest = sub(groups.bound, mul(outer, groups.group))
    return conjunction(Compare("lt", position, rest), groups.others)


def _reaches_bound(groups: VectorGroups) -> bool:
    """Return whether the loop has as many groups as hold the elements below the bound."""
    extent, group = groups.outer.extent, affine_of(groups.group)
    if not isinstance(extent, Binary) or extent.op != "floordiv":
        return False
    rounded_up = affine_of(groups.bound) + group - ONE_FORM
    return affine_of(extent.rhs) == group and affine_of(extent.lhs) == rounded_up
