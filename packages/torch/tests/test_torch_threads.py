"""Kernels run on torch's threads, as many as torch uses."""

import os
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


WITHOUT_LOOK_UP = """
import os
# As on Windows.
del os.RTLD_NOLOAD
import gossamer_torch as gt, torch
A = gt.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
assert gt.spmm(A, torch.ones(2, 3)).sum() == 6
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there are no libraries to look up")
def test_the_import_does_not_depend_on_a_look_up_of_libraries():
    subprocess.run([sys.executable, "-c", WITHOUT_LOOK_UP], check=True, timeout=120)


PARENT = """
import multiprocessing, sys
import torch, gossamer_torch as gt
from gossamer_host_runtime.parallel import gomp, threads

SIZE = 4000


def operands():
    columns = torch.arange(8 * SIZE) % SIZE
    A = gt.SparseMatrix(torch.arange(0, 8 * SIZE + 1, 8), columns, shape=(SIZE, SIZE))
    return A, torch.ones(SIZE, 64)


# A forked process takes those of its parent: operators of torch with threads wait there for ever.
INHERITED = []


def work(start):
    product = gt.spmm(*(INHERITED or operands())).numpy()
    assert product.min() == product.max() == 8
    is_of_torch = threads.parallel_function() == gomp.gomp_parallel()
    # A fork server forks without exec, after which a library may be one that the parent has used.
    assert is_of_torch == (start == "spawn")


if __name__ == "__main__":
    start = sys.argv[1]
    torch.set_num_threads(2)
    INHERITED += operands()
    gt.spmm(*INHERITED)
    child = multiprocessing.get_context(start).Process(target=work, args=(start,))
    child.start()
    child.join(60)
    assert child.exitcode == 0, child.exitcode
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not is_gomp_loaded(), reason="this build of torch has no libgomp"
)
@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_kernels_run_in_processes_started_after_parallel_regions(tmp_path, start):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = {**os.environ, "GOSSAMER_PARALLEL": "", "GOSSAMER_NUM_THREADS": ""}
    command = [sys.executable, "-W", "ignore", script, start]
    subprocess.run(command, check=True, timeout=120, env=environment)
