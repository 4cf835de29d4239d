"""A value that is one of two, of which only the chosen one is computed."""

from __future__ import annotations

from collections.abc import Callable

from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value


def emit_lazy_choice(
    emitter: FunctionEmitter,
    condition: str,
    if_true: Callable[[], Value],
    if_false: Callable[[], Value],
) -> Value:
    """Emit a branch on a condition to two blocks, in which functions emit the values, and return the value of
    the one that runs."""
    builder = emitter.builder
    on_true, on_false, join = builder.new_block(), builder.new_block(), builder.new_block()
    builder.branch(condition, on_true, on_false)
    sides = [
        _emit_side(emitter, if_true, on_true, join),
        _emit_side(emitter, if_false, on_false, join),
    ]
    builder.begin(join)
    incoming = ", ".join(f"[ {value.text}, %{block} ]" for value, block in sides)
    first = sides[0][0]
    return Value(builder.value(f"phi {first.type} {incoming}"), first.dtype)


def _emit_side(
    emitter: FunctionEmitter, emit_value: Callable[[], Value], block_name: str, join: str
) -> tuple[Value, str]:
    emitter.builder.begin(block_name)
    with emitter.available.scope():
        value = emit_value()
    # The value may have branches of its own: another block then leads to the join.
    end = emitter.builder.block
    emitter.builder.jump(join)
    return value, end
