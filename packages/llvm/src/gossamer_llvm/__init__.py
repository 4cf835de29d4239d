"""Flat gossamer IR to textual LLVM IR."""
