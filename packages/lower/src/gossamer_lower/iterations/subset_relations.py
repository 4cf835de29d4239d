"""Declared relations between axes that can be told from their index arrays, and checked: what is not
checked is not relied on."""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.nodes import Axis, DenseFixed, Function, Relation
from gossamer_lower.iterations.index_buffers import Compressed


def relations_of_fibres(function: Function) -> Iterator[Relation]:
    """The relations of sorted compressed axes whose fibres of one number are those of the same
    coordinates; that one axis covers another says that the other is a subset of it.

    >>> from gossamer_lower.examples import ROW_SUMS
    >>> list(relations_of_fibres(ROW_SUMS.functions[0]))
    []
    """
    axes = {axis.name: axis for axis in function.axes}
    for found in function.relations:
        left, right = axes.get(found.left), axes.get(found.right)
        if not (isinstance(left, Compressed) and isinstance(right, Compressed)):
            continue
        if left.sorted and right.sorted and _is_numbered_alike(left, right, axes):
            is_turned = found.kind == "covers"
            yield Relation("subset", right.name, left.name) if is_turned else found


def _is_numbered_alike(left: Axis, right: Axis, axes: dict[str, Axis]) -> bool:
    """Whether the parents' elements that have the same coordinates have the same number."""
    if left.parent is None or right.parent is None or left.parent == right.parent:
        return left.parent == right.parent
    one, two = axes[left.parent], axes[right.parent]
    if not (isinstance(one, DenseFixed) and isinstance(two, DenseFixed)):
        return False
    is_as_long = one.parent is None or one.length == two.length
    return is_as_long and _is_numbered_alike(one, two, axes)
