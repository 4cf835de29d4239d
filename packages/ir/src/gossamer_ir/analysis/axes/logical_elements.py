"""The shape of a tensor according to its format description, and the slots that are elements."""

from __future__ import annotations

from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.core.build import index_var
from gossamer_ir.nodes import Expr, FormatDescription
from gossamer_support.items_by_name import items_by_name


def logical_shape(description: FormatDescription) -> tuple[Expr, ...] | None:
    """Return the sizes of the logical dimensions; None if there is a map but no declared shape.

    >>> from gossamer_ir.nodes import DenseFixed, SparseBuffer
    >>> axis = DenseFixed("I", index_var("n"))
    >>> logical_shape(FormatDescription("vector", (), (axis,), SparseBuffer("A", ("I",), "float32")))[0].name
    'n'
    """
    if description.shape is not None or description.map is not None:
        return description.shape
    lengths = {axis.name: axis.length for axis in description.axes}
    return tuple(lengths[name] for name in description.buffer.axes)


def map_vars(description: FormatDescription) -> tuple[str, ...]:
    """Return the variables along the axes of the buffer; the names of the axes if there is no map."""
    return description.buffer.axes if description.map is None else description.map.vars


def map_results(description: FormatDescription) -> tuple[Expr, ...]:
    """Return the logical coordinates in terms of `map_vars`.

    >>> from gossamer_ir.nodes import DenseFixed, SparseBuffer
    >>> axis = DenseFixed("I", index_var("n"))
    >>> map_results(FormatDescription("vector", (), (axis,), SparseBuffer("A", ("I",), "float32")))
    (Var(name='I', dtype='int64'),)
    """
    if description.map is not None:
        return description.map.results
    return tuple(index_var(name) for name in description.buffer.axes)


def stores_only_elements(description: FormatDescription) -> bool:
    """Return whether each value belongs to a stored coordinate, so that no slot fills a dense axis.

    >>> from gossamer_ir.nodes import DenseFixed, SparseBuffer
    >>> axis = DenseFixed("I", index_var("n"))
    >>> buffer = SparseBuffer("A", ("I",), "float32")
    >>> stores_only_elements(FormatDescription("vector", (), (axis,), buffer))
    False
    """
    axes = items_by_name(description.axes)
    innermost = description.buffer.axes[-1]
    above = {innermost}
    parent = axes[innermost].parent
    while parent is not None:
        above.add(parent)
        parent = axes[parent].parent
    # A dense axis beside it, such as the rows of a strip in SR-BCRS, has values for every coordinate.
    return indices_of(axes[innermost]) is not None and set(description.buffer.axes) <= above
