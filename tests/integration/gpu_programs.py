"""Programs for GPUs without one: the interpreter of PTX runs them, and the assembler takes their PTX."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from gossamer.compilation.pipeline import stage_texts

INTERPRETED = "cuda-mma-sp:driver=interpreter"
ARCHITECTURES = ("sm_80", "sm_90")


def ptx_of(module, *, target="cuda-mma-sp"):
    """The PTX of a program with the default schedule, or of a scheduled one."""
    return stage_texts(module, target=target)["asm"]


def require_assembled(module, architecture, folder):
    """Assemble the PTX of a program; the test is skipped without an assembler."""
    program = shutil.which("ptxas")
    if program is None:
        pytest.skip("there is no ptxas")
    source = folder / "kernels.ptx"
    source.write_text(ptx_of(module, target=f"cuda-mma-sp:arch={architecture}"))
    command = [program, "-arch", architecture, "-v", "-o", str(folder / "cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "spill" not in done.stderr or " 0 bytes spill stores" in done.stderr
