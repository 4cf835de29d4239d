"""The declared relations between axes that a run-time check of their index arrays can verify.

Only these are used: the compiler does not rely on a declaration that cannot be checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from gossamer_ir.nodes import Axis, DenseFixed, Function, Relation
from gossamer_lower.axes.index_buffers import Compressed


def relations_of_fibers(function: Function) -> Iterator[Relation]:
    """Yield the relations between sorted compressed axes whose fibers with the same number belong to the
    same coordinates. `covers` is turned into the equivalent `subset` of the other axis.

    >>> from gossamer_testkit.examples import ROW_SUMS
    >>> list(relations_of_fibers(ROW_SUMS.functions[0]))
    []
    """
    axes = {axis.name: axis for axis in function.axes}
    for relation in function.relations:
        left, right = axes.get(relation.left), axes.get(relation.right)
        if not (isinstance(left, Compressed) and isinstance(right, Compressed)):
            continue
        if left.sorted and right.sorted and _is_numbered_alike(left, right, axes):
            is_turned = relation.kind == "covers"
            yield Relation("subset", right.name, left.name) if is_turned else relation


def _is_numbered_alike(left: Axis, right: Axis, axes: dict[str, Axis]) -> bool:
    """Return whether elements of the parents with the same coordinates have the same number."""
    if left.parent is None or right.parent is None or left.parent == right.parent:
        return left.parent == right.parent
    one, two = axes[left.parent], axes[right.parent]
    if not (isinstance(one, DenseFixed) and isinstance(two, DenseFixed)):
        return False
    is_as_long = one.parent is None or one.length == two.length
    return is_as_long and _is_numbered_alike(one, two, axes)
