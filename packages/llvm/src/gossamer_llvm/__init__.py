"""Flat gossamer IR to textual LLVM IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_ir.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_llvm.abi import INSERTED_LANES, Abi
    from gossamer_llvm.capabilities import EMITTED_CAPABILITIES
    from gossamer_llvm.emitter.emitters import TargetLowering
    from gossamer_llvm.module import emit, guarded_buffers
    from gossamer_llvm.targets.avx512.lowering import avx512_lowering
    from gossamer_llvm.targets.nvptx.lowering import nvptx_lowering
    from gossamer_llvm.targets.nvptx.matrix_instructions import (
        MATRIX_INSTRUCTION,
        OPERAND_REGISTERS,
        OPERAND_TYPE,
        SELECTOR,
    )
    from gossamer_llvm.targets.nvptx.matrix_loads import MATRIX_LOAD
    from gossamer_llvm.targets.nvptx.threads import block_shape
    from gossamer_llvm.targets.sme.lowering import sme_lowering

_HOMES = {
    "Abi": "gossamer_llvm.abi",
    "EMITTED_CAPABILITIES": "gossamer_llvm.capabilities",
    "INSERTED_LANES": "gossamer_llvm.abi",
    "MATRIX_INSTRUCTION": "gossamer_llvm.targets.nvptx.matrix_instructions",
    "MATRIX_LOAD": "gossamer_llvm.targets.nvptx.matrix_loads",
    "OPERAND_REGISTERS": "gossamer_llvm.targets.nvptx.matrix_instructions",
    "OPERAND_TYPE": "gossamer_llvm.targets.nvptx.matrix_instructions",
    "SELECTOR": "gossamer_llvm.targets.nvptx.matrix_instructions",
    "TargetLowering": "gossamer_llvm.emitter.emitters",
    "avx512_lowering": "gossamer_llvm.targets.avx512.lowering",
    "block_shape": "gossamer_llvm.targets.nvptx.threads",
    "emit": "gossamer_llvm.module",
    "guarded_buffers": "gossamer_llvm.module",
    "nvptx_lowering": "gossamer_llvm.targets.nvptx.lowering",
    "sme_lowering": "gossamer_llvm.targets.sme.lowering",
}

__all__ = [
    "Abi",
    "EMITTED_CAPABILITIES",
    "INSERTED_LANES",
    "MATRIX_INSTRUCTION",
    "MATRIX_LOAD",
    "OPERAND_REGISTERS",
    "OPERAND_TYPE",
    "SELECTOR",
    "TargetLowering",
    "avx512_lowering",
    "block_shape",
    "emit",
    "guarded_buffers",
    "nvptx_lowering",
    "sme_lowering",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
