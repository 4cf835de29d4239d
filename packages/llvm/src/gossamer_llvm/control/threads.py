"""Loops that are bound to the threads of a grid."""

from __future__ import annotations

from math import prod

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.limits import MAX_BLOCK_THREADS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import For, Function, ThreadTag
from gossamer_ir.traversal.walk import stmts
from gossamer_llvm.emitter.emitters import FunctionEmitter, Value

_REGISTERS = {"blockIdx": "ctaid", "threadIdx": "tid"}


def emit_thread_loop(emitter: FunctionEmitter, node: For, thread: ThreadTag) -> None:
    """Emit the body for the iteration of this thread: a launch has one thread for each iteration."""
    axis, _, dimension = thread.partition(".")
    register = f"llvm.nvvm.read.ptx.sreg.{_REGISTERS[axis]}.{dimension}"
    emitter.module.declare("i32", register, "")
    number = emitter.builder.value(f"call i32 @{register}()")
    emitter.values[node.var] = Value(emitter.builder.value(f"zext i32 {number} to i64"), "int64")
    emitter.depths[node.var] = emitter.builder.loop_depth
    emitter.body(node.body)


def block_shape(function: Function) -> tuple[int, int, int]:
    """Return the threads of a block along x, y and z for the loops of a kernel; raise `UnsupportedError`
    (`llvm.threads`) if they are not constant, or too many.

    >>> from gossamer_ir.core.build import ZERO, index
    >>> loop = For("t", ZERO, index(64), (), kind="thread_binding", thread="threadIdx.y")
    >>> block_shape(Function("f", (), (loop,)))
    (1, 64, 1)
    """
    shape = dict.fromkeys("xyz", 1)
    for loop in stmts(function.body):
        if isinstance(loop, For) and loop.thread is not None and loop.thread[:-1] == "threadIdx.":
            shape[loop.thread[-1]] = integer_value(loop.extent) or 0
    threads = prod(shape.values())
    if not 1 <= threads <= MAX_BLOCK_THREADS:
        raise UnsupportedError(
            "llvm.threads",
            f"A block of '{function.name}' has {' * '.join(map(str, shape.values()))} threads.",
            hint=f"The product must be a constant from 1 to {MAX_BLOCK_THREADS}.",
        )
    return shape["x"], shape["y"], shape["z"]
