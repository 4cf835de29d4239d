"""The nodes that are lowered to instructions of LLVM's target NVPTX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gossamer_ir.nodes import Allocate, AsyncCopy, Barrier, CommitGroup, For, Shuffle, WaitGroup
from gossamer_llvm.emitter.function_emitter import FunctionEmitter, LowerStmt, TargetLowering
from gossamer_llvm.targets.nvptx.async_copies import (
    emit_async_copy,
    emit_commit_group,
    emit_wait_group,
)
from gossamer_llvm.targets.nvptx.field_loads import emit_field_load
from gossamer_llvm.targets.nvptx.kernels import kernel_forms
from gossamer_llvm.targets.nvptx.matrix_instructions import emit_warp_product
from gossamer_llvm.targets.nvptx.matrix_loads import emit_warp_load
from gossamer_llvm.targets.nvptx.shared_memory import STATIC_SHARED_BYTES, shared_allocations
from gossamer_llvm.targets.nvptx.shuffles import emit_shuffle
from gossamer_llvm.targets.nvptx.threads import emit_barrier, emit_thread_loop
from gossamer_llvm.targets.nvptx.warp_instructions import (
    FieldLoad,
    WarpgroupProduct,
    WarpgroupWait,
    WarpInstruction,
    WarpLoad,
    WarpProduct,
    warp_instruction_of,
)
from gossamer_llvm.targets.nvptx.warpgroup_products import (
    emit_warpgroup_product,
    emit_warpgroup_wait,
)
from gossamer_support.typed_calls import typed

WARP_EMITTERS: dict[type[WarpInstruction], Callable[[FunctionEmitter, For, Any], None]] = {
    WarpProduct: emit_warp_product,
    WarpLoad: emit_warp_load,
    FieldLoad: emit_field_load,
    WarpgroupProduct: emit_warpgroup_product,
    WarpgroupWait: emit_warpgroup_wait,
}
"""The function that emits each instruction of a warp, for the loop that stands for it."""


@typed
def nvptx_lowering(
    *, has_async_copies: bool, max_shared_bytes: int = STATIC_SHARED_BYTES
) -> TargetLowering:
    """Return the lowering for a GPU; `has_async_copies` if it copies to shared memory while its threads go
    on (sm_80 and later). A block may have `max_shared_bytes` of shared memory; what is more than the static
    memory that all GPUs have is dynamic.

    >>> For in nvptx_lowering(has_async_copies=False).stmts
    True
    """
    copies: dict[type, LowerStmt] = {
        AsyncCopy: emit_async_copy,
        CommitGroup: emit_commit_group,
        WaitGroup: emit_wait_group,
    }
    return TargetLowering(
        stmts={
            Allocate: shared_allocations(max_shared_bytes),
            Barrier: emit_barrier,
            For: _emit_for,
            Shuffle: emit_shuffle,
            **(copies if has_async_copies else {}),
        },
        forms=kernel_forms,
    )


def _emit_for(emitter: FunctionEmitter, node: For) -> bool:
    """Emit a loop that is bound to threads, or that stands for an instruction of a warp."""
    instruction = warp_instruction_of(node)
    if instruction is None:
        return emit_thread_loop(emitter, node)
    WARP_EMITTERS[type(instruction)](emitter, node, instruction)
    return True
