"""The rows of a result that the parts of a tensor visit: those that parts initialize, and relations that
declare that parts have none in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

import msgspec

from gossamer_ir.core.axis_kinds import indices_of
from gossamer_ir.nodes import Relation, Var
from gossamer_ir.transform.decomposition.instantiated_format import InstantiatedFormat


class RowsOfParts(msgspec.Struct, frozen=True):
    """The parts, by name, that initialize the elements that they visit, since none before them visits these.
    If they visit all that the undivided iteration initializes (`are_all`), nothing else does. The program
    declares that the parts of each pair in `disjoint` have no rows in common."""

    initializing: Collection[str] = ()
    are_all: bool = False
    disjoint: Collection[tuple[str, str]] = ()


RowsOf: TypeAlias = Callable[[int], RowsOfParts]
"""Returns the rows of parts along a dimension of the tensor."""


def none_initialize(dimension: int) -> RowsOfParts:
    """Return that nothing is known, so that all parts add.

    >>> none_initialize(0)
    RowsOfParts(initializing=(), are_all=False, disjoint=())
    """
    return RowsOfParts()


def disjoint_relations(
    formats: Sequence[InstantiatedFormat], pairs: Collection[tuple[str, str]], dimension: int
) -> Iterator[Relation]:
    """Yield the relations of the axes along which the parts of each of these pairs store a dimension.

    Parts whose coordinates in the dimension are not those of a sorted axis are left out: kernels cannot check
    such a relation.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.script import parse_format
    >>> from gossamer_ir.traversal.names import Namer
    >>> from gossamer_ir.transform.decomposition.instantiated_format import NamedFormat, instantiate_format
    >>> description = parse_format('''
    ... @T.format
    ... def vector(data: T.handle, rows: T.handle, m: T.int64, stored: T.int64) -> None:
    ...     O = T.sp.dense_fixed(1)
    ...     I = T.sp.compressed_fixed(O, (m, stored), rows, "int32", padded=False)
    ...     A = T.sp.match_buffer(data, (O, I), "float32")
    ...     T.sp.map(lambda o, i: (i,), shape=(m,))
    ... ''')
    >>> namer = Namer(())
    >>> p, q = (
    ...     instantiate_format(
    ...         NamedFormat(name, description),
    ...         shape=(index_var("m"),), stored=(description.buffer,), namer=namer,
    ...     )
    ...     for name in "pq"
    ... )
    >>> [(found.kind, found.left, found.right) for found in disjoint_relations([p, q], [("p", "q")], 0)]
    [('disjoint', 'I_p', 'I_q')]
    """
    axes = {format.name: _axis_along(format, dimension) for format in formats}
    for first, second in pairs:
        left, right = axes[first], axes[second]
        if left is not None and right is not None:
            yield Relation("disjoint", left, right)


def _axis_along(format: InstantiatedFormat, dimension: int) -> str | None:
    """Return the sorted axis whose coordinates are those of a dimension."""
    coordinate = format.coordinates[dimension]
    along = dict(zip(format.vars, format.buffers[0].axes, strict=True))
    if not isinstance(coordinate, Var) or coordinate.name not in along:
        return None
    (axis,) = (candidate for candidate in format.axes if candidate.name == along[coordinate.name])
    indices = indices_of(axis)
    return axis.name if indices is not None and indices.sorted else None
