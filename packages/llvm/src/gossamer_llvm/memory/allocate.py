"""Allocates buffers: small ones of constant shape on the stack, where LLVM can promote them to registers, all
others on the heap, at the start of a cache line. The memory is cleared, so that no program reads an undefined
value."""

from __future__ import annotations

from math import prod

from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.kernel_abi import OUT_OF_MEMORY
from gossamer_ir.machine.cache_line import LINE_BYTES
from gossamer_ir.nodes import Allocate, Buffer
from gossamer_llvm.emitter.emitters import BufferAddress, FunctionEmitter, Value
from gossamer_llvm.emitter.folding import literal_value
from gossamer_llvm.emitter.types import element_bytes, memory_type

MAX_STACK_BYTES = 131072
"""The maximum size of the buffers of one function on the stack; worker threads have small stacks."""

# The lanes of the widest vector in use, 64 bytes of int8: then a whole vector at the end stays inside.
_ALLOCATION_UNIT = 64


def emit_allocate(emitter: FunctionEmitter, node: Allocate) -> None:
    """Emit an allocation; the buffer is freed at the end of the enclosing body."""
    buffer = node.buffer
    emitter.unit.require_dtype(buffer.dtype)
    if buffer.scope not in ("global", "local"):
        raise UnsupportedError(
            f"llvm.scope.{buffer.scope}",
            f"Memory of the scope '{buffer.scope}' cannot be lowered to LLVM.",
        )
    elements = _reserved_elements(buffer)
    size = emitter.stack_bytes + (elements or 0) * element_bytes(buffer.dtype)
    # The limit is for all buffers of the function together.
    if elements is not None and size <= MAX_STACK_BYTES:
        emitter.stack_bytes = size
        _allocate_on_stack(emitter, buffer, elements)
    else:
        _allocate_on_heap(emitter, buffer)


def _reserved_elements(buffer: Buffer) -> int | None:
    """Return the number of elements of a constant shape, rounded up so that whole vectors can be accessed at
    its end; None if the shape is not constant."""
    extents = [integer_value(extent) for extent in buffer.shape]
    known = [max(extent, 0) for extent in extents if extent is not None]
    if len(known) != len(extents):
        return None
    # At least one block, so that empty buffers have an address.
    return -(-max(prod(known), 1) // _ALLOCATION_UNIT) * _ALLOCATION_UNIT


def _allocate_on_stack(emitter: FunctionEmitter, buffer: Buffer, reserved: int) -> None:
    address = emitter.text.alloca(f"[{reserved} x {memory_type(buffer.dtype)}]", align=64)
    size = reserved * element_bytes(buffer.dtype)
    emitter.call_void("llvm.memset.p0.i64", f"ptr align 64 {address}, i8 0, i64 {size}, i1 false")
    # Functions of parallel loops see the address, and may change the elements at any time.
    is_private = buffer.name not in emitter.shared
    emitter.buffers[buffer.name] = BufferAddress(buffer, address, reserved if is_private else 0)


def _allocate_on_heap(emitter: FunctionEmitter, buffer: Buffer) -> None:
    text = emitter.text
    slot = text.alloca("ptr", align=8)
    # The slot is freed on every path out of the function, also if the allocation was never reached.
    text.at_entry(f"store ptr null, ptr {slot}, align 8")
    count = _checked_count(emitter, buffer)
    size = element_bytes(buffer.dtype)
    # As unsigned numbers, the sum does not overflow. calloc checks the product itself, and returns zeros.
    reserved = text.value(f"add i64 {count.text}, {-(-LINE_BYTES // size)}")
    allocated = emitter.call("noalias ptr", "calloc", f"i64 {reserved}, i64 {size}")
    text.line(f"store ptr {allocated}, ptr {slot}, align 8")
    emitter.stop_if(text.value(f"icmp eq ptr {allocated}, null"), str(OUT_OF_MEMORY))
    emitter.heap.append(slot)
    emitter.buffers[buffer.name] = BufferAddress(buffer, _aligned(emitter, allocated))


def _aligned(emitter: FunctionEmitter, address: str) -> str:
    """Return the first cache line from an address: vectors of a packed buffer must not cross lines."""
    beyond = emitter.text.value(f"getelementptr i8, ptr {address}, i64 {LINE_BYTES - 1}")
    return emitter.call("ptr", "llvm.ptrmask.p0.i64", f"ptr {beyond}, i64 {-LINE_BYTES}")


def _checked_count(emitter: FunctionEmitter, buffer: Buffer) -> Value:
    """Return the number of elements, at least 1. If it overflows, the kernel stops: out of memory."""
    count = Value("1", "int64")
    for extent in buffer.shape:
        size = emitter.expr(extent)
        # A negative extent is an empty dimension. Two of them would have a positive product.
        positive = emitter.call("i64", "llvm.smax.i64", f"{size.typed}, i64 0")
        if literal_value(count) == 1:
            count = Value(positive, "int64")
            continue
        count = _checked_product(emitter, count, positive)
    return Value(emitter.call("i64", "llvm.smax.i64", f"{count.typed}, i64 1"), "int64")


def _checked_product(emitter: FunctionEmitter, count: Value, size: str) -> Value:
    pair = emitter.call("{ i64, i1 }", "llvm.smul.with.overflow.i64", f"{count.typed}, i64 {size}")
    overflow = emitter.text.value(f"extractvalue {{ i64, i1 }} {pair}, 1")
    emitter.stop_if(overflow, str(OUT_OF_MEMORY))
    return Value(emitter.text.value(f"extractvalue {{ i64, i1 }} {pair}, 0"), "int64")
