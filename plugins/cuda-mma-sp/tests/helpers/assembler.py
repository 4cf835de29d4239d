"""The assembler of PTX, if there is one."""

import subprocess

import pytest
from cuda_toolchain import toolchain_program


def assembled(text, architecture, folder, *options):
    """Return the output of the assembler for a text; skip the test without one for the architecture."""
    program = toolchain_program("ptxas")
    if program is None:
        pytest.skip("there is no ptxas: install nvidia-cuda-nvcc")
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [
        program,
        "-arch",
        architecture,
        "-v",
        *options,
        "-o",
        str(folder / "kernel.cubin"),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "is not defined for option 'gpu-name'" in done.stderr:
        pytest.skip(f"this ptxas has no {architecture}")
    assert done.returncode == 0, done.stderr
    return done.stderr
