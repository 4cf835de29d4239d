"""Forks before and after the first parallel call and during calls and compilation; process pools of every
kind.
"""

from __future__ import annotations

import multiprocessing

import pytest
from child_processes import needs_fork, run

pytestmark = pytest.mark.unserialized

FORKS = """
import random, sys, time
import race_setup
from race_setup import *

gs.set_num_threads(2)
BEFORE
# Other threads hold locks at a fork by chance.
for _ in range(2 if threading.active_count() > 1 else 1):
    time.sleep(0.03 * random.random())
    assert forked(call) == 0
    assert forked(compile_new) == 0
call()
compile_new()
"""

BEFORE = {
    "the first fork": "",
    "after a call": "call()",
    "after a call in one thread": "gs.set_num_threads(1); call(); gs.set_num_threads(2)",
    "during first imports": "start(call, compile_new)",
    "during calls": "start(call_for_ever, call_for_ever)",
    "during compiling": "start(compile_for_ever, compile_for_ever)",
    "while another library uses LLVM": "compile_new(); start(use_llvm_for_ever)",
    "during both": "call(); start(call_for_ever, compile_for_ever)",
    "in a child": "assert forked(lambda: [call(), forked(call)]) == 0",
}


@needs_fork
@pytest.mark.parametrize("before", BEFORE)
def test_children_compute_and_compile(before, tmp_path):
    run(FORKS.replace("BEFORE", BEFORE[before]), tmp_path=tmp_path)


@needs_fork
@pytest.mark.parametrize("runtime", ["gomp", "pthread", "none"])
def test_children_of_other_ways_to_run_in_parallel(runtime, tmp_path):
    source = FORKS.replace("BEFORE", "call(); start(call_for_ever, call)")
    run(source, tmp_path=tmp_path, GOSSAMER_PARALLEL=runtime)


STATISTICS = """
import numpy as np
from race_setup import *
from gossamer_formats import from_arrays

indptr = np.zeros(30_000_001, np.int32)
tensor = from_arrays("csr", (30_000_000, 1), indptr=indptr, indices=indptr[:0], data=np.ones(0))
small = from_arrays("csr", (1, 1), indptr=indptr[:2], indices=indptr[:0], data=np.ones(0))
thread = threading.Thread(target=lambda: tensor.stats)
thread.start()
assert forked(lambda: small.stats) == 0
thread.join()
"""


@needs_fork
def test_what_a_tensor_remembers_needs_no_lock(tmp_path):
    run(STATISTICS, tmp_path=tmp_path)


POOLS = """
import multiprocessing
from race_setup import *

if __name__ == "__main__":
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork with threads
    CALL
    with multiprocessing.get_context("METHOD").Pool(2) as pool:
        assert pool.map(work, range(4)) == [0, 1, 2, 3]
    call()
"""


@pytest.mark.parametrize("before", ["pass", "call()"])
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_pools_of_processes(method, before, tmp_path):
    run(POOLS.replace("CALL", before).replace("METHOD", method), tmp_path=tmp_path)
