"""Decides whether a part visits every element of the undivided tensor's dense dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from gossamer_ir.arith.affine import ZERO_FORM, affine_of
from gossamer_ir.core.axis_kinds import is_dense_root
from gossamer_ir.core.build import ONE, mul, sub
from gossamer_ir.facts.fact_index import fact_index
from gossamer_ir.nodes import Axis, Binary, Cast, Distinct, Expr, InRange, Load, Var
from gossamer_ir.transform.decomposition.instantiated_format import InstantiatedFormat
from gossamer_support.items_by_name import items_by_name


def covers(format: InstantiatedFormat, dimensions: Iterable[int]) -> bool:
    """Return whether the axes of a format are proved to visit all coordinates of these dimensions.

    Each coordinate must run along dense axes without a parent: one as long as the dimension, or the blocks of
    a dimension and the coordinates in a block. Or it is an element of an index array over such axes that the
    format declares to be a permutation. Axes of stored coordinates are never proved to have all.

    >>> from gossamer_ir.core.build import index_var
    >>> from gossamer_ir.script import parse_format
    >>> from gossamer_ir.traversal.names import Namer
    >>> from gossamer_ir.transform.decomposition.instantiated_format import NamedFormat, instantiate_format
    >>> description = parse_format('''
    ... @T.format
    ... def ell(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    ...     I = T.sp.dense_fixed(m)
    ...     J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    ...     A = T.sp.match_buffer(data, (I, J), "float32")
    ... ''')
    >>> ell = instantiate_format(
    ...     NamedFormat("p", description),
    ...     shape=(index_var("m"), index_var("n")), stored=(description.buffer,), namer=Namer(()),
    ... )
    >>> covers(ell, [0]), covers(ell, [1])
    (True, False)
    """
    axes = items_by_name(format.axes)
    pairs = zip(format.vars, format.buffers[0].axes, strict=True)
    along = {var: axes[name] for var, name in pairs}
    seen: list[str] = []
    for dimension in dimensions:
        used = _covering(format.coordinates[dimension], format.shape[dimension], along)
        if used is None:
            used = _permuting(format, dimension, along)
        # Two dimensions along one axis, as on a diagonal, do not meet all pairs of coordinates.
        if used is None or set(used) & set(seen):
            return False
        seen += used
    return True


# Other operations: nothing is concluded from them.
def _covering(coordinate: Expr, extent: Expr, along: Mapping[str, Axis]) -> tuple[str, ...] | None:
    """Return the variables with which a coordinate has every value below the extent; None if that is not
    proved."""
    match coordinate:
        case Var(name=name):
            length = _dense_length(name, along)
            return (name,) if length == extent else None
        case Binary(
            op="add", lhs=Binary(op="mul", lhs=Var(name=outer), rhs=size), rhs=Var(name=inner)
        ):
            count, height = _dense_length(outer, along), _dense_length(inner, along)
            if outer == inner or count is None or height != size:
                return None
            return (outer, inner) if _are_enough(count, size, extent) else None
    return None


def _permuting(
    format: InstantiatedFormat, dimension: int, along: Mapping[str, Axis]
) -> tuple[str, ...] | None:
    """Return the variables that index a permutation of at least all coordinates of a dimension; None if the
    coordinate is not proved to be such an element."""
    coordinate = format.coordinates[dimension]
    load = coordinate.value if isinstance(coordinate, Cast) else coordinate
    if not isinstance(load, Load):
        return None
    used = tuple(index.name for index in load.indices if isinstance(index, Var))
    lengths = [_dense_length(name, along) for name in used]
    array = next(
        index_array for index_array in format.index_arrays if index_array.name == load.buffer
    )
    lengths_of_array = {axis.name: axis.length for axis in format.axes}
    if len(set(used)) < len(load.indices) or lengths != [lengths_of_array[n] for n in array.axes]:
        return None
    count = reduce(mul, (length for length in lengths if length is not None))
    facts = fact_index(format.facts)
    interval = facts.last(load.buffer, InRange)
    # As many distinct values as the range has: all of them.
    is_permutation = (
        interval is not None
        and facts.holds(load.buffer, Distinct)
        and affine_of(interval.low) == ZERO_FORM
        and affine_of(sub(interval.high, count)) == ZERO_FORM
    )
    is_enough = _covering_product(lengths, format.shape[dimension])
    return used if is_permutation and is_enough else None


def _covering_product(lengths: Sequence[Expr | None], extent: Expr) -> bool:
    """Return whether the product of one or two lengths is at least an extent."""
    match lengths:
        case [count]:
            return count == extent
        case [count, size] if count is not None and size is not None:
            return _are_enough(count, size, extent)
    return False


def _dense_length(var_name: str, along: Mapping[str, Axis]) -> Expr | None:
    """Return the length of the axis of a variable if it has all coordinates, wherever it is iterated."""
    axis = along.get(var_name)
    return axis.length if axis is not None and is_dense_root(axis) else None


def _are_enough(count: Expr, size: Expr, extent: Expr) -> bool:
    """Return whether `count` blocks of a size hold an extent: it is their product, or divided rounding up."""
    if extent == Binary("mul", count, size):
        return True
    if not isinstance(count, Binary) or count.op != "floordiv" or count.rhs != size:
        return False
    rounded_up = Binary("sub", Binary("add", extent, size), ONE)
    return affine_of(Binary("sub", count.lhs, rounded_up)) == ZERO_FORM
