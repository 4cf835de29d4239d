"""The gossamer backends for scalable vectors: `llvm-sve` for Arm (SVE and SME), `llvm-rvv` for RISC-V.

The distribution is named for the first one; both share all code.
"""
