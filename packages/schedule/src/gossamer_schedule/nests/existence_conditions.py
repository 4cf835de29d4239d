"""The conditions under which loops of a nest run, and under which copies of its elements run, too."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.core.build import index_var
from gossamer_ir.core.conditions import conjunction
from gossamer_ir.nodes import BlockIter, Expr, Var
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.substitute import substitute
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.nests.block_nest import BlockNest
from gossamer_schedule.predicates.block_predicates import conditions_of_extent


def existence_conditions(nest: BlockNest, iters: Sequence[BlockIter]) -> dict[str, Expr]:
    """Return the condition for each iterator whose loop has no iteration without it: `n if condition else 0`
    is the extent of the loop, and `n` that of the domain, whose loads need not exist otherwise.

    Raises `.not_proved` if a condition depends on more than the iterators before it and the variables around
    the nest.
    """
    conditional = {
        loop.var: condition
        for loop in nest.loops
        if (condition := conjunction(*conditions_of_extent(loop.extent))) is not None
    }
    if not conditional:
        return {}
    of_loops = {
        iterator.value.name: index_var(iterator.var)
        for iterator in nest.block.node.iters
        if isinstance(iterator.value, Var)
    }
    found: dict[str, Expr] = {}
    known = nest.known_above
    for iterator in iters:
        fed = [conditional[name] for name in free_vars(iterator.value) if name in conditional]
        condition = conjunction(*(substitute(part, of_loops) for part in fed))
        if condition is not None:
            _require_known(nest, condition, known)
            found[iterator.var] = condition
        known = {*known, iterator.var}
    return found


def _require_known(nest: BlockNest, condition: Expr, known: set[str]) -> None:
    if free_vars(condition) <= known:
        return
    raise schedule_error(
        f"{nest.block.primitive}.not_proved",
        f"Block '{nest.name}' visits elements under a condition that does not follow from its iterators.",
        needs=text_of(condition),
        hint=f"Apply {nest.block.primitive} before the loops are split.",
    )
