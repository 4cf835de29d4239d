"""Flat gossamer IR to textual LLVM IR."""

from gossamer_llvm.abi import ENTRY_SYMBOL, Abi
from gossamer_llvm.module import emit, guarded_buffers

__all__ = [
    "Abi",
    "ENTRY_SYMBOL",
    "emit",
    "guarded_buffers",
]
