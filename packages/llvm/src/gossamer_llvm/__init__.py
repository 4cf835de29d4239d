"""Flat gossamer IR to textual LLVM IR."""

from gossamer_llvm.abi import INSERTED_LANES, Abi
from gossamer_llvm.module import emit, guarded_buffers

__all__ = [
    "Abi",
    "INSERTED_LANES",
    "emit",
    "guarded_buffers",
]
