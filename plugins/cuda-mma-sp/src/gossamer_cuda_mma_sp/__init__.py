"""The gossamer backend for NVIDIA GPUs, which compiles to PTX on any machine."""
