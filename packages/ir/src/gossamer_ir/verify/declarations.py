"""Checks of parameters and buffers, and of what is bound to the pointer parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from gossamer_ir.nodes import (
    AnyBuffer,
    Axis,
    Buffer,
    CompressedFixed,
    CompressedVaried,
    DenseVaried,
    Param,
    Scope,
    SparseBuffer,
)  # fmt: skip
from gossamer_ir.verify.context import At, Context
from gossamer_ir.verify.kinds import is_constant, is_vector, known
from gossamer_ir.verify.values import check_length

SCOPES: tuple[str, ...] = get_args(Scope)


def check_params(ctx: Context, params: tuple[Param, ...], at: At) -> None:
    """Pointers and scalars."""
    for count, param in enumerate(params):
        inner = at.down("params", count)
        if param.dtype == "handle":
            ctx.define_name(param.name, inner)
            ctx.handles[param.name] = None
            continue
        if known(param.dtype) is None or is_vector(param.dtype):
            ctx.report(
                "verify.param.dtype",
                f"The parameter '{param.name}' has the dtype {param.dtype}, expected a scalar or "
                "handle.",
                inner,
            )
        ctx.define(param.name, param.dtype, inner)


def check_buffer(ctx: Context, buffer: AnyBuffer, at: At) -> None:
    """A scalar dtype, a scope, and int64 sizes."""
    if known(buffer.dtype) is None or is_vector(buffer.dtype):
        ctx.report(
            "verify.buffer.dtype",
            f"The buffer '{buffer.name}' has the dtype {buffer.dtype}, expected a scalar one.",
            at,
        )
    if buffer.scope not in SCOPES:
        ctx.report(
            "verify.buffer.scope",
            f"'{buffer.scope}' is no scope, expected one of {', '.join(SCOPES)}.",
            at,
        )
    if isinstance(buffer, Buffer):
        for count, size in enumerate(buffer.shape):
            check_length(ctx, size, at.down("shape", count))
    else:
        _check_sparse_buffer(ctx, buffer, at)


def _check_sparse_buffer(ctx: Context, buffer: SparseBuffer, at: At) -> None:
    if buffer.extra_storage < 0:
        ctx.report(
            "verify.buffer.extra",
            f"The buffer '{buffer.name}' has {buffer.extra_storage} further elements.",
            at,
        )
    fill = buffer.fill
    if fill is not None and (fill.dtype != buffer.dtype or not is_constant(fill.dtype, fill.text)):
        ctx.report(
            "verify.buffer.fill",
            f"The fill value {fill.text} of '{buffer.name}' is no constant of {buffer.dtype}.",
            at.down("fill"),
        )


def bind_axis(ctx: Context, axis: Axis, at: At) -> None:
    """The index arrays of an axis are pointer parameters."""
    if isinstance(axis, DenseVaried | CompressedVaried):
        _bind(ctx, axis.indptr, axis.indptr_dtype, at.down("indptr"))
        ctx.index_handles.add(axis.indptr)
    if isinstance(axis, CompressedFixed | CompressedVaried):
        _bind(ctx, axis.indices, axis.indices_dtype, at.down("indices"))
        ctx.index_handles.add(axis.indices)


def bind_buffers(ctx: Context, buffers: Iterable[AnyBuffer], at: At) -> None:
    """Each bound buffer has a pointer parameter, and no other shape is bound to it; an index array
    may also be bound as it lies in memory."""
    shapes: dict[tuple[str, bool], tuple[object, ...]] = {}
    for count, buffer in enumerate(buffers):
        inner = at.down("buffers", count)
        if isinstance(buffer, SparseBuffer) and buffer.offsets is not None:
            _require_handle(ctx, buffer.offsets, inner.down("offsets"))
        if buffer.handle is None:
            continue
        if not _bind(ctx, buffer.handle, buffer.dtype, inner):
            continue
        shape = buffer.shape if isinstance(buffer, Buffer) else _structure(ctx, buffer)
        is_flat = isinstance(buffer, Buffer) and buffer.handle in ctx.index_handles
        if shapes.setdefault((buffer.handle, is_flat), shape) != shape:
            ctx.report(
                "verify.handle.conflict",
                f"Buffers of different shapes are bound to '{buffer.handle}'.",
                inner,
            )
        if buffer.handle in ctx.index_handles:
            ctx.trusted.add(buffer.name)


def _structure(ctx: Context, buffer: SparseBuffer) -> tuple[object, ...]:
    """The axes without their names: two axes over the same arrays are one structure."""
    named = [ctx.axes[name] for name in buffer.axes if name in ctx.axes]
    return tuple(
        (type(axis), *(getattr(axis, field) for field in _STRUCTURE if hasattr(axis, field)))
        for axis in named
    )


_STRUCTURE = ("length", "width", "nnz", "indptr", "indices")


def _bind(ctx: Context, handle: str, dtype: str, at: At) -> bool:
    """Whether the dtype agrees with what else is bound to the pointer."""
    if not _require_handle(ctx, handle, at):
        return False
    bound = ctx.handles[handle]
    if bound is None:
        ctx.handles[handle] = dtype
    elif bound != dtype:
        ctx.report(
            "verify.handle.conflict",
            f"'{handle}' is bound as {bound} and as {dtype}.",
            at,
            hint="Use two parameters.",
        )
        return False
    return True


def _require_handle(ctx: Context, handle: str, at: At) -> bool:
    if handle in ctx.handles:
        return True
    ctx.report(
        "verify.handle.undefined",
        f"There is no pointer parameter '{handle}'.",
        at,
        hint=f"There are: {', '.join(ctx.handles) or 'none'}.",
    )
    return False
