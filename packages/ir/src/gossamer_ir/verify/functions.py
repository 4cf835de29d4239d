"""The walk over one function: declarations first, then the body."""

from __future__ import annotations

from gossamer_ir.nodes import AnyBuffer, Buffer, Function
from gossamer_ir.verify.axes import check_axes, check_buffer_axes
from gossamer_ir.verify.context import At, Context
from gossamer_ir.verify.declarations import bind_buffers, check_buffer, check_params
from gossamer_ir.verify.facts import check_facts, check_relations
from gossamer_ir.verify.statements import check_annotations, check_body


def check_function(ctx: Context, function: Function, at: At) -> None:
    """Checks one function of the context's stage."""
    check_params(ctx, function.params, at)
    if function.axes and not ctx.stage.has_axes:
        ctx.refuse_node(function.axes[0], at.down("axes", 0))
    check_axes(ctx, function.axes, at)
    check_buffers(ctx, function.buffers, at)
    check_relations(ctx, function.relations, at)
    check_facts(ctx, function.facts, at)
    check_annotations(ctx, function.annotations, at)
    check_body(ctx, function.body, at)


def check_buffers(ctx: Context, buffers: tuple[AnyBuffer, ...], at: At) -> None:
    """All buffers are known to each other's sizes, and bound to parameters."""
    for count, buffer in enumerate(buffers):
        rank = len(buffer.shape) if isinstance(buffer, Buffer) else len(buffer.axes)
        ctx.define_buffer(buffer, rank, at.down("buffers", count))
    for count, buffer in enumerate(buffers):
        inner = at.down("buffers", count)
        if type(buffer) not in ctx.stage.buffers:
            ctx.refuse_node(buffer, inner)
        check_buffer(ctx, buffer, inner)
        if not isinstance(buffer, Buffer):
            check_buffer_axes(ctx, buffer, inner)
    bind_buffers(ctx, buffers, at)
