"""Launch, and calls between the functions of a module."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Expr, Launch
from gossamer_llvm.frame import Frame, Value


def emit_launch(frame: Frame, node: Launch) -> None:
    """On a host a launched function is called once."""
    if node.threads:
        raise UnsupportedError("llvm.launch.threads", "A grid of threads is not lowered for hosts.")
    if not frame.is_entry:
        raise UnsupportedError(
            "llvm.launch.nested", "A Launch outside the entry is not lowered yet."
        )
    emit_checked_call(frame, node.function, emit_arguments(frame, node.args))


def emit_arguments(frame: Frame, args: tuple[Expr, ...]) -> list[Value]:
    """The arguments as operands."""
    return [frame.expr(arg) for arg in args]


def emit_checked_call(frame: Frame, function: str, arguments: Sequence[Value]) -> None:
    """Calls a function of the module and returns its status where that is not 0."""
    symbol = frame.unit.symbols[function]
    operands = ", ".join(value.typed for value in [*arguments, Value(frame.workspace, "handle")])
    status = frame.text.value(f"call i64 @{symbol}({operands})")
    frame.stop_if(frame.text.value(f"icmp ne i64 {status}, 0"), status)
