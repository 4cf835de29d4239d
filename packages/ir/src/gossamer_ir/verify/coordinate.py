"""The coordinate stage: axes, sparse buffers, sparse iterations."""

from __future__ import annotations

from gossamer_ir.core.annotations import PREPROCESS
from gossamer_ir.core.axis_kinds import is_full
from gossamer_ir.nodes import (
    AttachAxis,
    Combine,
    FuseAxes,
    Iteration,
    IterationAxis,
    OverAxis,
    SparseBuffer,
)
from gossamer_ir.support.counted import counted
from gossamer_ir.verify.context import At, Stage, VerifyContext
from gossamer_ir.verify.expressions import SCALAR_EXPRESSIONS
from gossamer_ir.verify.reducers import check_combine
from gossamer_ir.verify.statements import (
    PLAIN_STATEMENTS,
    check_annotations,
    check_body,
    check_init,
)
from gossamer_ir.verify.write_conflicts import check_write_conflicts


def check_iteration(ctx: VerifyContext, node: Iteration, at: At) -> None:
    """Check that an iteration has one variable and one kind per axis, iterates parents before children, and
    does not assign one element from several points."""
    ctx.define_label(node.name, at)
    check_annotations(ctx, node.annotations, at, allowed={PREPROCESS})
    enclosing = ctx.iterated
    axes = _iterated_axes(ctx, node, at)
    if not len(axes) == len(node.kinds) == len(node.vars) or set(node.kinds) - {"S", "R"}:
        ctx.report(
            "verify.iteration.kinds",
            f"The iteration '{node.name}' over {counted(len(axes), 'axis', 'axes')} has the kinds "
            f"'{node.kinds}' and {counted(len(node.vars), 'variable')}; "
            "expected one letter (S or R) and one variable for each.",
            at,
        )
    with ctx.scope():
        for count, name in enumerate(node.vars):
            ctx.define(name, "int64", at.down("vars", count))
        letters = zip(node.kinds, node.vars, strict=False)
        check_init(ctx, node.init, at, reductions={name for kind, name in letters if kind == "R"})
        check_body(ctx, node.body, at)
    ctx.iterated = enclosing
    check_write_conflicts(ctx, node, axes, at)


def _iterated_axes(ctx: VerifyContext, node: Iteration, at: At) -> list[str]:
    """Return the names of the axes in order. Adds them to the axes of the enclosing iterations."""
    names: list[str] = []
    for count, item in enumerate(node.axes):
        inner = at.down("axes", count)
        for name in _names(item):
            _check_axis(ctx, name, names, inner)
            names.append(name)
        _check_order(ctx, item, inner)
        ctx.iterated += _names(item)
    return names


def _names(item: IterationAxis) -> tuple[str, ...]:
    return item.axes if isinstance(item, FuseAxes) else (item.axis,)


def _check_axis(ctx: VerifyContext, name: str, before: list[str], at: At) -> None:
    if name not in ctx.axes or name in before:
        ctx.report(
            "verify.iteration.axis",
            f"'{name}' is not an axis, or the iteration runs over it twice.",
            at,
            hint=f"Axes are: {', '.join(ctx.axes) or 'none'}.",
        )


def _check_order(ctx: VerifyContext, item: IterationAxis, at: At) -> None:
    match item:
        case OverAxis():
            _require_parent(ctx, item.axis, at)
        case FuseAxes():
            _check_chain(ctx, item, at)
        case AttachAxis():
            axis = ctx.axes.get(item.axis)
            if item.parent not in ctx.iterated or (axis is not None and axis.parent is None):
                ctx.report(
                    "verify.iteration.attach",
                    f"'{item.axis}' cannot be attached to '{item.parent}': '{item.axis}' must have "
                    f"a parent, and '{item.parent}' must be iterated before.",
                    at,
                )


def _require_parent(ctx: VerifyContext, name: str, at: At) -> None:
    axis = ctx.axes.get(name)
    if axis is None or is_full(axis) or axis.parent in ctx.iterated:
        return
    ctx.report(
        "verify.iteration.parent",
        f"The iteration runs over '{name}' before its parent '{axis.parent}'.",
        at,
        hint="Name the parent first, or attach the axis.",
    )


def _check_chain(ctx: VerifyContext, fused: FuseAxes, at: At) -> None:
    first = ctx.axes.get(fused.axes[0]) if fused.axes else None
    if first is not None and first.parent is not None:
        _require_parent(ctx, first.name, at)
    for above, name in zip(fused.axes, fused.axes[1:], strict=False):
        axis = ctx.axes.get(name)
        if axis is not None and axis.parent != above:
            break
    else:
        if len(fused.axes) > 1:
            return
    ctx.report(
        "verify.iteration.fuse",
        f"({', '.join(fused.axes)}) cannot be fused; expected at least two axes, each the child of "
        "the one before.",
        at,
    )


COORDINATE = Stage(
    name="coordinate",
    expressions=SCALAR_EXPRESSIONS,
    statements=PLAIN_STATEMENTS | {Iteration: check_iteration, Combine: check_combine},
    buffers=(SparseBuffer,),
    has_axes=True,
)
