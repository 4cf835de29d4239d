"""Launches, and calls between the functions of a module."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Expr, Launch
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value


def emit_launch(emitter: FunctionEmitter, node: Launch) -> None:
    """Emit a launch, which on a host is one call."""
    if node.threads:
        raise UnsupportedError(
            "llvm.launch.threads", "A grid of threads cannot be launched on a host."
        )
    if not emitter.info.is_entry or emitter.module.target_info.is_device:
        raise UnsupportedError(
            "llvm.launch.nested", "A 'Launch' outside the entry is not supported yet."
        )
    emit_checked_call(emitter, node.function, emit_arguments(emitter, node.args))


def emit_arguments(emitter: FunctionEmitter, args: tuple[Expr, ...]) -> list[Value]:
    """Return the arguments as operands."""
    return [emitter.expr(arg) for arg in args]


def emit_checked_call(emitter: FunctionEmitter, function: str, arguments: Sequence[Value]) -> None:
    """Emit a call of a function of the module, and return its status from the caller unless it is 0."""
    symbol = emitter.module.symbols[function]
    operands = ", ".join(value.typed for value in [*arguments, Value(emitter.workspace, "handle")])
    status = emitter.builder.value(f"call i64 @{symbol}({operands})")
    emitter.stop_if(emitter.builder.value(f"icmp ne i64 {status}, 0"), status)
