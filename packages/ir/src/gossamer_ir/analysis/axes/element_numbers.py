"""The number of an element among all elements of an axis, at the position stage.

Positions are counted from the beginning of a fiber: `p = e - indptr[q]` in the fiber below element `q`. The
element is `e = indptr[q] + p`, so no single index determines it. Accesses with different numbers access
different elements, even if positions are outside their fibers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gossamer_ir.analysis.invariants import mutable_buffers
from gossamer_ir.arith.affine import affine_of, expr_of
from gossamer_ir.core.axis_kinds import Indptr, indptr_of, is_varied, width_of
from gossamer_ir.core.build import add, mul, widen
from gossamer_ir.nodes import Axis, Buffer, Expr, Function, Load, Range, SparseBuffer
from gossamer_ir.traversal.buffer_definitions import sparse_buffers
from gossamer_support.identity_cache import memoize_by_identity
from gossamer_support.items_by_name import items_by_name


def numbers_of(
    function: Function, buffer_name: str, indices: Sequence[Expr | Range]
) -> tuple[Expr | None, ...]:
    """Return the element numbers that positions in a buffer select, one for each varied axis; None for an
    axis whose element number cannot be derived."""
    axes = _varied_axes(function).get(buffer_name)
    if not axes:
        return ()
    names = _axes_of(function, buffer_name)
    positions = dict(zip(names, indices, strict=False))
    numbers = (_number(function, name, positions) for name in axes)
    return tuple(None if number is None else _normalize(number) for number in numbers)


@memoize_by_identity
def _varied_axes(function: Function) -> Mapping[str, tuple[str, ...]]:
    """Return the varied axes of each sparse buffer that has any."""
    varied = {axis.name for axis in function.axes if is_varied(axis)}
    return {
        buffer.name: tuple(name for name in buffer.axes if name in varied)
        for buffer in sparse_buffers(function.buffers)
        if varied.intersection(buffer.axes)
    }


def _axes_of(function: Function, buffer_name: str) -> tuple[str, ...]:
    return items_by_name(sparse_buffers(function.buffers))[buffer_name].axes


@memoize_by_identity
def _axes(function: Function) -> Mapping[str, Axis]:
    return items_by_name(function.axes)


def _number(function: Function, name: str, positions: Mapping[str, Expr | Range]) -> Expr | None:
    """Return the number of the element of an axis that positions select, among all elements of the axis."""
    axis, position = _axes(function)[name], positions.get(name)
    if position is None or isinstance(position, Range):
        return None
    if axis.parent is None:
        return position
    indptr = indptr_of(axis)
    if indptr is None:
        above = _number(function, axis.parent, positions)
        return above and add(mul(above, width_of(axis)), position)
    begin = offset_of_fiber(function, indptr, positions)
    if begin is None:
        return None
    at = tuple(map(_normalize, begin.indices))
    return add(widen(replace(begin, indices=at)), position)


def offset_of_fiber(
    function: Function, indptr: Indptr, positions: Mapping[str, Expr | Range]
) -> Load | None:
    """Return a load of the number of the first element of a varied axis below positions of its ancestors.

    The array of offsets is read as the program reads it: through a sparse buffer over axes, or through a
    buffer that is indexed by the number of the parent's element. None if the function writes the array, or
    if no buffer is bound to it.

    >>> from gossamer_ir.core.build import ONE, index, index_var
    >>> from gossamer_ir.nodes import CompressedVaried, DenseFixed
    >>> rows, n = DenseFixed("I", index(4)), index_var("n")
    >>> varied = CompressedVaried("J", "I", n, n, "indptr", "indices")
    >>> indptr = indptr_of(varied)
    >>> offsets = SparseBuffer("P", ("I",), "int32", "indptr", extra_storage=1)
    >>> function = Function("f", (), (), axes=(rows, varied), buffers=(offsets,))
    >>> offset_of_fiber(function, indptr, {"I": ONE}) == Load("P", (ONE,), "int32")
    True
    """
    # Two reads of a fiber's offset might differ.
    if indptr.handle in mutable_buffers(function):
        return None
    bound = [buffer for buffer in function.buffers if buffer.handle == indptr.handle]
    above = _number(function, indptr.parent, positions) if bound else None
    for value in bound:
        # A flat array is indexed by the number of the parent's element, an array over axes by positions.
        is_flat = isinstance(value, Buffer) or len(value.axes) == 1
        if is_flat and above is not None:
            return Load(value.name, (above,), value.dtype)
    for value in bound:
        if isinstance(value, SparseBuffer):
            indices = [positions.get(name) for name in value.axes]
            at = tuple(
                index for index in indices if index is not None and not isinstance(index, Range)
            )
            if len(at) == len(indices):
                return Load(value.name, at, value.dtype)
    return None


def _normalize(expr: Expr) -> Expr:
    return expr_of(affine_of(expr))
