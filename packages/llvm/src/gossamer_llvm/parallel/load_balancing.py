"""Load balancing: the weight of a parallel loop (cumulative work), and the function that finds the iteration
at which a unit of the total weight begins."""

from __future__ import annotations

from typing import TypeAlias

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Expr, Load, ParallelFor, Var
from gossamer_ir.traversal.walk import walk
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.ir_builder import COLD
from gossamer_llvm.emitter.operands import BufferAddress, Value
from gossamer_llvm.parallel.closure import closure_values, plan_field

Captures: TypeAlias = dict[str, Value]
"""The values that a weight uses besides its variable: scalars by name, and addresses of buffers."""

UNITS_PER_SHARE = 16
"""The number of equal units of a share; chunks consist of units."""

_BUFFER = "&"
"""The prefix of the name of a buffer in `Captures`."""


def captures_of(emitter: FunctionEmitter, node: ParallelFor) -> Captures:
    """Return the values that the weight uses, in the order of their occurrence."""
    captures: Captures = {}
    if node.weight is not None:
        _collect_captures(emitter, node.weight, node.var, captures)
    return captures


def emit_weight(emitter: FunctionEmitter, node: ParallelFor, iteration: Value) -> Value:
    """Return the weight at an iteration: the work of all iterations before it."""
    if node.weight is None:
        return iteration
    # A value that is loaded at one iteration is not available at another one.
    with emitter.available.scope():
        emitter.vars.values[node.var] = iteration
        weight = emitter.expr(node.weight)
        del emitter.vars.values[node.var]
    return weight


def define_boundary(emitter: FunctionEmitter, node: ParallelFor, captures: Captures) -> str:
    """Emit the function `i64 boundary(ptr closure, i64 unit)` and return its name.

    The values of the captures are the first ones after the plan of the closure. A unit begins at the first
    iteration with at least its share of the total weight; the first unit begins at start, and the one after
    the last at end, whatever the weights are. The function is cold: it runs twice for each chunk, and to
    optimize it took a tenth of LLVM's time for SpMM.
    """
    symbol = emitter.module.new_symbol()
    inner = emitter.helper(f"internal i64 @{symbol}(ptr %closure, i64 %unit) {COLD}")
    _bind_captures(emitter, inner, captures)
    start, end, low, total, threads = (
        plan_field(inner, "%closure", name) for name in ("start", "end", "low", "total", "threads")
    )
    builder = inner.builder
    units = builder.value(f"mul {threads.typed}, {UNITS_PER_SHARE}")
    target = builder.value(f"add {low.typed}, {_weight_share(inner, total, units)}")
    boundary = _emit_search(inner, node, start, end, target=target)
    is_first = builder.value("icmp eq i64 %unit, 0")
    after = builder.value(f"select i1 {is_first}, {start.typed}, i64 {boundary}")
    # The search for the total weight would stop before iterations without weight at the end.
    is_last = builder.value(f"icmp eq i64 %unit, {units}")
    iteration = builder.value(f"select i1 {is_last}, {end.typed}, i64 {after}")
    builder.line(f"ret i64 {iteration}")
    emitter.module.definitions.append(builder.render())
    return symbol


def _bind_captures(emitter: FunctionEmitter, inner: FunctionEmitter, captures: Captures) -> None:
    """Bind variables and buffers of the weight to the values in the closure."""
    dtypes = [value.dtype for value in captures.values()]
    values = closure_values(inner, "%closure", dtypes, begin=0)
    inner.vars.values = dict(zip(captures, values, strict=True))
    inner.buffers = {
        name: BufferAddress(location.buffer, inner.vars.values[_BUFFER + name].text)
        for name, location in emitter.buffers.items()
        if _BUFFER + name in captures
    }


def _weight_share(emitter: FunctionEmitter, total: Value, units: str) -> str:
    """Return total * unit / units without intermediate overflow; units is at least 1."""
    builder = emitter.builder
    # total * unit may overflow, so the quotient and the remainder are scaled separately.
    quotient = builder.value(f"udiv {total.typed}, {units}")
    rest = builder.value(f"urem {total.typed}, {units}")
    main = builder.value(f"mul i64 {quotient}, %unit")
    scaled = builder.value(f"mul i64 {rest}, %unit")
    return builder.value(f"add i64 {main}, " + builder.value(f"udiv i64 {scaled}, {units}"))


def _emit_search(
    emitter: FunctionEmitter, node: ParallelFor, start: Value, end: Value, *, target: str
) -> str:
    """Return the first iteration from start on with at least the target weight; the end if there is none."""
    builder = emitter.builder
    before = builder.block
    test, step, latch, done = (builder.new_block() for _ in range(4))
    builder.fall_into(test)
    next_low, next_high = builder.forward(), builder.forward()
    low = builder.value(f"phi i64 [ {start.text}, %{before} ], [ {next_low}, %{latch} ]")
    high = builder.value(f"phi i64 [ {end.text}, %{before} ], [ {next_high}, %{latch} ]")
    builder.branch(builder.value(f"icmp slt i64 {low}, {high}"), step, done)
    builder.begin(step)
    half = builder.value("lshr i64 " + builder.value(f"sub i64 {high}, {low}") + ", 1")
    middle = builder.value(f"add i64 {low}, {half}")
    weight = emit_weight(emitter, node, Value(middle, "int64"))
    # The weight may have blocks of its own.
    builder.fall_into(latch)
    is_less = builder.value(f"icmp slt {weight.typed}, {target}")
    following = builder.value(f"add i64 {middle}, 1")
    builder.define(next_low, f"select i1 {is_less}, i64 {following}, i64 {low}")
    builder.define(next_high, f"select i1 {is_less}, i64 {high}, i64 {middle}")
    builder.jump(test)
    builder.begin(done)
    return low


# Other expressions: their operands are visited.
def _collect_captures(
    emitter: FunctionEmitter, node: Expr, var_name: str, captures: Captures
) -> None:
    for inner in walk(node):
        if isinstance(inner, Var) and inner.name != var_name:
            captures[inner.name] = emitter.vars.values[inner.name]
        elif isinstance(inner, Load) and _BUFFER + inner.buffer not in captures:
            location = emitter.buffers[inner.buffer]
            captures[_BUFFER + inner.buffer] = Value(location.address, "handle")
            # Addresses of several dimensions are computed from the extents.
            for extent in location.buffer.shape:
                _collect_captures(emitter, extent, var_name, captures)
    if len(captures) > _MAX_CAPTURES:
        raise UnsupportedError(
            "llvm.weight",
            f"The weight uses {len(captures)} values; expected at most {_MAX_CAPTURES}.",
        )


_MAX_CAPTURES = 64
"""The largest number of captures, all of which are fields of the closure on the stack. It bounds these, and
is not a measured limit."""
