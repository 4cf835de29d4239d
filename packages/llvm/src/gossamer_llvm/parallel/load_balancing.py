"""Load balancing: the weight of a parallel loop (cumulative work) as a function, and the search for the
iteration with a given weight."""

from __future__ import annotations

from typing import TypeAlias

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Expr, Load, ParallelFor, Var
from gossamer_ir.traversal.walk import walk
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.ir_builder import COLD
from gossamer_llvm.emitter.operands import BufferAddress, Value

Captures: TypeAlias = dict[str, Value]
"""The values that a weight uses besides its variable: scalars by name, and addresses of buffers."""

_BUFFER = "&"
"""The prefix of the name of a buffer in `Captures`."""


def captures_of(emitter: FunctionEmitter, node: ParallelFor) -> Captures:
    """Return the values that the weight uses, in the order of their occurrence."""
    captures: Captures = {}
    if node.weight is not None:
        _collect_captures(emitter, node.weight, node.var, captures)
    return captures


def define_weight(emitter: FunctionEmitter, node: ParallelFor, captures: Captures) -> str:
    """Emit the function `i64 weight(i64 var, captures...)` and return its name.

    It is cold, as the search is: both run twice for each chunk, and optimizing them takes a tenth of LLVM's
    time for SpMM.
    """
    symbol = emitter.module.new_symbol()
    names = {
        name: Value(f"%c{number}", value.dtype)
        for number, (name, value) in enumerate(captures.items())
    }
    parameters = ", ".join(["i64 %i", *(value.typed for value in names.values())])
    inner = emitter.helper(f"internal i64 @{symbol}({parameters}) {COLD}")
    inner.vars.values = {node.var: Value("%i", "int64"), **names}
    inner.buffers = {
        name: BufferAddress(location.buffer, names[_BUFFER + name].text)
        for name, location in emitter.buffers.items()
        if _BUFFER + name in names
    }
    result = Value("%i", "int64") if node.weight is None else inner.expr(node.weight)
    inner.builder.line(f"ret {result.typed}")
    emitter.module.definitions.append(inner.builder.render())
    return symbol


def define_search(emitter: FunctionEmitter, weight: str, captures: Captures) -> str:
    """Emit the function `i64 search(i64 low, i64 high, i64 target, captures...)` and return its name.

    It returns the first index in [low, high) with at least the target weight; high if there is none.
    """
    symbol = emitter.module.new_symbol()
    extra = "".join(f", {value.type} %c{number}" for number, value in enumerate(captures.values()))
    emitter.module.definitions.append(
        _SEARCH.format(symbol=symbol, weight=weight, extra=extra, attributes=COLD)
    )
    return symbol


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
"""The largest number of captures, all of which are arguments of two functions and fields of the closure on
the stack. It bounds these, and is not a measured limit."""

_SEARCH = """\
define internal i64 @{symbol}(i64 %low, i64 %high, i64 %target{extra}) {attributes} {{
entry:
  br label %test
test:
  %l = phi i64 [ %low, %entry ], [ %l2, %step ]
  %h = phi i64 [ %high, %entry ], [ %h2, %step ]
  %more = icmp slt i64 %l, %h
  br i1 %more, label %step, label %found
step:
  %length = sub i64 %h, %l
  %half = lshr i64 %length, 1
  %m = add i64 %l, %half
  %w = call i64 @{weight}(i64 %m{extra})
  %less = icmp slt i64 %w, %target
  %next = add i64 %m, 1
  %l2 = select i1 %less, i64 %next, i64 %l
  %h2 = select i1 %less, i64 %h, i64 %m
  br label %test
found:
  ret i64 %l
}}
"""
