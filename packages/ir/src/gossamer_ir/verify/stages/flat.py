"""The checks of nodes of the flat stage, the input of backends: functions that call each other."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer_ir.core.build import is_handle
from gossamer_ir.core.limits import WARP_LANES
from gossamer_ir.nodes import (
    Barrier,
    Expr,
    Function,
    Guard,
    Launch,
    Module,
    ParallelFor,
    Param,
    Shuffle,
)
from gossamer_ir.verify.context import ROOT_PLACE, NodePlace, VerifyContext
from gossamer_ir.verify.expressions.buffer_accesses import declared_buffer
from gossamer_ir.verify.expressions.check_expr import check_condition, check_expr, check_size
from gossamer_ir.verify.statements.statement_checks import (
    THREAD_TAGS,
    check_bound_value,
    check_loop_range,
    define_loop_var,
)
from gossamer_support.message_texts import amount

MAX_CALLS = 100
"""Maximum depth of nested calls."""

SHUFFLE_WIDTHS = (2, 4, 8, 16, WARP_LANES)
"""The numbers of threads that exchange values."""

RANGE_PARAMS = 2
"""Number of leading parameters of an outlined loop that give its range: begin and end."""


def check_guard(context: VerifyContext, node: Guard, place: NodePlace) -> None:
    """Check that a guard has a scalar condition and names an existing buffer."""
    check_condition(context, node.condition, place.down("condition"))
    declared_buffer(context, node.buffer, place)


def check_barrier(_context: VerifyContext, _node: Barrier, _place: NodePlace) -> None:
    """Accept a barrier, which has no operands: whether all threads reach it depends on run-time values."""


def check_shuffle(context: VerifyContext, node: Shuffle, place: NodePlace) -> None:
    """Check the dtype of the variable, and that the offset and the width are possible in a warp."""
    if node.width not in SHUFFLE_WIDTHS or not 0 < node.offset < node.width:
        context.report(
            "verify.shuffle.offset",
            f"A shuffle has the offset {node.offset} and the width {node.width}.",
            place,
            hint="The width is 2, 4, 8, 16 or 32, and the offset is from 1 to the width minus 1.",
        )
    check_bound_value(context, node, place)


def check_parallel_for(context: VerifyContext, node: ParallelFor, place: NodePlace) -> None:
    """Check that a parallel loop has an int64 range, which its function takes as first parameters."""
    check_loop_range(context, node, place)
    with context.scope():
        define_loop_var(context, node, place)
    callee = _find_callee(context, node.function, place)
    if callee is None:
        return
    if [param.dtype for param in callee.params[:RANGE_PARAMS]] != ["int64"] * RANGE_PARAMS:
        context.report(
            "verify.flat.range",
            f"The first two parameters of '{node.function}', which runs in parallel, must be the begin "
            "and end of its range, in int64.",
            place,
        )
    _check_arguments(context, node, callee, callee.params[RANGE_PARAMS:], place)


def check_launch(context: VerifyContext, node: Launch, place: NodePlace) -> None:
    """Check that a launch has distinct thread axes and an existing function."""
    tags = [thread.tag for thread in node.threads]
    for number, thread in enumerate(node.threads):
        inner = place.down("threads", number)
        if thread.tag not in THREAD_TAGS or thread.tag in tags[:number]:
            context.report(
                "verify.thread.tag",
                f"'{thread.tag}' is not a thread axis, or is given twice.",
                inner,
            )
        check_size(context, thread.extent, inner.down("extent"))
    callee = _find_callee(context, node.function, place)
    if callee is not None:
        _check_arguments(context, node, callee, callee.params, place)


def _find_callee(context: VerifyContext, name: str, place: NodePlace) -> Function | None:
    context.calls.append((name, place))
    callee = context.functions.get(name)
    if callee is None:
        context.report(
            "verify.flat.callee",
            f"There is no function '{name}'.",
            place,
            hint=f"Defined are: {', '.join(context.functions)}.",
        )
    return callee


def _check_arguments(
    context: VerifyContext,
    node: ParallelFor | Launch,
    callee: Function,
    params: tuple[Param, ...],
    place: NodePlace,
) -> None:
    if len(node.args) != len(params):
        context.report(
            "verify.flat.arguments",
            f"'{callee.name}' takes {amount(len(params), 'argument')}, not {len(node.args)}.",
            place,
        )
    bound = {buffer.handle: buffer.dtype for buffer in callee.buffers}
    for number, (arg, param) in enumerate(zip(node.args, params, strict=False)):
        inner = place.down("args", number)
        if param.dtype == "handle":
            arg_dtype, expected = _pointer_dtype(context, arg, inner), bound.get(param.name)
        else:
            arg_dtype, expected = check_expr(context, arg, inner), param.dtype
        if arg_dtype is not None and expected is not None and arg_dtype != expected:
            context.report(
                "verify.flat.argument",
                f"The argument for the parameter '{param.name}' of '{callee.name}' has the dtype "
                f"{arg_dtype}; expected {expected}.",
                inner,
            )


def _pointer_dtype(context: VerifyContext, arg: Expr, place: NodePlace) -> str | None:
    """Return the element dtype of a pointer argument, or None if it cannot be determined."""
    if is_handle(arg):
        if arg.name in context.handles:
            return context.handles[arg.name]
        if arg.name in context.buffers:
            return context.buffers[arg.name].dtype
    context.report(
        "verify.flat.pointer",
        "A pointer argument must be a handle parameter or an allocated buffer.",
        place,
    )
    return None


def check_calls(contexts: Mapping[str, VerifyContext], module: Module) -> None:
    """Check that no function calls itself, even indirectly, and that the entry's pointers are bound."""
    entry = contexts.get(module.entry)
    if entry is not None:
        _check_bound(entry, module)
    heights: dict[str, int] = {}
    for name in contexts:
        _check_calls_of(contexts, name, (), heights)


def _check_bound(entry: VerifyContext, module: Module) -> None:
    index = next(
        number for number, function in enumerate(module.functions) if function.name == module.entry
    )
    for handle, dtype in entry.handles.items():
        if dtype is None:
            entry.report(
                "verify.handle.unbound",
                f"No buffer is bound to the pointer parameter '{handle}' of the entry.",
                ROOT_PLACE.down("functions", index),
                hint="Remove the parameter, or bind a buffer to it.",
            )


def _check_calls_of(
    contexts: Mapping[str, VerifyContext],
    name: str,
    above: tuple[str, ...],
    heights: dict[str, int],
) -> int:
    """Return the maximum depth of nested calls below a function; memoized in `heights`."""
    context = contexts.get(name)
    if context is None or name in heights:
        return heights.get(name, 0)
    height = 0
    for callee, place in context.calls:
        # Recursion would need a stack of unknown size, and the depth below could not be computed.
        if callee in (*above, name):
            context.report("verify.flat.recursion", f"'{callee}' calls itself.", place)
            continue
        # The recursion of this check is bounded, too, whatever the module says.
        if len(above) < MAX_CALLS:
            height = max(height, 1 + _check_calls_of(contexts, callee, (*above, name), heights))
        if height > MAX_CALLS or len(above) == MAX_CALLS:
            context.report("verify.depth", f"Calls nest deeper than {MAX_CALLS} levels.", place)
            height = 0
    heights[name] = height
    return height
