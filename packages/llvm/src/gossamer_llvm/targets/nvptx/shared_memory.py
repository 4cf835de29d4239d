"""Buffers in the shared memory of a block: parts of one array of each kernel.

The array is static up to the size that all GPUs have. A larger one is dynamic: the launch says how large it
is, and the name of the array ends with this number.

The memory is not cleared: an element has to be written before it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import msgspec

from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Allocate, Buffer, For, Function
from gossamer_ir.traversal.buffer_definitions import allocations
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_ir.traversal.walk import stmts
from gossamer_llvm.emitter.function_emitter import FunctionEmitter, LowerStmt
from gossamer_llvm.emitter.operands import BufferAddress
from gossamer_llvm.emitter.types import element_bytes
from gossamer_llvm.targets.nvptx.kernel_state import KernelState
from gossamer_llvm.targets.nvptx.warp_instructions import WarpgroupProduct, warp_instruction_of
from gossamer_support.typed_calls import typed

STATIC_SHARED_BYTES = 49152
"""The largest static shared memory of a block, on all architectures."""

SHARED_ALIGNMENT = 16
"""The bytes of which the address of a buffer in shared memory is a multiple."""
TILE_ALIGNMENT = 1024
"""The same where products of warpgroups read the memory: eight rows of 128 bytes."""


class SharedMemory(msgspec.Struct, frozen=True):
    """The shared memory of a kernel: the offset of each buffer, and the size of all, in bytes."""

    offsets: Mapping[str, int]
    size: int


def shared_allocations(max_bytes: int) -> LowerStmt:
    """Return the lowering of allocations for GPUs whose blocks have so many bytes of shared memory."""

    def allocate_shared(emitter: FunctionEmitter, node: Allocate) -> bool:
        if node.buffer.scope != "shared":
            return False
        _allocate(emitter, node.buffer, max_bytes)
        return True

    return allocate_shared


def _allocate(emitter: FunctionEmitter, buffer: Buffer, max_bytes: int) -> None:
    kernel = emitter.state(KernelState)
    emitter.module.require_dtype(buffer.dtype)
    alignment = _alignment(has_warpgroups=kernel.has_warpgroups)
    size, offset = _buffer_size(buffer), _align_up(kernel.shared_bytes, alignment)
    if size is None or offset + size > max_bytes:
        raise UnsupportedError(
            "llvm.shared",
            f"The shared memory of a kernel with '{buffer.name}' exceeds {max_bytes} bytes, or "
            "has no constant size.",
            hint="Give its buffers smaller constant shapes.",
        )
    kernel.shared_bytes = offset + size
    base = f"addrspacecast (ptr addrspace(3) @{_symbol(emitter)} to ptr)"
    address = f"getelementptr (i8, ptr {base}, i64 {offset})"
    emitter.buffers[buffer.name] = BufferAddress(buffer, address)


def define_shared(emitter: FunctionEmitter) -> None:
    """Define the array of a kernel whose buffers have been allocated, if it has any."""
    kernel = emitter.state(KernelState)
    size = kernel.shared_bytes
    if not size:
        return
    alignment = _alignment(has_warpgroups=kernel.has_warpgroups)
    array = f"internal addrspace(3) global [{size} x i8] undef"
    if is_dynamic_shared(size):
        array = "external addrspace(3) global [0 x i8]"
    emitter.module.definitions.append(f"@{_symbol(emitter)} = {array}, align {alignment}\n")


def _symbol(emitter: FunctionEmitter) -> str:
    size = emitter.state(KernelState).total_shared_bytes
    return shared_symbol(str(emitter.info.symbol), size)


@typed
def shared_symbol(kernel_symbol: str, size: int) -> str:
    """Return the symbol of the shared memory of a kernel; that of a dynamic one ends with its size.

    >>> shared_symbol("kernel", 1024), shared_symbol("kernel", 65536)
    ('kernel_shared', 'kernel_shared_65536')
    """
    return f"{kernel_symbol}_shared" + (f"_{size}" if is_dynamic_shared(size) else "")


@typed
def is_dynamic_shared(size: int) -> bool:
    """Return whether a launch has to ask for shared memory of this size, in bytes.

    >>> is_dynamic_shared(49152), is_dynamic_shared(49153)
    (False, True)
    """
    return size > STATIC_SHARED_BYTES


@typed
def shared_memory_of(function: Function) -> SharedMemory:
    """Return the shared memory of the buffers of a kernel that have a constant size.

    >>> from gossamer_ir.core.build import index
    >>> buffers = (Buffer(name, (index(5),), "float32", scope="shared") for name in "ST")
    >>> shared_memory_of(Function("f", (), tuple(Allocate(buffer) for buffer in buffers)))
    SharedMemory(offsets={'S': 0, 'T': 32}, size=52)
    """
    offsets, total = dict[str, int](), 0
    instructions = map(warp_instruction_of, nodes_of_type(function, For))
    has_warpgroups = any(isinstance(executed, WarpgroupProduct) for executed in instructions)
    alignment = _alignment(has_warpgroups=has_warpgroups)
    for buffer in allocations(stmts(function.body)):
        size = _buffer_size(buffer) if buffer.scope == "shared" else None
        if size is not None:
            offsets[buffer.name] = _align_up(total, alignment)
            total = offsets[buffer.name] + size
    return SharedMemory(offsets, total)


def _buffer_size(buffer: Buffer) -> int | None:
    """Return the bytes of a buffer; None if they are not constant."""
    extents = [integer_value(extent) for extent in buffer.shape]
    constants = [max(extent, 0) for extent in extents if extent is not None]
    if len(constants) < len(extents):
        return None
    return prod(constants) * element_bytes(buffer.dtype)


def _alignment(*, has_warpgroups: bool) -> int:
    return TILE_ALIGNMENT if has_warpgroups else SHARED_ALIGNMENT


def _align_up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
