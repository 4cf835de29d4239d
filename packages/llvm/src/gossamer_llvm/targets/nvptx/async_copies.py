"""Asynchronous copies from global to shared memory, and the waits for them."""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_ir.nodes import AsyncCopy, CommitGroup, Load, Store, WaitGroup
from gossamer_llvm.emitter.function_emitter import FunctionEmitter
from gossamer_llvm.emitter.types import element_bytes
from gossamer_llvm.memory.addresses import emit_address

_AROUND_L1 = 16
"""The bytes of copies that bypass the cache of a multiprocessor, which others share."""


def emit_async_copy(emitter: FunctionEmitter, node: AsyncCopy) -> bool:
    """Emit a copy.

    Arrays of callers are aligned to their elements only. A copy of several elements needs more, so that its
    addresses are tested, and unaligned ones are loaded and stored.
    """
    (store,) = node.body
    assert isinstance(store, Store)
    assert isinstance(store.value, Load)
    dtype = DType.parse(store.value.dtype)
    size = dtype.lanes * element_bytes(dtype.text)
    target, source = (
        emit_address(emitter, access.buffer, access.indices, is_certain=True).pointer
        for access in (store, store.value)
    )
    if dtype.lanes == 1:
        _copy(emitter, target, source, size)
        return True
    builder = emitter.builder
    aligned, unaligned, join = builder.new_block(), builder.new_block(), builder.new_block()
    builder.branch(_is_aligned(emitter, (target, source), size), aligned, unaligned)
    builder.begin(aligned)
    _copy(emitter, target, source, size)
    builder.jump(join)
    builder.begin(unaligned)
    emitter.body(node.body)
    builder.fall_into(join)
    return True


def _is_aligned(emitter: FunctionEmitter, pointers: tuple[str, str], size: int) -> str:
    value = emitter.builder.value
    one, other = (value(f"ptrtoint ptr {pointer} to i64") for pointer in pointers)
    bits = value(f"or i64 {one}, {other}")
    return value(f"icmp eq i64 {value(f'and i64 {bits}, {size - 1}')}, 0")


def _copy(emitter: FunctionEmitter, target: str, source: str, size: int) -> None:
    value = emitter.builder.value
    shared = value(f"addrspacecast ptr {target} to ptr addrspace(3)")
    globals_ = value(f"addrspacecast ptr {source} to ptr addrspace(1)")
    cache = "cg" if size == _AROUND_L1 else "ca"
    emitter.call_void(
        f"llvm.nvvm.cp.async.{cache}.shared.global.{size}",
        f"ptr addrspace(3) {shared}, ptr addrspace(1) {globals_}",
    )


def emit_commit_group(emitter: FunctionEmitter, _node: CommitGroup) -> bool:
    """Emit the end of a group."""
    emitter.call_void("llvm.nvvm.cp.async.commit.group", "")
    return True


def emit_wait_group(emitter: FunctionEmitter, node: WaitGroup) -> bool:
    """Emit a wait."""
    emitter.call_void("llvm.nvvm.cp.async.wait.group", f"i32 {node.pending}")
    return True
