"""The declared relations between axes that a run-time check of their index arrays can verify.

Only these are used: the compiler does not rely on a declaration that cannot be checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.core.axis_kinds import indices_of, is_full
from gossamer_ir.nodes import Axis, Function, Relation
from gossamer_support.items_by_name import items_by_name


def relations_of_fibers(function: Function) -> Iterator[Relation]:
    """Yield the relations between sorted compressed axes whose fibers with the same number belong to the
    same coordinates. `covers` is turned into the equivalent `subset` of the other axis.

    >>> from gossamer_testkit.examples import ROW_SUMS
    >>> list(relations_of_fibers(ROW_SUMS.functions[0]))
    []
    """
    axes = items_by_name(function.axes)
    for relation in function.relations:
        left, right = axes.get(relation.left), axes.get(relation.right)
        if left is None or right is None or not (_is_sorted(left) and _is_sorted(right)):
            continue
        if _is_numbered_alike(left, right, axes):
            is_turned = relation.kind == "covers"
            yield Relation("subset", right.name, left.name) if is_turned else relation


def _is_sorted(axis: Axis) -> bool:
    indices = indices_of(axis)
    # The check of a relation compares lists of coordinates.
    return indices is not None and indices.sorted and not indices.is_mask


def _is_numbered_alike(left: Axis, right: Axis, by_name: dict[str, Axis]) -> bool:
    """Return whether elements of the parents with the same coordinates have the same number."""
    if left.parent is None or right.parent is None or left.parent == right.parent:
        return left.parent == right.parent
    one, two = by_name[left.parent], by_name[right.parent]
    if not (is_full(one) and is_full(two)):
        return False
    is_as_long = one.parent is None or one.length == two.length
    return is_as_long and _is_numbered_alike(one, two, by_name)
