"""Checks of axes, which form a forest, and of the order in which a buffer lists them."""

from __future__ import annotations

from gossamer_ir.core.axis_kinds import indices_of, indptr_of, is_full, is_varied, width_of
from gossamer_ir.core.dtypes import INDEX_STORAGE, WORD_STORAGE
from gossamer_ir.nodes import Axis, SparseBuffer
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.declarations.params_and_buffers import bind_axis
from gossamer_ir.verify.expressions.check_expr import check_length


def check_axes(context: VerifyContext, axes: tuple[Axis, ...], place: NodePlace) -> None:
    """Check that parents are declared before children, sizes are int64 and index arrays are parameters."""
    for number, axis in enumerate(axes):
        inner = place.down("axes", number)
        context.define_name(axis.name, inner)
        if axis.parent is not None and axis.parent not in context.axes:
            context.report(
                "verify.axis.parent",
                f"'{axis.parent}', the parent of the axis '{axis.name}', is not declared before it.",
                inner,
                hint="Declare the parent first.",
            )
        _check_storage(context, axis, inner)
        _check_lengths(context, axis, inner)
        bind_axis(context, axis, inner)
        context.axes.setdefault(axis.name, axis)


def _check_storage(context: VerifyContext, axis: Axis, place: NodePlace) -> None:
    indptr, indices = indptr_of(axis), indices_of(axis)
    if indptr is not None:
        _check_dtype(context, axis, place, stored=("indptr", indptr.dtype), allowed=INDEX_STORAGE)
    if indices is not None and indices.is_mask:
        _check_dtype(context, axis, place, stored=("words", indices.dtype), allowed=WORD_STORAGE)
    elif indices is not None:
        _check_dtype(context, axis, place, stored=("indices", indices.dtype), allowed=INDEX_STORAGE)


def _check_dtype(
    context: VerifyContext,
    axis: Axis,
    place: NodePlace,
    *,
    stored: tuple[str, str],
    allowed: tuple[str, ...],
) -> None:
    name, dtype = stored
    if dtype not in allowed:
        context.report(
            "verify.axis.dtype",
            f"The axis '{axis.name}' stores {name} as {dtype}; expected one of {', '.join(allowed)}.",
            place,
        )


def _check_lengths(context: VerifyContext, axis: Axis, place: NodePlace) -> None:
    check_length(context, axis.length, place.down("length"))
    indptr = indptr_of(axis)
    if indptr is not None and indptr.nnz is not None:
        check_length(context, indptr.nnz, place.down("nnz"))
    # The width of a full axis is its length.
    if indptr is None and not is_full(axis):
        check_length(context, width_of(axis), place.down("width"))


def check_buffer_axes(context: VerifyContext, buffer: SparseBuffer, place: NodePlace) -> None:
    """Check the order of a buffer's axes.

    Storage enumerates the axes as nested loops in this order, so that a parent must precede its child.
    """
    seen: list[str] = []
    for name in buffer.axes:
        axis = context.axes.get(name)
        if axis is None or name in seen:
            context.report(
                "verify.buffer.axis",
                f"'{name}' in the buffer '{buffer.name}' is not an axis, or is listed twice.",
                place,
                hint=f"Axes are: {', '.join(context.axes) or 'none'}.",
            )
        elif axis.parent is not None and axis.parent not in seen:
            context.report(
                "verify.buffer.order",
                f"The buffer '{buffer.name}' lists the axis '{name}' without its parent "
                f"'{axis.parent}' before it.",
                place,
            )
        seen.append(name)
    if buffer.offsets is None:
        _check_siblings(context, buffer, place)


def _check_siblings(context: VerifyContext, buffer: SparseBuffer, place: NodePlace) -> None:
    varied = [
        name for name in buffer.axes if name in context.axes and is_varied(context.axes[name])
    ]
    for number, name in enumerate(varied):
        above = _ancestors(context, name)
        for other in varied[:number]:
            if other not in above and above & _ancestors(context, other):
                context.report(
                    "verify.buffer.siblings",
                    f"The varied axes '{other}' and '{name}' of the buffer '{buffer.name}' share an "
                    "ancestor, so that locating an element needs prefix sums of products of row lengths.",
                    place,
                    hint="Pass an array of these sums as offsets=.",
                )


def _ancestors(context: VerifyContext, name: str) -> set[str]:
    names: set[str] = set()
    axis = context.axes.get(name)
    while axis is not None and axis.parent is not None and axis.parent not in names:
        names.add(axis.parent)
        axis = context.axes.get(axis.parent)
    return names
