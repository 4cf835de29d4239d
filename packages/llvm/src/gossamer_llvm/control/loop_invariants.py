"""The test that a value is invariant in a loop, so that code for the loop may evaluate it once."""

from __future__ import annotations

from gossamer_ir.nodes import Expr, For
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.names import bound_vars
from gossamer_llvm.emitter.function_emitter import FunctionEmitter


def is_loop_invariant(emitter: FunctionEmitter, value: Expr, loop: For) -> bool:
    """Return whether a value is the same in all iterations of a loop."""
    inside = {loop.var, *bound_vars(loop.body)}
    return free_vars(value).isdisjoint(inside) and buffers_read(value) <= emitter.info.unchanging
