"""Many Python threads at once: calls, compilation, changed thread counts; the GIL is released during
calls.
"""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import race_setup
from scipy import sparse

import gossamer as gs
from gossamer.compilation.build_kernels import KERNELS, fact_checker
from gossamer_backend.call.threads import reset_num_threads, set_num_threads
from gossamer_formats import from_scipy


@pytest.fixture(autouse=True)
def usual_threads():
    yield
    reset_num_threads()


def together(*works):
    """Runs all functions concurrently, each in a thread; raises an exception of one of them."""
    barrier = threading.Barrier(len(works))

    def run(work):
        barrier.wait()
        work()

    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(run, work) for work in works]:
            done.result()


def change_threads():
    for count in (1, 2, 3, 8) * 10:
        set_num_threads(count)
        time.sleep(0.001)


def test_operators_kernels_and_thread_counts_from_many_threads():
    tensor = from_scipy(race_setup.matrix)
    out = [np.empty(race_setup.SIZE, np.float32) for _ in range(3)]

    def call(result):
        for _ in range(30):
            result[:] = -1
            gs.spmv(tensor, race_setup.x, out=result)
            assert np.array_equal(result, race_setup.expected)

    works = [lambda result=result: call(result) for result in out]
    together(*works, race_setup.call, race_setup.call, change_threads)


def test_the_same_new_kernel_is_compiled_once_and_others_at_the_same_time():
    script = race_setup.SCRIPT.replace("FACTOR", "23")
    kernels = []
    same = [lambda: kernels.append(gs.compile(script))] * 4
    other = [lambda factor=factor: race_setup.compile_new(factor) for factor in (31, 37, 41)]
    together(*same, *other, change_threads)
    assert len({id(kernel) for kernel in kernels}) == 1


def test_tensors_and_checks_are_made_at_the_same_time():
    def make():
        tensor = from_scipy(race_setup.matrix)
        assert np.array_equal(gs.spmm(tensor, race_setup.dense), race_setup.expected_dense)

    fact_checker.cache_clear()
    together(make, make, race_setup.call, race_setup.call)


def test_two_python_threads_make_progress_while_a_kernel_runs():
    rows, features = 20_000, 64
    matrix = sparse.random_array(
        (rows, rows), density=0.002, format="csr", dtype=np.float32, rng=np.random.default_rng(1)
    )
    out = np.empty((rows, features), np.float32)
    set_num_threads(1)
    step = gs.spmm.bind(matrix, np.ones((rows, features), np.float32), out=out)
    steps = [0, 0]
    while_running = []
    ended = threading.Event()

    def count(which):
        while not ended.is_set():
            steps[which] += 1
            time.sleep(0)

    def kernel():
        try:
            for _ in range(20):
                before = list(steps)
                step()
                after = list(steps)
                while_running.append([new - old for old, new in zip(before, after, strict=True)])
        finally:
            ended.set()

    together(lambda: count(0), lambda: count(1), kernel)
    # Between two looks at the counters there is nothing but the call, which holds no GIL.
    assert np.sum(while_running, axis=0).min() > 0


def owner_of(array):
    """The array that owns the memory."""
    return array if array.base is None else owner_of(array.base)


def test_a_bound_call_keeps_its_arrays_alive():
    matrix = sparse.csr_array(np.diag(np.arange(1.0, 50.0)))
    x, y = np.ones(49), np.zeros(49)
    step = gs.spmv.bind(matrix, x, out=y)
    arrays = (matrix.data, matrix.indices, matrix.indptr, x)
    watched = [weakref.ref(owner_of(array)) for array in arrays]
    del arrays
    owner = weakref.ref(matrix)
    del matrix, x
    gc.collect()
    # The next use of freed memory would change the result.
    noise = [np.full(49, -1.0) for _ in range(100)]
    step()
    assert np.array_equal(y, np.arange(1.0, 50.0))
    assert owner() is None
    assert all(array() is not None for array in watched)
    assert len(noise) == 100
    del step
    gc.collect()
    assert all(array() is None for array in watched)


def test_an_output_outlives_its_owner_while_it_is_bound():
    kernel = KERNELS.build_program(b"an output", lambda: race_module()).kernel
    y = np.ones(1000, np.float32)
    watched = weakref.ref(y)
    step = kernel.bind(x=y)
    del y
    gc.collect()
    step()
    assert watched()[-1] == 7
    del step
    gc.collect()
    assert watched() is None


def race_module():
    from gossamer.api.compile import to_module

    return to_module(race_setup.SCRIPT.replace("FACTOR", "7"))


def test_a_bound_call_keeps_its_kernel_when_every_cache_forgets_it():
    values = np.ones(10, np.float32)
    step = gs.compile(race_setup.SCRIPT.replace("FACTOR", "3")).bind(values)
    KERNELS.forget()
    gc.collect()
    step()
    assert values.tolist() == [3.0] * 10
