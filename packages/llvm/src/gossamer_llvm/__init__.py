"""Flat gossamer IR to textual LLVM IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_llvm.capabilities import EMITTED_CAPABILITIES
    from gossamer_llvm.emit_module import bounds_checked_buffers, emit_llvm_ir
    from gossamer_llvm.emitter.function_emitter import TargetLowering
    from gossamer_llvm.target_info import INSERTED_LANES, TargetInfo
    from gossamer_llvm.targets.avx512.lowering import avx512_lowering
    from gossamer_llvm.targets.nvptx.lowering import nvptx_lowering
    from gossamer_llvm.targets.nvptx.shared_memory import (
        SHARED_ALIGNMENT,
        is_dynamic_shared,
        shared_memory_of,
        shared_symbol,
    )
    from gossamer_llvm.targets.nvptx.threads import block_shape
    from gossamer_llvm.targets.nvptx.warp_instructions import (
        FieldLoad,
        WarpgroupProduct,
        WarpgroupWait,
        WarpLoad,
        WarpProduct,
        warp_instruction_of,
        warp_loop,
    )
    from gossamer_llvm.targets.nvptx.warpgroup_assembly import (
        PROXY_FENCE,
        WarpgroupOperands,
        warpgroup_assembly,
    )
    from gossamer_llvm.targets.sme.lowering import sme_lowering

_HOMES = {
    "EMITTED_CAPABILITIES": "gossamer_llvm.capabilities",
    "FieldLoad": "gossamer_llvm.targets.nvptx.warp_instructions",
    "INSERTED_LANES": "gossamer_llvm.target_info",
    "PROXY_FENCE": "gossamer_llvm.targets.nvptx.warpgroup_assembly",
    "SHARED_ALIGNMENT": "gossamer_llvm.targets.nvptx.shared_memory",
    "TargetInfo": "gossamer_llvm.target_info",
    "TargetLowering": "gossamer_llvm.emitter.function_emitter",
    "WarpLoad": "gossamer_llvm.targets.nvptx.warp_instructions",
    "WarpProduct": "gossamer_llvm.targets.nvptx.warp_instructions",
    "WarpgroupOperands": "gossamer_llvm.targets.nvptx.warpgroup_assembly",
    "WarpgroupProduct": "gossamer_llvm.targets.nvptx.warp_instructions",
    "WarpgroupWait": "gossamer_llvm.targets.nvptx.warp_instructions",
    "avx512_lowering": "gossamer_llvm.targets.avx512.lowering",
    "block_shape": "gossamer_llvm.targets.nvptx.threads",
    "bounds_checked_buffers": "gossamer_llvm.emit_module",
    "emit_llvm_ir": "gossamer_llvm.emit_module",
    "is_dynamic_shared": "gossamer_llvm.targets.nvptx.shared_memory",
    "nvptx_lowering": "gossamer_llvm.targets.nvptx.lowering",
    "shared_memory_of": "gossamer_llvm.targets.nvptx.shared_memory",
    "shared_symbol": "gossamer_llvm.targets.nvptx.shared_memory",
    "sme_lowering": "gossamer_llvm.targets.sme.lowering",
    "warp_instruction_of": "gossamer_llvm.targets.nvptx.warp_instructions",
    "warp_loop": "gossamer_llvm.targets.nvptx.warp_instructions",
    "warpgroup_assembly": "gossamer_llvm.targets.nvptx.warpgroup_assembly",
}

__all__ = [
    "EMITTED_CAPABILITIES",
    "FieldLoad",
    "INSERTED_LANES",
    "PROXY_FENCE",
    "SHARED_ALIGNMENT",
    "TargetInfo",
    "TargetLowering",
    "WarpLoad",
    "WarpProduct",
    "WarpgroupOperands",
    "WarpgroupProduct",
    "WarpgroupWait",
    "avx512_lowering",
    "block_shape",
    "bounds_checked_buffers",
    "emit_llvm_ir",
    "is_dynamic_shared",
    "nvptx_lowering",
    "shared_memory_of",
    "shared_symbol",
    "sme_lowering",
    "warp_instruction_of",
    "warp_loop",
    "warpgroup_assembly",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
