"""The order of a description's axes, and the declared order of the coordinates that they store."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from msgspec.structs import replace

from gossamer_formats.description_sizes import MAX_FORMATS
from gossamer_ir.core.axis_kinds import is_varied, with_declared_order
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Axis, FormatDescription
from gossamer_support.items_by_name import items_by_name


@lru_cache(maxsize=MAX_FORMATS)
def require_nested_axes(description: FormatDescription) -> None:
    """Require that the slots of every varied axis of the buffer are numbered within its ancestors only.

    Raises `UnsupportedError` (`format.nesting`) if another axis stands before it: then the values need
    prefix sums of products.
    """
    axes = items_by_name(description.axes)
    before: list[str] = []
    for name in description.buffer.axes:
        if is_varied(axes[name]) and set(before) != set(ancestors(axes, name)):
            raise UnsupportedError(
                "format.nesting",
                f"The axis '{name}' of the format '{description.name}' varies in length, but the axes before "
                "it are not its ancestors.",
            )
        before.append(name)


def ancestors(by_name: Mapping[str, Axis], name: str) -> list[str]:
    """Return the names of the ancestors of an axis, the parent first."""
    parent = by_name[name].parent
    return [] if parent is None else [parent, *ancestors(by_name, parent)]


def axes_between(by_name: Mapping[str, Axis], above: Axis, below: Axis) -> list[str]:
    """Return the names of the axes between an axis and one below it, from the outermost.

    >>> from gossamer_formats.descriptions.csf import csf
    >>> from gossamer_support.items_by_name import items_by_name
    >>> axes = items_by_name(csf(ndim=4).axes)
    >>> names = list(axes)
    >>> axes_between(axes, axes[names[0]], axes[names[-1]]) == names[1:-1]
    True
    """
    names = ancestors(by_name, below.name)
    return names[: names.index(above.name)][::-1]


def with_order(
    description: FormatDescription,
    *,
    sorted: bool | None = None,
    unique: bool | None = None,
    axis_names: Collection[str] | None = None,
) -> FormatDescription:
    """Return the description with other declarations of the order of coordinates.

    They are those of the axes of these names (None: of all) that store coordinates: whether these never
    decrease in a fiber, and whether they are unique in it. None leaves a declaration as it is.

    >>> from gossamer_formats.descriptions.csc import csc
    >>> axis = with_order(csc(), sorted=False).axes[1]
    >>> axis.sorted, axis.unique
    (False, True)
    """
    changed = tuple(
        with_declared_order(axis, sorted=sorted, unique=unique)
        if axis_names is None or axis.name in axis_names
        else axis
        for axis in description.axes
    )
    return replace(description, axes=changed)
