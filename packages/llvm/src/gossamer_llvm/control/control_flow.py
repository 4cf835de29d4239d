"""Let, If, For, While and Guard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from gossamer_ir.analysis.statements.atomic_accumulation import is_atomic
from gossamer_ir.core.statement_kinds import CALLING_STMTS, LOOPS
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.kernel_abi import INTERRUPTED, OUT_OF_BOUNDS
from gossamer_ir.nodes import Expr, For, Guard, If, Let, Load, While
from gossamer_ir.traversal.walk import collect, contains
from gossamer_llvm.abi import workspace_address
from gossamer_llvm.control.masked_loops import emit_masked_loop, loop_mask
from gossamer_llvm.control.portions import (
    allocate_portions,
    begin_portions,
    is_interruptible,
    next_portion,
    poll_interruption,
    portion_count,
)
from gossamer_llvm.control.position_loops import emit_group_loop, group_loop
from gossamer_llvm.control.unsigned_bounds import with_unsigned_bounds
from gossamer_llvm.emitter.folding import add, literal_value
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value

UNROLL = "unroll"
"""The annotation of a loop with the number of times that LLVM is to unroll it."""


class _Iterations(msgspec.Struct, frozen=True):
    """The iterations of a serial loop, at least one: the first one and the end, whether counting to the end
    may wrap around, the block before them, and the block after them."""

    start: Value
    end: Value
    wraps: bool
    before: str
    outside: str


_EmitIterations: TypeAlias = Callable[[FunctionEmitter, For, _Iterations], None]


def emit_let(emitter: FunctionEmitter, node: Let) -> None:
    """Emit a let. Names are unique in a function, so the binding is never removed."""
    emitter.vars.bind(
        node.var.name, emitter.expr(node.value), depth=emitter.vars.depth_of(node.value)
    )
    if collect(Load, node.value):
        emitter.vars.loaded.add(node.var.name)
    if emitter.vars.depends_on_memory(node.value):
        emitter.vars.dependent.add(node.var.name)


def emit_if(emitter: FunctionEmitter, node: If) -> None:
    """Emit an `If`, with blocks for its branches."""
    condition = _emit_condition(emitter, node.condition)
    builder = emitter.builder
    on_true, join = builder.new_block(), builder.new_block()
    on_false = builder.new_block() if node.else_body else join
    builder.branch(condition.text, on_true, on_false)
    builder.begin(on_true)
    emitter.body(node.then_body)
    builder.jump(join)
    if node.else_body:
        builder.begin(on_false)
        emitter.body(node.else_body)
        builder.jump(join)
    builder.begin(join)


def emit_for(emitter: FunctionEmitter, node: For) -> None:
    """Emit a serial loop. An outermost loop of the entry can be interrupted between portions of its
    iterations."""
    _require_serial(node)
    if _is_interrupted_in_portions(emitter, node):
        _emit_rotated(emitter, node, _emit_portions)
    elif (mask := loop_mask(emitter, node)) is not None:
        emit_masked_loop(emitter, node, mask, suffix=_loop_metadata(emitter, node))
    elif (groups := group_loop(emitter, node)) is not None:
        emit_group_loop(emitter, node, groups, suffix=_loop_metadata(emitter, node))
    else:
        _emit_rotated(emitter, node, _emit_iterations)


def _require_serial(node: For) -> None:
    """Raise `UnsupportedError` for a loop that an earlier pass must have lowered."""
    if node.kind != "serial":
        raise UnsupportedError(
            f"llvm.for.{node.kind}", f"A loop of kind '{node.kind}' cannot be lowered to LLVM."
        )
    if is_atomic(node):
        raise UnsupportedError(
            "llvm.for.atomic",
            f"Iterations of the loop '{node.var}' share elements, so it cannot be lowered to LLVM.",
            hint="Apply lower_atomics.",
        )


def _emit_rotated(emitter: FunctionEmitter, node: For, emit: _EmitIterations) -> None:
    """Emit a loop in rotated form: the test is at the bottom, so that no pass has to rotate it. It compares
    for equality with the end, so it terminates even if start + extent wraps."""
    start, extent = emitter.expr(node.start), emitter.expr(node.extent)
    count = literal_value(extent)
    # The rotated form runs the body once before its test.
    if count is not None and count <= 0:
        return
    end = add(emitter, start, extent)
    builder = emitter.builder
    inside, outside, before = builder.new_block(), builder.new_block(), builder.block
    # The entry test of the rotated loop.
    some = "true" if count is not None else builder.value(f"icmp sgt {extent.typed}, 0")
    builder.enter_loop()
    builder.branch(some, inside, outside)
    builder.begin(inside)
    # From 0 to a positive extent nothing can wrap; another start plus extent may.
    wraps = literal_value(start) != 0
    emit(emitter, node, _Iterations(start, end, wraps, before, outside))
    builder.leave_loop()
    builder.begin(outside)


def emit_while(emitter: FunctionEmitter, node: While) -> None:
    """Emit a while loop; its condition is evaluated before each iteration."""
    builder = emitter.builder
    test, inside, outside = builder.new_block(), builder.new_block(), builder.new_block()
    builder.enter_loop()
    builder.fall_into(test)
    builder.branch(emitter.expr(node.condition).text, inside, outside)
    builder.begin(inside)
    emitter.body(node.body)
    builder.line(f"br label %{test}{_loop_metadata(emitter, None)}")
    builder.leave_loop()
    builder.begin(outside)


def emit_guard(emitter: FunctionEmitter, node: Guard) -> None:
    """Emit a guard: if its condition fails, the function stores the number of the buffer in the workspace
    and returns. The store is atomic because several threads may fail."""
    condition = _emit_condition(emitter, node.condition)
    builder = emitter.builder
    bad, good = builder.new_block(), builder.new_block()
    # A failed check ends the kernel, so its block is laid out away from the loop.
    weights = emitter.module.new_metadata('!{!"branch_weights", i32 100000, i32 1}')
    builder.branch(condition.text, good, bad, suffix=f", !prof {weights}")
    builder.begin(bad)
    number = emitter.module.bounds_checked_buffers.index(node.buffer)
    field = builder.value(workspace_address(emitter.workspace, "failed_buffer"))
    builder.line(f"store atomic i64 {number}, ptr {field} monotonic, align 8")
    emitter.fail(str(OUT_OF_BOUNDS))
    builder.begin(good)


def _emit_condition(emitter: FunctionEmitter, condition: Expr) -> Value:
    buffers = [address.buffer for address in emitter.buffers.values()]
    return emitter.expr(with_unsigned_bounds(condition, buffers))


def _is_interrupted_in_portions(emitter: FunctionEmitter, node: For) -> bool:
    """Return whether a loop is outermost and may take long, and nothing inside it polls."""
    if (
        not emitter.info.is_entry
        or emitter.builder.is_in_loop
        or emitter.module.target_info.is_device
    ):
        return False
    # The function that answers is one of the library.
    if emitter.form.library_error is not None:
        return False
    # Without a loop inside, a second is about 10^9 iterations;
    # that is too rare to pay for the code of portions.
    return contains(LOOPS, *node.body) and not contains(CALLING_STMTS, *node.body)


def _emit_portions(emitter: FunctionEmitter, node: For, iterations: _Iterations) -> None:
    """Emit a loop over portions of the iterations, which polls before each of them."""
    builder, workspace = emitter.builder, emitter.workspace
    portions = allocate_portions(emitter)
    poll, run, interrupted, after = (builder.new_block() for _ in range(4))
    may_stop = is_interruptible(emitter, workspace)
    count, end = portion_count(emitter, may_stop), iterations.end
    begin_portions(emitter, portions, iterations.start, end, count)
    builder.branch(may_stop, poll, run)
    builder.begin(interrupted)
    emitter.fail(str(INTERRUPTED))
    builder.begin(poll)
    poll_interruption(emitter, portions, workspace, interrupted)
    builder.fall_into(run)
    first, last = next_portion(emitter, portions, end)
    builder.enter_loop()
    before, inside = builder.block, builder.new_block()
    builder.fall_into(inside)
    _emit_iterations(emitter, node, _Iterations(first, last, iterations.wraps, before, after))
    builder.leave_loop()
    builder.begin(after)
    builder.branch(builder.value(f"icmp eq {last.typed}, {end.text}"), iterations.outside, poll)


def _emit_iterations(emitter: FunctionEmitter, node: For, iterations: _Iterations) -> None:
    builder, inside = emitter.builder, emitter.builder.block
    latch, following = builder.new_block(), builder.forward()
    start = f"[ {iterations.start.text}, %{iterations.before} ]"
    var = builder.value(f"phi i64 {start}, [ {following}, %{latch} ]")
    emitter.vars.bind(node.var, Value(var, "int64"), depth=builder.loop_depth)
    emitter.body(node.body)
    builder.fall_into(latch)
    flags = "" if iterations.wraps else " nuw nsw"
    builder.define(following, f"add{flags} i64 {var}, 1")
    done = builder.value(f"icmp eq i64 {following}, {iterations.end.text}")
    builder.branch(done, iterations.outside, inside, suffix=_loop_metadata(emitter, node))


def _loop_metadata(emitter: FunctionEmitter, node: For | None) -> str:
    module = emitter.module
    wanted = dict(node.annotations).get(UNROLL) if node is not None else None
    if isinstance(wanted, int) and not isinstance(wanted, bool) and wanted > 1:
        unroll = module.new_metadata(f'!{{!"llvm.loop.unroll.count", i32 {wanted}}}')
    else:
        # The schedule decides about unrolling, not LLVM's heuristics.
        unroll = module.new_metadata('!{!"llvm.loop.unroll.disable"}')
    properties = [unroll]
    if module.target_info.loop_alignment:
        aligned = f'!{{!"llvm.loop.align", i32 {module.target_info.loop_alignment}}}'
        properties.append(module.new_metadata(aligned))
    # A distinct node refers to itself, or LLVM would merge the metadata of different loops.
    reference = f"!{len(module.metadata)}"
    module.new_metadata(f"distinct !{{{', '.join((reference, *properties))}}}")
    return f", !llvm.loop {reference}"
