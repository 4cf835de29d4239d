"""Parallel loops: coverage of the range, failures in workers, other thread runtimes, forks."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from gossamer_backend.call.threads import set_num_threads
from gossamer_host_runtime.parallel import gomp, threads
from gossamer_host_runtime.parallel.per_region import fallback_parallel
from gossamer_ir.core.build import add, handle, index, index_var, sub, widen
from gossamer_ir.errors import ArgumentError
from gossamer_ir.nodes import (
    Binary,
    Buffer,
    Compare,
    For,
    Function,
    Guard,
    Load,
    Module,
    ParallelFor,
    Param,
    Store,
)

RUNTIMES = ["pool", "gomp", "pthread", "none"]
WEIGHTS = {
    "all in the first": lambda n: [0] + [100] * n,
    "all in the last": lambda n: [0] * n + [100],
    "none": lambda n: [5] * (n + 1),
    "even": lambda n: list(range(n + 1)),
    "growing": lambda n: [i * i for i in range(n + 1)],
    "large": lambda n: [i * (2**62 // max(n, 1)) for i in range(n + 1)],
    "decreasing": lambda n: [-i for i in range(n + 1)],
}


@pytest.fixture(params=RUNTIMES)
def runtime(request, monkeypatch):
    if request.param == "gomp" and gomp.gomp_parallel() is None:
        pytest.skip("libgomp is not installed")
    monkeypatch.setenv(threads.PARALLEL_VARIABLE, request.param)
    threads.refresh()
    yield request.param
    monkeypatch.delenv(threads.PARALLEL_VARIABLE)
    threads.refresh()


def counting(*, grain=1, guarded=False, start=0):
    """OUT[i] += i + 1 for i in [start, start + n), weighted by W; a guard requires OK[i] > 0."""
    i, begin, end, n = (index_var(name) for name in ("i", "begin", "end", "n"))
    length = add(n, index(start + 1))
    out = Buffer("OUT", (length,), "int64", "out")
    weights = Buffer("W", (length,), "int64", "w")
    marks = Buffer("OK", (length,), "int32", "ok")
    handles = tuple(Param(buffer.handle, "handle") for buffer in (out, weights, marks))
    is_fine = Compare("gt", widen(Load("OK", (i,), "int32")), index(0))
    step = Store("OUT", (i,), Binary("add", Load("OUT", (i,), "int64"), add(i, index(1))))
    body = (Guard(is_fine, "OK"), step) if guarded else (step,)
    inner = Function(
        "rows",
        (Param("begin", "int64"), Param("end", "int64"), *handles, Param("n", "int64")),
        (For("i", begin, sub(end, begin), body),),
        buffers=(out, weights, marks),
    )
    call = ParallelFor(
        "rows", "i", index(start), n, (*(handle(p.name) for p in handles), n),
        Load("W", (i,), "int64"), index(grain),
    )  # fmt: skip
    entry = Function(
        "main", (*handles, Param("n", "int64")), (call,), buffers=(out, weights, marks)
    )
    return Module("flat", (entry, inner), "main")


@pytest.mark.parametrize("weight", WEIGHTS)
def test_each_iteration_runs_once(build, runtime, weight):
    kernel = build(counting())
    for count in (0, 1, 2, 3, 15, 16, 17, 1000):
        for number in (1, 2, 7, 64):
            set_num_threads(number)
            out = np.zeros(count + 1, np.int64)
            weights = np.array(WEIGHTS[weight](count), np.int64)
            kernel(out=out, w=weights, ok=np.ones(count + 1, np.int32), n=count)
            assert out.tolist() == [*range(1, count + 1), 0]


def test_range_need_not_start_at_zero(build, runtime):
    out = np.zeros(111, np.int64)
    ok = np.ones(111, np.int32)
    build(counting(start=10))(out=out, w=np.arange(111), ok=ok, n=100)
    assert out.tolist() == [0] * 10 + list(range(11, 111)) + [0]


def test_failing_guard_in_a_worker_is_reported(build, runtime):
    kernel = build(counting(guarded=True))
    for bad in (0, 400, 999):
        ok = np.ones(1001, np.int32)
        ok[bad] = 0
        out = np.zeros(1001, np.int64)
        with pytest.raises(ArgumentError) as caught:
            kernel(out=out, w=np.arange(1001), ok=ok, n=1000)
        assert caught.value.code == "kernel.out_of_bounds"
        assert "OK" in str(caught.value)
        assert out[bad] == 0
    ok[:] = 1
    out[:] = 0
    kernel(out=out, w=np.arange(1001), ok=ok, n=1000)
    assert out.tolist() == [*range(1, 1001), 0]


def test_little_work_stays_in_the_calling_thread(build):
    """If the grain exceeds the total weight, no parallel function is called."""
    set_num_threads(4)
    kernel = build(counting(grain=10**6))
    out = np.zeros(101, np.int64)
    kernel(out=out, w=np.arange(101), ok=np.ones(101, np.int32), n=100)
    assert out.tolist() == [*range(1, 101), 0]


def test_results_do_not_depend_on_the_number_of_threads(spmm, build, random_csr):
    generator = np.random.default_rng(3)
    indptr, indices, values = random_csr(300, 200, longest=60)
    values = generator.standard_normal(len(values)).astype(np.float32)
    dense = generator.standard_normal((200, 40)).astype(np.float32)
    kernel = build(spmm(40))
    results = []
    for number in (1, 2, 3, 8):
        set_num_threads(number)
        result = np.empty((300, 40), np.float32)
        kernel(indptr, indices, values, dense, result)
        results.append(result.tobytes())
    assert len(set(results)) == 1


def test_two_python_threads_call_one_kernel(spmm, build, random_csr, dense_of, runtime):
    kernel = build(spmm(16))
    csr = random_csr(200, 100)
    wrong = []

    def work(seed):
        dense = np.random.default_rng(seed).integers(-4, 5, (100, 16)).astype(np.float32)
        expected = dense_of(csr, 100) @ dense
        for _ in range(50):
            result = np.zeros((200, 16), np.float32)
            kernel(*csr, dense, result)
            if not np.array_equal(result, expected):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_threads_option_fixes_the_number(build):
    set_num_threads(1)
    kernel = build(counting(), "generic-cpu:threads=3")
    out = np.zeros(101, np.int64)
    kernel(out=out, w=np.arange(101), ok=np.ones(101, np.int32), n=100)
    assert out.tolist() == [*range(1, 101), 0]


def test_fallback_exists_where_posix_threads_do():
    assert (fallback_parallel() is not None) == (os.name == "posix")


FORK = """
import os, signal, sys, warnings
sys.path.insert(0, sys.argv[1])
import conftest, numpy as np
from gossamer_backend.call.threads import set_num_threads

