"""Kernels in C, which cross compilers compile, on emulated machines; the folder of helpers."""

import shutil
import subprocess

import pytest
from toy_artifacts import MACHINES, artifact_of

from gossamer_emulation import emulated_kernel, reason_against_emulation

HEADER = """
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
struct gossamer_workspace { int64_t threads; void *parallel; int64_t failed_buffer; void *is_interrupted; };
"""


@pytest.fixture(params=MACHINES)
def machine(request):
    """Each architecture; skips the test where it cannot be emulated, or C not be compiled for it."""
    machine = MACHINES[request.param]
    reason = reason_against_emulation(machine.architecture)
    if reason is None and shutil.which(machine.architecture.compiler) is None:
        reason = f"{machine.architecture.compiler} is not on the path"
    if reason is not None:
        pytest.skip(reason)
    return machine


@pytest.fixture
def compiled(machine, tmp_path):
    """Compiles C to an object file and returns its path."""

    def path_of(source, *flags):
        path = tmp_path / "kernel.o"
        command = [machine.architecture.compiler, "-O2", "-fPIC", *flags, "-c", "-x", "c", "-"]
        subprocess.run([*command, "-o", str(path)], input=(HEADER + source).encode(), check=True)
        return path

    return path_of


@pytest.fixture
def load(machine, compiled):
    """Compiles C and loads the kernel."""

    def kernel(source, *flags, on=None, **options):
        code = compiled(source, *flags).read_bytes()
        return emulated_kernel(artifact_of(code, **options), on or machine)

    return kernel
