"""Checks of one function: its declarations first, then its body."""

from __future__ import annotations

from collections import Counter

from gossamer_ir.core.annotations import COMPOSABLE, is_composable, keys_on
from gossamer_ir.nodes import AnyBuffer, Buffer, Function
from gossamer_ir.traversal.buffer_definitions import handles_of
from gossamer_ir.traversal.buffer_uses import buffers_written
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.declarations.axes import check_axes, check_buffer_axes
from gossamer_ir.verify.declarations.facts import check_facts, check_relations
from gossamer_ir.verify.declarations.params_and_buffers import (
    bind_buffers,
    check_buffer,
    check_params,
)
from gossamer_ir.verify.declarations.reducers import check_reducers
from gossamer_ir.verify.statements.atomics import check_shared
from gossamer_ir.verify.statements.pipelined_loops import check_pipelines
from gossamer_ir.verify.statements.statement_checks import check_annotations, check_body


def check_function(context: VerifyContext, function: Function, place: NodePlace) -> None:
    """Check one function at the stage of the context."""
    # Parameters first: axes and buffers bind their handles. Axes come before the buffers over them, whose
    # index arrays determine the shapes that are compared.
    check_params(context, function.params, place)
    if function.axes and not context.stage.has_axes:
        context.report_node(function.axes[0], place.down("axes", 0))
    check_axes(context, function.axes, place)
    check_buffers(context, function.buffers, place)
    if function.reducers and not context.stage.has_reducers:
        context.report_node(function.reducers[0], place.down("reducers", 0))
    check_reducers(context, function.reducers, place)
    check_relations(context, function.relations, place)
    check_facts(context, function.facts, function.buffers, place)
    is_marked = context.stage.name == "coordinate" and is_composable(function)
    allowed = keys_on("function") - (set() if is_marked else {COMPOSABLE})
    check_annotations(context, function.annotations, place, allowed=allowed)
    check_body(context, function.body, place)
    # After the body, whose writes and updates are known then.
    check_aliases(context, function, place)
    check_shared(context, function, place)
    check_pipelines(context, function)


def check_aliases(context: VerifyContext, function: Function, place: NodePlace) -> None:
    """Check that a pointer that is written has one buffer bound to it, so that a store through one name
    cannot change the elements of another."""
    handles = handles_of(function)
    names = Counter(handles.values())
    for name in sorted(buffers_written(function.body) & handles.keys()):
        if names[handles[name]] > 1:
            others = [other for other in handles if handles[other] == handles[name]]
            context.report(
                "verify.handle.alias",
                f"'{handles[name]}' is written, but several buffers are bound to it: "
                f"{', '.join(others)}.",
                place,
                hint="Bind one buffer to it, and use only that.",
            )


def check_buffers(context: VerifyContext, buffers: tuple[AnyBuffer, ...], place: NodePlace) -> None:
    """Check buffers in order, so that a shape reads earlier buffers only, and bind them to parameters."""
    for number, buffer in enumerate(buffers):
        inner = place.down("buffers", number)
        if type(buffer) not in context.stage.buffers:
            context.report_node(buffer, inner)
        check_buffer(context, buffer, inner)
        if not isinstance(buffer, Buffer):
            check_buffer_axes(context, buffer, inner)
        ndim = len(buffer.shape) if isinstance(buffer, Buffer) else len(buffer.axes)
        context.define_buffer(buffer, ndim, inner)
    bind_buffers(context, buffers, place)
