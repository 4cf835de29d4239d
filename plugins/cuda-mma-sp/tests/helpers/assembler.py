"""The assembler of PTX, if there is one."""

import shutil
import subprocess
from pathlib import Path

import pytest


def ptxas():
    """The assembler of the PyPI toolchain, or of a toolkit of this machine."""
    try:
        import nvidia
    except ImportError:
        return shutil.which("ptxas")
    paths = (path for root in nvidia.__path__ for path in Path(root).rglob("bin/ptxas"))
    return next(map(str, paths), shutil.which("ptxas"))


def assembled(text, architecture, folder):
    """What the assembler says of a text; the test is skipped without an assembler for the architecture."""
    program = ptxas()
    if program is None:
        pytest.skip("there is no ptxas: install nvidia-cuda-nvcc")
    source = folder / "kernel.ptx"
    source.write_text(text)
    command = [
        program,
        "-arch",
        architecture,
        "-v",
        "-o",
        str(folder / "kernel.cubin"),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "is not defined for option 'gpu-name'" in done.stderr:
        pytest.skip(f"this ptxas has no {architecture}")
    assert done.returncode == 0, done.stderr
    return done.stderr