set_num_threads(2)
kernel = conftest.build(conftest.spmm(16))
csr = conftest.random_csr(200, 100)
dense = np.ones((100, 16), np.float32)
expected = conftest.dense_of(csr, 100) @ dense

def is_right():
    result = np.zeros((200, 16), np.float32)
    kernel(*csr, dense, result)
    return np.array_equal(result, expected)

assert is_right()
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork with threads
    child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(0 if is_right() and is_right() else 1)
_, status = os.waitpid(child, 0)
assert is_right()
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("choice", RUNTIMES)
def test_a_forked_child_computes_after_its_parent_did(choice):
    command = [sys.executable, "-W", "error", "-c", FORK, str(Path(__file__).parents[1])]
    environment = {**os.environ, threads.PARALLEL_VARIABLE: choice}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")


SPINNING = """
import ctypes, os, subprocess, sys
from gossamer_host_runtime.parallel import gomp
if {is_loaded}:
    ctypes.CDLL("libgomp.so.1")
changes = []
sys.addaudithook(lambda event, args: changes.append(event) if event in {events!r} else None)
before = dict(os.environ)
gomp.gomp_parallel()
assert dict(os.environ) == before, "the environment is as it was"
assert ("GOMP_SPINCOUNT" in before) == (b"GOMP_SPINCOUNT" in subprocess.check_output("env"))
print(*changes)
"""


def spin_count(*, is_loaded=False, **environment):
    """The value that libgomp reports when it is loaded, and the changes of the environment."""
    events = ("os.putenv", "os.unsetenv")
    source = SPINNING.format(events=events, is_loaded=is_loaded)
    kept = {name: value for name, value in os.environ.items() if name not in gomp._WAITING}
    process = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True,
        env={**kept, "OMP_DISPLAY_ENV": "verbose", **environment},
    )  # fmt: skip
    return re.findall(r"GOMP_SPINCOUNT = '(\d+)'", process.stderr)[:1], process.stdout.split()


needs_gomp = pytest.mark.skipif(
    gomp.gomp_parallel() is None or sys.platform != "linux", reason="libgomp is not installed"
)


@needs_gomp
def test_libgomp_spins_for_a_short_time_and_the_environment_is_as_before():
    assert spin_count() == ([gomp.INITIAL_SPIN_COUNT], ["os.putenv", "os.unsetenv"])


@needs_gomp
@pytest.mark.parametrize(
    ("environment", "spins"),
    [({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "passive"}, "0")],
)
def test_how_the_user_lets_libgomp_wait_is_kept(environment, spins):
    assert spin_count(**environment) == ([spins], [])


@needs_gomp
def test_the_environment_is_not_touched_where_libgomp_is_loaded_already():
    (spins,), changes = spin_count(is_loaded=True)
    assert (spins == gomp.INITIAL_SPIN_COUNT, changes) == (False, [])
