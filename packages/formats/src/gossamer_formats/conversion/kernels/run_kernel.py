"""Programs as steps of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_formats.conversion.kernels.kernel_call import ProgramArguments, program_call
from gossamer_formats.conversion.recording.recorder import Recorder
from gossamer_ir.nodes import Stmt


def run_conversion_program(
    recorder: Recorder, body: Sequence[Stmt], arguments: ProgramArguments
) -> None:
    """Run a program, whose arguments may be values of a plan.

    The arrays are those of a checked storage, or were made for the programs of the conversion.
    """
    program, passed = program_call(recorder.compile, body, arguments)
    recorder.compute(program.run_trusted, *passed)
