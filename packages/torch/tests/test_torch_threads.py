"""Kernels run on torch's threads, as many as torch uses."""

import subprocess
import sys

import pytest
import torch

import gossamer as gs
from gossamer_backend import set_num_threads
from gossamer_backend.call.threads import NUM_THREADS_VARIABLE, reset_num_threads
from gossamer_host_runtime.parallel.gomp import is_gomp_loaded
from gossamer_torch.torch_threads import use_torch_threads


@pytest.fixture
def default_threads(monkeypatch):
    monkeypatch.delenv(NUM_THREADS_VARIABLE, raising=False)
    before = torch.get_num_threads()
    use_torch_threads()
    reset_num_threads()
    yield
    torch.set_num_threads(before)
    reset_num_threads()


@pytest.mark.parametrize("count", [1, 3])
def test_kernels_have_as_many_threads_as_torch(default_threads, count):
    torch.set_num_threads(count)
    assert gs.get_num_threads() == count
    set_num_threads(2)
    assert gs.get_num_threads() == 2


PROGRAM = """
import os
for name in ("GOSSAMER_PARALLEL", "GOSSAMER_NUM_THREADS"):
    os.environ.pop(name, None)
import gossamer as gs, gossamer_torch, torch
torch.set_num_threads(3)
assert gs.get_num_threads() == 3
from gossamer_host_runtime.parallel import gomp, threads
loaded = [line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line]
address = threads.parallel_function()
assert address == gomp.gomp_parallel()
inside = [line for line in open("/proc/self/maps") if "libgomp" in line]
assert {line.split()[-1] for line in inside} == set(loaded), "a second libgomp was loaded"
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not is_gomp_loaded(), reason="this build of torch has no libgomp"
)
def test_the_import_makes_kernels_run_on_the_threads_of_torchs_libgomp():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
