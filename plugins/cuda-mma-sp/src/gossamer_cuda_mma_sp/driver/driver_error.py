"""Errors of NVIDIA's driver."""

from __future__ import annotations

OUT_OF_DEVICE_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
NO_DEVICE = "CUDA_ERROR_NO_DEVICE"

FATAL_ERRORS = {
    "CUDA_ERROR_ECC_UNCORRECTABLE": "uncorrectable ECC error encountered",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "an illegal memory access was encountered",
    "CUDA_ERROR_LAUNCH_TIMEOUT": "the launch timed out and was terminated",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED": "context is destroyed",
    "CUDA_ERROR_ASSERT": "device-side assert triggered",
    "CUDA_ERROR_HARDWARE_STACK_ERROR": "hardware stack error",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": "an illegal instruction was encountered",
    "CUDA_ERROR_MISALIGNED_ADDRESS": "misaligned address",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": "operation not supported on global/shared address space",
    "CUDA_ERROR_INVALID_PC": "invalid program counter",
    "CUDA_ERROR_LAUNCH_FAILED": "unspecified launch failure",
}
"""Errors after which every call of the context fails, with the texts of `cuGetErrorString`."""


class DriverError(Exception):
    """A function of the driver failed: the function, the name of the error, and what the driver says of it.

    >>> str(DriverError("cuMemAlloc", OUT_OF_DEVICE_MEMORY, "out of memory"))
    'cuMemAlloc failed with CUDA_ERROR_OUT_OF_MEMORY (out of memory)'
    """

    def __init__(self, function: str, name: str, text: str) -> None:
        super().__init__(f"{function} failed with {name} ({text})")
        self.function, self.name, self.text = function, name, text

    @property
    def loses_context(self) -> bool:
        """True if no later call of the context can succeed."""
        return self.name in FATAL_ERRORS
