"""Calls of kernels in a recording."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_formats.conversion.kernels.kernel_call import KernelArguments, kernel_call
from gossamer_formats.conversion.recording.recorder import Recorder
from gossamer_ir.nodes import Stmt


def run_kernel(recorder: Recorder, body: Sequence[Stmt], arguments: KernelArguments) -> None:
    """Run a kernel, whose arguments may be values of a recording.

    The arrays are those of a checked storage, or were made for the kernels of the conversion.
    """
    kernel, passed = kernel_call(recorder.compile, body, arguments)
    recorder.compute(kernel.run_trusted, *passed)
