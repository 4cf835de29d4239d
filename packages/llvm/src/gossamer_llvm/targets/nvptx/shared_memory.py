"""Buffers in the shared memory of a block: parts of one static array of each kernel.

The memory is not cleared: an element has to be written before it is read.
"""

from __future__ import annotations

from math import prod

from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Allocate
from gossamer_llvm.emitter.emitters import BufferAddress, FunctionEmitter
from gossamer_llvm.emitter.types import element_bytes
from gossamer_llvm.targets.nvptx.kernel_state import KernelState

MOST_SHARED_BYTES = 49152
"""The largest static shared memory of a block, on all architectures."""

_ALIGNMENT = 16


def allocate_shared(emitter: FunctionEmitter, node: Allocate) -> bool:
    """Allocate a part of the shared memory of the kernel; return False for a buffer of another scope."""
    buffer, kernel = node.buffer, emitter.state(KernelState)
    if buffer.scope != "shared":
        return False
    emitter.module.require_dtype(buffer.dtype)
    extents = [integer_value(extent) for extent in buffer.shape]
    constants = [max(extent, 0) for extent in extents if extent is not None]
    size = prod(constants) * element_bytes(buffer.dtype)
    offset = -(-kernel.shared_bytes // _ALIGNMENT) * _ALIGNMENT
    if len(constants) < len(extents) or offset + size > MOST_SHARED_BYTES:
        raise UnsupportedError(
            "llvm.shared",
            f"The shared memory of a kernel with '{buffer.name}' exceeds {MOST_SHARED_BYTES} bytes, or "
            "has no constant size.",
            hint="Give its buffers smaller constant shapes.",
        )
    kernel.shared_bytes = offset + size
    base = f"addrspacecast (ptr addrspace(3) @{_symbol(emitter)} to ptr)"
    address = f"getelementptr (i8, ptr {base}, i64 {offset})"
    emitter.buffers[buffer.name] = BufferAddress(buffer, address)
    return True


def define_shared(emitter: FunctionEmitter) -> None:
    """Define the static array of a kernel whose buffers have been allocated, if it has any."""
    size = emitter.state(KernelState).shared_bytes
    if not size:
        return
    type_ = f"[{size} x i8]"
    emitter.module.definitions.append(
        f"@{_symbol(emitter)} = internal addrspace(3) global {type_} undef, align {_ALIGNMENT}\n"
    )


def _symbol(emitter: FunctionEmitter) -> str:
    return f"{emitter.symbol}_shared"
