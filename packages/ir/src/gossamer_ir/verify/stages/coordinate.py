"""The checks of nodes that only the coordinate stage has: sparse iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gossamer_ir.core.annotations import keys_on
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.core.iteration_axes import axis_names
from gossamer_ir.nodes import AttachAxis, FuseAxes, Iteration, OverAxis
from gossamer_ir.verify.context import NodePlace, VerifyContext
from gossamer_ir.verify.statements.statement_checks import check_annotations, check_body, check_init
from gossamer_ir.verify.statements.write_conflicts import check_write_conflicts
from gossamer_support.message_texts import amount


def check_iteration(context: VerifyContext, node: Iteration, place: NodePlace) -> None:
    """Check that an iteration has one variable and one kind per axis, iterates parents before children, and
    does not assign one element from several points."""
    context.define_label(node.name, place)
    check_annotations(context, node.annotations, place, allowed=keys_on("iteration"))
    enclosing = context.iterated
    axes = _iterated_axes(context, node, place)
    if not len(axes) == len(node.kinds) == len(node.vars) or set(node.kinds) - {"S", "R"}:
        context.report(
            "verify.iteration.kinds",
            f"The iteration '{node.name}' over {amount(len(axes), 'axis', 'axes')} has the kinds "
            f"'{node.kinds}' and {amount(len(node.vars), 'variable')}; "
            "expected one letter (S or R) and one variable for each.",
            place,
        )
    with context.scope():
        for number, name in enumerate(node.vars):
            context.define(name, "int64", place.down("vars", number))
        letters = zip(node.kinds, node.vars, strict=False)
        check_init(
            context, node.init, place, reductions={name for kind, name in letters if kind == "R"}
        )
        check_body(context, node.body, place)
    context.iterated = enclosing
    check_write_conflicts(context, node, axes, place)


def _iterated_axes(context: VerifyContext, node: Iteration, place: NodePlace) -> list[str]:
    """Return the names of the axes in order. Adds them to the axes of the enclosing iterations."""
    names: list[str] = []
    for number, item in enumerate(node.axes):
        inner = place.down("axes", number)
        for name in axis_names(item):
            _check_axis(context, name, names, inner)
            names.append(name)
        ORDER_CHECKS[type(item)](context, item, inner)
        context.iterated += axis_names(item)
    return names


def _check_axis(context: VerifyContext, name: str, before: list[str], place: NodePlace) -> None:
    if name not in context.axes or name in before:
        context.report(
            "verify.iteration.axis",
            f"'{name}' is not an axis, or the iteration runs over it twice.",
            place,
            hint=f"Axes are: {', '.join(context.axes) or 'none'}.",
        )


def _check_attached(context: VerifyContext, attached: AttachAxis, place: NodePlace) -> None:
    axis = context.axes.get(attached.axis)
    if attached.parent not in context.iterated or (axis is not None and axis.parent is None):
        context.report(
            "verify.iteration.attach",
            f"'{attached.axis}' cannot be attached to '{attached.parent}': '{attached.axis}' must have "
            f"a parent, and '{attached.parent}' must be iterated before.",
            place,
        )


def _check_parent(context: VerifyContext, name: str, place: NodePlace) -> None:
    axis = context.axes.get(name)
    if axis is None or is_full(axis) or axis.parent in context.iterated:
        return
    context.report(
        "verify.iteration.parent",
        f"The iteration runs over '{name}' before its parent '{axis.parent}'.",
        place,
        hint="Name the parent first, or attach the axis.",
    )


def _check_chain(context: VerifyContext, fused: FuseAxes, place: NodePlace) -> None:
    first = context.axes.get(fused.axes[0]) if fused.axes else None
    if first is not None and first.parent is not None:
        _check_parent(context, first.name, place)
    for above, name in zip(fused.axes, fused.axes[1:], strict=False):
        axis = context.axes.get(name)
        if axis is not None and axis.parent != above:
            break
    else:
        if len(fused.axes) > 1:
            return
    context.report(
        "verify.iteration.fuse",
        f"({', '.join(fused.axes)}) cannot be fused; expected at least two axes, each the child of "
        "the one before.",
        place,
    )


ORDER_CHECKS: Mapping[type, Callable[[VerifyContext, Any, NodePlace], None]] = {
    OverAxis: lambda context, over, place: _check_parent(context, over.axis, place),
    FuseAxes: _check_chain,
    AttachAxis: _check_attached,
}
"""The check, for each type of entry in the axis list, that what selects its fibers is iterated before."""
