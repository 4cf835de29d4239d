"""Loops that are bound to the threads of a grid, and barriers of the threads of a block."""

from __future__ import annotations

from math import prod

from gossamer_ir.core.build import integer_value
from gossamer_ir.core.limits import MAX_BLOCK_THREADS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Barrier, For, Function, ThreadTag
from gossamer_ir.traversal.walk import stmts
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.targets.nvptx.kernel_state import KernelState
from gossamer_llvm.targets.nvptx.warpgroup_assembly import PROXY_FENCE
from gossamer_support.typed_calls import typed

_REGISTERS = {"blockIdx": "ctaid", "threadIdx": "tid"}


def emit_thread_loop(emitter: FunctionEmitter, node: For) -> bool:
    """Emit the body of a loop for the iteration of this thread: a launch has one thread for each iteration.
    Return False, without emitting anything, for a loop that is not bound to threads."""
    if node.thread is None:
        return False
    number = _special_register(emitter, node.thread)
    emitter.vars.bind(
        node.var,
        Value(emitter.builder.value(f"zext i32 {number} to i64"), "int64"),
        depth=emitter.builder.loop_depth,
    )
    emitter.body(node.body)
    return True


def emit_barrier(emitter: FunctionEmitter, _node: Barrier) -> bool:
    """Emit a barrier for all threads of the block."""
    if emitter.state(KernelState).has_warpgroups:
        emitter.builder.line(PROXY_FENCE)
    emitter.call_void("llvm.nvvm.barrier.cta.sync.aligned.all", "i32 0")
    return True


def _special_register(emitter: FunctionEmitter, thread: ThreadTag) -> str:
    axis, _, dimension = thread.partition(".")
    register = f"llvm.nvvm.read.ptx.sreg.{_REGISTERS[axis]}.{dimension}"
    emitter.module.declare("i32", register, "")
    return emitter.builder.value(f"call i32 @{register}()")


def thread_number(emitter: FunctionEmitter) -> str:
    """Emit the number of this thread in its block, counted along x, y and z, as an i32."""
    builder = emitter.builder
    x, y, z = emitter.state(KernelState).block
    number = _special_register(emitter, "threadIdx.x")
    if y > 1:
        row = builder.value(f"mul i32 {_special_register(emitter, 'threadIdx.y')}, {x}")
        number = builder.value(f"add i32 {number}, {row}")
    if z > 1:
        plane = builder.value(f"mul i32 {_special_register(emitter, 'threadIdx.z')}, {x * y}")
        number = builder.value(f"add i32 {number}, {plane}")
    return number


@typed
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
