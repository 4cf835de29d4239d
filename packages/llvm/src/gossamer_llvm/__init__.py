"""Flat gossamer IR to textual LLVM IR."""

from gossamer_llvm.abi import ENTRY_SYMBOL, INSERTED_LANES, Abi
from gossamer_llvm.module import emit, guarded_buffers

__all__ = [
    "Abi",
    "ENTRY_SYMBOL",
    "INSERTED_LANES",
    "emit",
    "guarded_buffers",
]
