"""Allocates buffers: small ones of constant shape, or of the size of a scalable vector, on the stack, where
LLVM can promote them to registers, all others on the heap, at the start of a cache line. The memory is
cleared, so that no program reads an undefined value, except on the stack where loops fill it anyway."""

from __future__ import annotations

from math import prod

from gossamer_ir.arith.affine import affine_of, factor_affine
from gossamer_ir.core.build import integer_value, product
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.interchange.kernel_abi import OUT_OF_MEMORY
from gossamer_ir.nodes import Allocate, Buffer, VScale
from gossamer_llvm.emitter.folding import literal_value
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.operands import BufferAddress, Value
from gossamer_llvm.emitter.types import element_bytes, memory_type
from gossamer_llvm.target_info import LANE_COUNTS
from gossamer_machine.cache_line import LINE_BYTES

MAX_STACK_BYTES = 131072
"""The maximum size of the buffers of one function on the stack; worker threads have small stacks."""

MAX_VSCALE_ON_STACK = 16
"""The vscale for which buffers of scalable vectors are counted, that of the longest vectors of Arm SVE.
RISC-V permits longer ones, of which no processor is known."""

VECTOR_ALIGNMENT = 16
"""The alignment of scalable vectors on the stack, which is that of the stack itself."""

# The lanes of the widest vector in use, 64 bytes of int8: then a whole vector at the end stays inside.
_ALLOCATION_UNIT = 64


def emit_allocate(emitter: FunctionEmitter, node: Allocate) -> None:
    """Emit an allocation; the buffer is freed at the end of the enclosing body."""
    buffer = node.buffer
    emitter.module.require_dtype(buffer.dtype)
    if buffer.scope not in ("global", "local"):
        raise UnsupportedError(
            f"llvm.scope.{buffer.scope}",
            f"Memory of the scope '{buffer.scope}' cannot be lowered to LLVM.",
        )
    elements, vector = _reserved_elements(buffer), _scalable_vector(buffer)
    if elements is not None and _fits_stack(emitter, elements * element_bytes(buffer.dtype)):
        _allocate_on_stack(emitter, buffer, elements)
    elif vector is not None and _fits_stack(
        emitter, vector.lanes * MAX_VSCALE_ON_STACK * element_bytes(buffer.dtype)
    ):
        _allocate_scalable(emitter, buffer, vector)
    else:
        _allocate_on_heap(emitter, buffer)


def _fits_stack(emitter: FunctionEmitter, size: int) -> bool:
    """Return whether a buffer fits the stack, and count its bytes if it does."""
    # The limit is for all buffers of the function together.
    if emitter.stack_bytes + size > MAX_STACK_BYTES:
        return False
    emitter.stack_bytes += size
    return True


def _reserved_elements(buffer: Buffer) -> int | None:
    """Return the number of elements of a constant shape, rounded up so that whole vectors can be accessed at
    its end; None if the shape is not constant."""
    extents = [integer_value(extent) for extent in buffer.shape]
    constants = [max(extent, 0) for extent in extents if extent is not None]
    if len(constants) != len(extents):
        return None
    # At least one block, so that empty buffers have an address.
    return -(-max(prod(constants), 1) // _ALLOCATION_UNIT) * _ALLOCATION_UNIT


def _scalable_vector(buffer: Buffer) -> DType | None:
    """Return the scalable vector that holds a buffer of a multiple of vscale elements; None for other
    buffers, and those that are larger than a vector can be."""
    count, factors = factor_affine(affine_of(product(buffer.shape)))
    if factors != (VScale(),) or not 0 < count <= LANE_COUNTS[-1]:
        return None
    lanes = next(lanes for lanes in LANE_COUNTS if lanes >= count)
    return DType(buffer.dtype, lanes, scalable=True)


def _allocate_scalable(emitter: FunctionEmitter, buffer: Buffer, vector: DType) -> None:
    """Allocate a buffer as one scalable vector, which LLVM keeps in registers."""
    emitter.module.require_dtype(vector.text)
    type_ = memory_type(vector.text)
    address = emitter.builder.alloca(type_, align=VECTOR_ALIGNMENT)
    emitter.builder.line(f"store {type_} zeroinitializer, ptr {address}, align {VECTOR_ALIGNMENT}")
    is_private = buffer.name not in emitter.info.shared
    emitter.buffers[buffer.name] = BufferAddress(
        buffer, address, vector.lanes if is_private else 0, is_scalable=True
    )


def _allocate_on_stack(emitter: FunctionEmitter, buffer: Buffer, reserved: int) -> None:
    _require_library(emitter, buffer)
    address = emitter.builder.alloca(f"[{reserved} x {memory_type(buffer.dtype)}]", align=64)
    size = reserved * element_bytes(buffer.dtype)
    # A vector at the end may be read beyond the elements.
    is_padded = integer_value(product(buffer.shape)) != reserved
    if is_padded or buffer.name not in emitter.info.filled:
        emitter.call_void(
            "llvm.memset.p0.i64", f"ptr align 64 {address}, i8 0, i64 {size}, i1 false"
        )
    # Functions of parallel loops see the address, and may change the elements at any time.
    is_private = buffer.name not in emitter.info.shared
    emitter.buffers[buffer.name] = BufferAddress(buffer, address, reserved if is_private else 0)


def _allocate_on_heap(emitter: FunctionEmitter, buffer: Buffer) -> None:
    _require_heap(emitter, buffer)
    _require_library(emitter, buffer)
    builder = emitter.builder
    slot = builder.alloca("ptr", align=8)
    # The slot is freed on every path out of the function, also if the allocation was never reached.
    builder.at_entry(f"store ptr null, ptr {slot}, align 8")
    count = _checked_count(emitter, buffer)
    size = element_bytes(buffer.dtype)
    # As unsigned numbers, the sum does not overflow. calloc checks the product itself, and returns zeros.
    reserved = builder.value(f"add i64 {count.text}, {-(-LINE_BYTES // size)}")
    allocated = emitter.call("noalias ptr", "calloc", f"i64 {reserved}, i64 {size}")
    builder.line(f"store ptr {allocated}, ptr {slot}, align 8")
    emitter.stop_if(builder.value(f"icmp eq ptr {allocated}, null"), str(OUT_OF_MEMORY))
    emitter.heap.append(slot)
    emitter.buffers[buffer.name] = BufferAddress(buffer, _align_address(emitter, allocated))


def _require_heap(emitter: FunctionEmitter, buffer: Buffer) -> None:
    if emitter.module.target_info.is_device:
        raise UnsupportedError(
            "llvm.allocate.device",
            f"A thread of a device cannot allocate '{buffer.name}': its size is not a small constant.",
            hint=f"Give it a constant shape of at most {MAX_STACK_BYTES} bytes.",
        )


def _require_library(emitter: FunctionEmitter, buffer: Buffer) -> None:
    """Refuse a buffer that a function of the library allocates or clears, where none can be called."""
    if emitter.form.library_error is not None:
        raise emitter.form.library_error(buffer.name)


def _align_address(emitter: FunctionEmitter, address: str) -> str:
    """Return the first cache line from an address: vectors of a packed buffer must not cross lines."""
    beyond = emitter.builder.value(f"getelementptr i8, ptr {address}, i64 {LINE_BYTES - 1}")
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
    overflow = emitter.builder.value(f"extractvalue {{ i64, i1 }} {pair}, 1")
    emitter.stop_if(overflow, str(OUT_OF_MEMORY))
    return Value(emitter.builder.value(f"extractvalue {{ i64, i1 }} {pair}, 0"), "int64")
