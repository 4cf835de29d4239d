"""The conditions under which loops of a nest run, and under which copies of its elements run, too."""

from __future__ import annotations

from collections.abc import Container, Sequence

from gossamer_ir.core.build import index_var
from gossamer_ir.nodes import BlockIter, Expr
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_schedule.errors import schedule_error, text_of
from gossamer_schedule.nests.block_nest import BlockNest
from gossamer_schedule.predicates.block_predicates import conditions_of_extent, is_bound_of


def existence_conditions(
    nest: BlockNest, iters: Sequence[BlockIter], *, tiles: Container[str] = ()
) -> dict[str, tuple[Expr, ...]]:
    """Return the conditions for each iterator whose loop has no iteration without them, in the order of
    evaluation: `n if condition else 0` is the extent of the loop, and `n` that of the domain, whose loads
    need not exist otherwise. Only a part of the domain of those in `tiles` is visited, the range of
    loops that have their conditions.

    Raises `.not_proved` if a condition depends on more than the iterators before it and the variables around
    the nest.
    """
    conditional = {loop.var: conditions_of_extent(loop.extent) for loop in nest.loops}
    if not any(conditional.values()):
        return {}
    by_iterator: dict[str, tuple[Expr, ...]] = {}
    before: list[BlockIter] = []
    for iterator in iters:
        fed = (part for name in free_vars(iterator.value) for part in conditional.get(name, ()))
        parts = [_in_iters(part, before) for part in fed]
        whole = [earlier for earlier in before if earlier.var not in tiles]
        kept = tuple(
            part for part in parts if not any(is_bound_of(part, earlier) for earlier in whole)
        )
        if kept and iterator.var not in tiles:
            _require_known(nest, kept, before)
            by_iterator[iterator.var] = kept
        before.append(iterator)
    return by_iterator


def _in_iters(condition: Expr, iters: Sequence[BlockIter]) -> Expr:
    """Return a condition on loops in terms of the iterators that have their values."""
    vars_by_value = {iterator.value: index_var(iterator.var) for iterator in iters}
    result: Expr = rewrite(condition, lambda node: vars_by_value.get(node))
    return result


def _require_known(
    nest: BlockNest, conditions: tuple[Expr, ...], before: Sequence[BlockIter]
) -> None:
    if free_vars(*conditions) <= nest.known_above | {iterator.var for iterator in before}:
        return
    raise schedule_error(
        f"{nest.block.primitive}.not_proved",
        f"Block '{nest.name}' visits elements under a condition that does not follow from its iterators.",
        needs=" and ".join(map(text_of, conditions)),
        hint=f"Apply {nest.block.primitive} before the loops are split.",
    )
