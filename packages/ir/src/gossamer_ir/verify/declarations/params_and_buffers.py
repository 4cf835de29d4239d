"""Checks of parameters and buffers, and of the buffers bound to pointer parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from gossamer_ir.core.axis_kinds import (
    Indices,
    Indptr,
    indices_of,
    indptr_of,
    parent_value,
    width_of,
)
from gossamer_ir.nodes import AnyBuffer, Axis, Buffer, Param, Scope, SparseBuffer
from gossamer_ir.verify.context import IndexShape, NodePlace, VerifyContext
from gossamer_ir.verify.expressions.check_expr import check_length
from gossamer_ir.verify.expressions.dtype_queries import is_constant_expr, is_vector, parse_dtype

SCOPES: tuple[str, ...] = get_args(Scope)


def check_params(context: VerifyContext, params: tuple[Param, ...], place: NodePlace) -> None:
    """Check that parameters are pointers or scalars, and declare them."""
    for number, param in enumerate(params):
        inner = place.down("params", number)
        if param.dtype == "handle":
            context.define_name(param.name, inner)
            # The dtype of a pointer is that of the first buffer that is bound to it.
            context.handles[param.name] = None
            continue
        if parse_dtype(param.dtype) is None or is_vector(param.dtype):
            context.report(
                "verify.param.dtype",
                f"The parameter '{param.name}' has the dtype {param.dtype}; expected a scalar or "
                "handle.",
                inner,
            )
        context.define(param.name, param.dtype, inner)


def check_buffer(context: VerifyContext, buffer: AnyBuffer, place: NodePlace) -> None:
    """Check that a buffer has a scalar dtype, a known memory scope and int64 sizes."""
    if parse_dtype(buffer.dtype) is None or is_vector(buffer.dtype):
        context.report(
            "verify.buffer.dtype",
            f"The buffer '{buffer.name}' has the dtype {buffer.dtype}; expected a scalar one.",
            place,
        )
    if buffer.scope not in SCOPES:
        context.report(
            "verify.buffer.scope",
            f"'{buffer.scope}' is not a scope; expected one of {', '.join(SCOPES)}.",
            place,
        )
    if isinstance(buffer, Buffer):
        for number, size in enumerate(buffer.shape):
            check_length(context, size, place.down("shape", number))
    else:
        _check_sparse_buffer(context, buffer, place)


def _check_sparse_buffer(context: VerifyContext, buffer: SparseBuffer, place: NodePlace) -> None:
    if buffer.extra_storage < 0:
        context.report(
            "verify.buffer.extra",
            f"The buffer '{buffer.name}' has extra_storage {buffer.extra_storage}; expected 0 or more.",
            place,
        )
    fill = buffer.fill
    if fill is not None and (
        fill.dtype != buffer.dtype or not is_constant_expr(fill.dtype, fill.text)
    ):
        context.report(
            "verify.buffer.fill",
            f"The fill value '{fill.text}' of '{buffer.name}' is not a constant of dtype {buffer.dtype}.",
            place.down("fill"),
        )


def bind_axis(context: VerifyContext, axis: Axis, place: NodePlace) -> None:
    """Bind the index arrays of an axis to pointer parameters: `indptr` has one element more than the parent,
    `indices` as many as the axis, words of bits as many as the parent."""
    chain = _chain(context, axis)
    indptr, indices = indptr_of(axis), indices_of(axis)
    if indptr is not None:
        _bind_index(context, indptr, place.down("indptr"), shape=(_structure(chain[:-1]), 1))
    if indices is not None and indices.is_mask:
        _bind_index(context, indices, place.down("words"), shape=(_structure(chain[:-1]), 0))
    elif indices is not None:
        _bind_index(context, indices, place.down("indices"), shape=(_structure(chain), 0))


def _bind_index(
    context: VerifyContext, array: Indptr | Indices, place: NodePlace, *, shape: IndexShape
) -> None:
    if not _bind(context, array.handle, array.dtype, place):
        return
    if context.index_shapes.setdefault(array.handle, shape) != shape:
        context.report(
            "verify.handle.conflict",
            f"Index arrays of different shapes are bound to '{array.handle}'.",
            place,
            hint="Use two parameters.",
        )


def _chain(context: VerifyContext, axis: Axis) -> list[Axis]:
    """Return the axis and its declared ancestors, root first."""
    chain = [axis]
    # `not in chain`: parents that form a cycle are reported elsewhere, and must not hang this loop.
    while (parent := parent_value(chain[0], context.axes)) is not None and parent not in chain:
        chain.insert(0, parent)
    return chain


def bind_buffers(context: VerifyContext, buffers: Iterable[AnyBuffer], place: NodePlace) -> None:
    """Check that each bound buffer has a pointer parameter, to which buffers of one shape are bound.

    An index array of an axis may in addition be bound as an ordinary buffer.
    """
    shapes: dict[tuple[str, bool], tuple[object, ...]] = {
        (handle, False): shape for handle, shape in context.index_shapes.items()
    }
    declared = tuple(buffers)
    structure = context.index_shapes.keys() | {getattr(axis, "offsets", None) for axis in declared}
    for number, buffer in enumerate(declared):
        inner = place.down("buffers", number)
        if isinstance(buffer, SparseBuffer) and buffer.offsets is not None:
            _is_known_handle(context, buffer.offsets, inner.down("offsets"))
        if buffer.handle is None:
            continue
        if not _bind(context, buffer.handle, buffer.dtype, inner):
            continue
        shape = buffer.shape if isinstance(buffer, Buffer) else _shape_of(context, buffer)
        # An ordinary buffer over an index array has a shape in numbers, which is not compared with axes.
        is_flat = isinstance(buffer, Buffer) and buffer.handle in context.index_shapes
        if shapes.setdefault((buffer.handle, is_flat), shape) != shape:
            context.report(
                "verify.handle.conflict",
                f"Buffers of different shapes are bound to '{buffer.handle}'.",
                inner,
            )
        # Bounds that were proved by the structure of axes must not change while the kernel runs.
        if buffer.handle in structure:
            context.trusted.add(buffer.name)


def _shape_of(context: VerifyContext, buffer: SparseBuffer) -> IndexShape:
    named = [context.axes[name] for name in buffer.axes if name in context.axes]
    return _structure(named), buffer.extra_storage


def _structure(axes: Iterable[Axis]) -> tuple[object, ...]:
    """Return what determines the number of elements of each axis; equal for arrays of the same shape."""
    return tuple(_size_of(axis) for axis in axes)


def _size_of(axis: Axis) -> object:
    """Return what determines the number of elements of an axis, given those of its parent."""
    indptr = indptr_of(axis)
    return width_of(axis) if indptr is None else (indptr.handle, indptr.nnz)


def _bind(context: VerifyContext, handle: str, dtype: str, place: NodePlace) -> bool:
    """Bind a dtype to a pointer; False, after a report, if it is unknown or has another dtype."""
    if not _is_known_handle(context, handle, place):
        return False
    bound = context.handles[handle]
    # The first buffer of a pointer determines its dtype.
    if bound is None:
        context.handles[handle] = dtype
    elif bound != dtype:
        context.report(
            "verify.handle.conflict",
            f"'{handle}' is bound to buffers of {bound} and of {dtype}.",
            place,
            hint="Use two parameters.",
        )
        return False
    return True


def _is_known_handle(context: VerifyContext, handle: str, place: NodePlace) -> bool:
    """Return whether a pointer parameter has this name; report it if none has."""
    if handle in context.handles:
        return True
    context.report(
        "verify.handle.undefined",
        f"There is no pointer parameter '{handle}'.",
        place,
        hint=f"Available: {', '.join(map(repr, context.handles)) or 'none'}.",
    )
    return False
