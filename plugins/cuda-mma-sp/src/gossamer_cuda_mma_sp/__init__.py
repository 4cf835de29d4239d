"""The gossamer backend for NVIDIA GPUs, which compiles to PTX on any machine.

It is named for the instruction of sparse tensor cores (`mma.sp`), and compiles all other programs, too.
"""
