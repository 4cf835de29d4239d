"""Flat gossamer IR to textual LLVM IR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_ir.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_llvm.abi import INSERTED_LANES, Abi
    from gossamer_llvm.capabilities import EMITTED_CAPABILITIES
    from gossamer_llvm.control.threads import block_shape
    from gossamer_llvm.fragments.matrix_instructions import (
        MATRIX_INSTRUCTION,
        OPERAND_REGISTERS,
        OPERAND_TYPE,
        SELECTOR,
    )
    from gossamer_llvm.memory.matrix_loads import MATRIX_LOAD
    from gossamer_llvm.module import emit, guarded_buffers

_HOMES = {
    "Abi": "gossamer_llvm.abi",
    "EMITTED_CAPABILITIES": "gossamer_llvm.capabilities",
    "INSERTED_LANES": "gossamer_llvm.abi",
    "MATRIX_INSTRUCTION": "gossamer_llvm.fragments.matrix_instructions",
    "MATRIX_LOAD": "gossamer_llvm.memory.matrix_loads",
    "OPERAND_REGISTERS": "gossamer_llvm.fragments.matrix_instructions",
    "OPERAND_TYPE": "gossamer_llvm.fragments.matrix_instructions",
    "SELECTOR": "gossamer_llvm.fragments.matrix_instructions",
    "block_shape": "gossamer_llvm.control.threads",
    "emit": "gossamer_llvm.module",
    "guarded_buffers": "gossamer_llvm.module",
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
    "block_shape",
    "emit",
    "guarded_buffers",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
