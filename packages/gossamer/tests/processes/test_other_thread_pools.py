"""Kernels in one process with the thread pools of Numba and PyTorch, and in forked children."""

from __future__ import annotations

import importlib.util

import pytest
from child_processes import needs_fork, run

NUMBA = """
import numba

@numba.njit(parallel=True)
def total(values):
    result = 0.0
    for at in numba.prange(values.size):
        result += values[at]
    return result

def theirs():
    assert total(np.ones(100_000)) == 100_000
"""

TORCH = """
import torch

torch.set_num_threads(2)

def theirs():
    values = torch.arange(200_000, dtype=torch.float64)
    assert float(values.sum()) == 199_999 * 100_000
    square = torch.ones(300, 300)
    assert float((square @ square).sum()) == 300.0 ** 3
"""

ALTERNATING = """
from race_setup import *
gs.set_num_threads(2)
IMPORT
for order in ((call, theirs), (theirs, call)):
    for step in order * 3:
        step()
compile_new()
theirs()
threads = [threading.Thread(target=step) for step in (call, OTHER, compile_new, call)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
call()
theirs()
"""

FORKING = """
from race_setup import *
gs.set_num_threads(2)
IMPORT
theirs()
assert forked(call) == 0
call()
assert forked(call) == 0
assert forked(compile_new) == 0
"""


def require(library):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


# Numba's own pool is not safe to use from several threads at once where it has no TBB or OpenMP.
LIBRARIES = {"numba": (NUMBA, "compile_new"), "torch": (TORCH, "theirs")}


@pytest.mark.parametrize("library", LIBRARIES)
def test_calls_alternate_and_coincide(library, tmp_path):
    require(library)
    source, other = LIBRARIES[library]
    run(ALTERNATING.replace("IMPORT", source).replace("OTHER", other), tmp_path=tmp_path)


@needs_fork
@pytest.mark.parametrize("library", LIBRARIES)
def test_children_compute_where_the_parent_used_both(library, tmp_path):
    require(library)
    run(FORKING.replace("IMPORT", LIBRARIES[library][0]), tmp_path=tmp_path)
