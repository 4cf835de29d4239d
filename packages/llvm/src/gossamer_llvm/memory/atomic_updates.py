"""Atomic accumulations: one `atomicrmw` if LLVM has the operation, else a compare-and-exchange loop."""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import Atomic, AtomicOp
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import Value
from gossamer_llvm.emitter.types import element_bytes
from gossamer_llvm.memory.addresses import emit_address
from gossamer_llvm.values.half_precision import is_half
from gossamer_llvm.values.operations import emit_operation


def emit_atomic(emitter: FunctionEmitter, node: Atomic) -> None:
    """Emit an atomic accumulation. It is monotonic: it orders only the accesses of one element."""
    dtype = dtype_of(node.value)
    emitter.module.require_dtype(dtype)
    value = emitter.expr(node.value)
    pointer = emit_address(emitter, node.buffer, node.indices, is_certain=True).pointer
    operation = _atomicrmw_operation(node.op, dtype)
    if operation is None:
        _emit_exchange_loop(emitter, node.op, pointer, value)
    else:
        operands = f"ptr {pointer}, {value.typed} monotonic, align {element_bytes(dtype)}"
        emitter.builder.value(f"atomicrmw {operation} {operands}")


def _atomicrmw_operation(op: AtomicOp, dtype_name: str) -> str | None:
    """Return the operation of `atomicrmw`; None if there is none. Float `min` and `max` of LLVM ignore
    NaN, and 16-bit floats are integers here."""
    dtype = DType.parse(dtype_name)
    if dtype.is_float:
        return "fadd" if op == "add" and not is_half(dtype_name) else None
    return op if op == "add" or dtype.kind == "int" else f"u{op}"


def _emit_exchange_loop(emitter: FunctionEmitter, op: AtomicOp, pointer: str, value: Value) -> None:
    """Emit a loop that combines the old value and exchanges it, until no other thread changed it between."""
    builder, size = emitter.builder, element_bytes(value.dtype)
    word = f"i{8 * size}"
    first = builder.value(f"load atomic {word}, ptr {pointer} monotonic, align {size}")
    again, latch, done = builder.new_block(), builder.new_block(), builder.new_block()
    builder.enter_loop()
    before, current = builder.block, builder.forward()
    builder.fall_into(again)
    seen = builder.value(f"phi {word} [ {first}, %{before} ], [ {current}, %{latch} ]")
    old = Value(_as_type(emitter, seen, word, value.type), value.dtype)
    new = emit_operation(emitter, op, old, value)
    bits = _as_type(emitter, new.text, new.type, word)
    builder.fall_into(latch)
    step = f"ptr {pointer}, {word} {seen}, {word} {bits} monotonic monotonic, align {size}"
    pair = builder.value(f"cmpxchg {step}")
    builder.define(current, f"extractvalue {{ {word}, i1 }} {pair}, 0")
    builder.branch(builder.value(f"extractvalue {{ {word}, i1 }} {pair}, 1"), done, again)
    builder.leave_loop()
    builder.begin(done)


def _as_type(emitter: FunctionEmitter, operand: str, type_: str, wanted: str) -> str:
    if type_ == wanted:
        return operand
    return emitter.builder.value(f"bitcast {type_} {operand} to {wanted}")
