"""The pool of threads: many regions and callers, forks, limits of the system, busy CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from region_loops import incomplete_regions

from gossamer_host_runtime.parallel.pool import is_pool_supported, pool

pytestmark = pytest.mark.skipif(
    not is_pool_supported(), reason="this system does not support the pool"
)


def run(source, *, environment=None):
    """Run a program that may use the names of `START`; it must succeed and print nothing."""
    path = os.pathsep.join([str(Path(__file__).parents[1] / "helpers"), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START + source],
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


START = """
import ctypes, os, resource, signal, subprocess, sys, threading, time, warnings
from region_loops import incomplete_regions
from gossamer_host_runtime.parallel.pool import pool

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork with threads
parallel = pool().address

def tasks():
    return set(map(int, os.listdir("/proc/self/task")))

def regions(count, **options):
    assert incomplete_regions(parallel, count, **options) == 0

def succeeds(child):
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

regions(1, threads=1)
before = tasks()
"""


def test_a_hundred_thousand_empty_regions():
    assert incomplete_regions(pool().address, 100_000, threads=2, chunks=0) == 0


@pytest.mark.parametrize(
    ("count", "options"),
    [
        (20_000, {"threads": 2}),
        (5_000, {"threads": 2, "chunks": 16, "steps": 300}),
        (2_000, {"threads": 3, "chunks": 1}),
        (1_000, {"threads": 8, "chunks": 64, "steps": 50}),
        (100, {"threads": 64, "chunks": 100, "steps": 10}),
        (1_000, {"threads": 3, "inner": 2}),
        (1_000, {"threads": 2, "inner": 5, "chunks": 9, "steps": 50}),
        (10, {"threads": 0, "chunks": 3}),
    ],
)
def test_each_region_is_complete_when_it_ends(count, options):
    assert incomplete_regions(pool().address, count, **options) == 0


@pytest.mark.parametrize("cpus", [1, 2])
def test_the_caller_waits_for_workers_that_take_longer_than_it_spins(cpus):
    """One of two threads takes two of three chunks of about a millisecond, and the other one waits."""
    run(f"""
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{cpus}])
regions(100, threads=2, chunks=3, steps=2_000_000)
""")


def test_workers_that_sleep_are_woken():
    run("""
regions(1, threads=2)
(worker,) = tasks() - before

def seconds_of_worker():
    with open(f"/proc/self/task/{worker}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9

def has_worked():
    time.sleep(0.02)
    start = seconds_of_worker()
    regions(1, threads=2, chunks=20, steps=2_000_000)
    return seconds_of_worker() - start > 0.001

assert any(has_worked() for _ in range(50))
""")


def test_numbers_of_threads_that_change():
    for number in [1, 5, 2, 9, 3, 1, 7] * 20:
        assert incomplete_regions(pool().address, 20, threads=number, chunks=20, steps=20) == 0


def test_many_callers_share_the_pool():
    run("""
counts = []
def work():
    counts.append(incomplete_regions(parallel, 300, threads=4, chunks=8, steps=50))
callers = [threading.Thread(target=work) for _ in range(32)]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
assert counts == [0] * 32
for _ in range(1000):  # until threads of Python that have ended are gone
    if len(tasks() - before) > 3:
        time.sleep(0.01)
assert len(tasks() - before) <= 3
""")


def test_threads_are_started_on_demand():
    run("""
for number, expected in ((1, 0), (2, 1), (2, 1), (4, 3), (3, 3)):
    regions(3, threads=number)
    assert len(tasks() - before) == expected
""")


def test_workers_leave_signals_to_other_threads():
    """The C library blocks all signals in a thread until it begins, which may be after the regions."""
    run("""
def blocked(task):
    with open(f"/proc/self/task/{task}/status") as file:
        (mask,) = [int(line.split()[1], 16) for line in file if line.startswith("SigBlk")]
    return mask

regions(3, threads=3)
for task in tasks() - before:
    until = time.monotonic() + 60
    while blocked(task) & 1 << signal.SIGSEGV - 1 and time.monotonic() < until:
        time.sleep(0.01)
    mask = blocked(task)
    assert mask & 1 << signal.SIGINT - 1 and mask & 1 << signal.SIGTERM - 1
    assert not mask & 1 << signal.SIGSEGV - 1
assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
""")


@pytest.mark.parametrize("fork", ["os.fork", "ctypes.PyDLL(None).fork"], ids=["Python", "C"])
def test_a_child_starts_with_no_threads(fork):
    run(f"""
fork = {fork}
# The other thread stays in native code while this one forks. If it took the GIL or asked for it, it could
# hold the mutex of the GIL at a fork by C, and the child, which lacks the thread, would wait for ever.
caller = threading.Thread(
    target=lambda: regions(10**12, threads=4, chunks=8, steps=50), daemon=True
)
caller.start()
while len(tasks() - before) < 4:
    time.sleep(0.01)
for _ in range(20):
    child = fork()
    if child == 0:
        signal.alarm(30)
        alone = tasks()
        regions(100, threads=3)
        inner = os.fork()
        if inner == 0:
            signal.alarm(20)  # a child does not inherit that of its parent
            regions(100, threads=2)
            os._exit(0)
        succeeds(inner)
        os._exit(0 if (len(alone), len(tasks())) == (1, 3) else 1)
    succeeds(child)
regions(100, threads=4)
os._exit(0)  # the other thread does not end
""")


# The memory that is left suffices for everything but the stack of a thread.
MEMORY = """
def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

kind, least = resource.RLIMIT_AS, used() + 4_000_000
"""

# A user other than root whose only process is this one.
PROCESSES = """
kind, least = resource.RLIMIT_NPROC, 1
os.setresuid(54321, 54321, 54321)
"""
is_root = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param(MEMORY, id="memory"),
        pytest.param(
            PROCESSES,
            id="processes",
            marks=pytest.mark.skipif(not is_root, reason="only root may become another user"),
        ),
    ],
)
def test_threads_that_cannot_be_started_are_missing(limit):
    run(f"""
{limit}
most = resource.getrlimit(kind)
resource.setrlimit(kind, (least, most[1]))
regions(100, threads=4)
assert tasks() == before
resource.setrlimit(kind, most)
regions(2000, threads=4)  # it is tried again after some time
assert len(tasks() - before) == 3
""")


def test_some_of_the_threads_can_be_started():
    run("""
regions(3, threads=2)
limit = resource.RLIMIT_AS
most = resource.getrlimit(limit)
resource.setrlimit(limit, (1_000_000, most[1]))
regions(100, threads=4)
assert len(tasks() - before) == 1
resource.setrlimit(limit, most)
""")


needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system does not choose CPUs"
)


@needs_affinity
@pytest.mark.parametrize(("cpus", "number"), [(1, 2), (1, 8), (2, 8), (2, 64)])
def test_more_threads_than_cpus(cpus, number):
    run(f"""
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{cpus}])
regions(300, threads={number}, chunks=20, steps=100)
""")


@needs_affinity
def test_a_region_does_not_wait_for_threads_that_are_not_scheduled():
    """Workers that may run only where a busy process leaves a CPU idle get a share of about 1 in 300. Waiting
    for them would take milliseconds per region; the caller alone needs microseconds."""
    run("""
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
regions(3, threads=3)
for task in tasks() - before:
    os.sched_setscheduler(task, os.SCHED_IDLE, os.sched_param(0))
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
try:
    def seconds(threads):
        start = time.perf_counter()
        regions(200, threads=threads, chunks=40, steps=1000)
        return time.perf_counter() - start

    # Several tries, as an idle worker that has entered a region may be suspended within it.
    assert any(seconds(3) < 4 * seconds(1) for _ in range(10))
finally:
    busy.kill()
    busy.wait()
""")


@needs_affinity
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this process may use one CPU only")
def test_a_worker_that_took_the_callers_cpu_leaves_it():
    """A worker spins after its work, so that the next region finds it awake. Where it has the CPU of the
    caller it would only keep that from going on (measured: a region took five times as long as the caller
    alone). CPU time is compared, as other processes do not change it much, and a spin of a
    millisecond is far longer than all else that a region costs."""
    run("""
from gossamer_host_runtime.parallel import pool as module
module.SPIN_NANOSECONDS = 1_000_000
pool().set_cpus(2)
regions(3, threads=2)
(worker,) = tasks() - before
first, second = sorted(os.sched_getaffinity(0))[:2]
os.sched_setaffinity(0, (first,))

def cpu_time(cpu):
    os.sched_setaffinity(worker, (cpu,))
    start = time.process_time()
    for _ in range(50):
        time.sleep(2e-3)  # the worker falls asleep
        regions(1, threads=2, chunks=2, steps=20_000)  # long enough for the worker to wake and enter
    return time.process_time() - start

tries = [(cpu_time(first), cpu_time(second)) for _ in range(5)]
assert any(together < 0.5 * apart for together, apart in tries), tries
""")


def test_processes_end_while_threads_spin_or_work():
    run("""
def loop():
    while True:
        incomplete_regions(parallel, 1000, threads=4, chunks=8, steps=50)
threading.Thread(target=loop, daemon=True).start()
regions(10, threads=4)
""")


def test_the_code_is_kept_in_the_kernel_cache(tmp_path):
    for is_first in (True, False):
        source = (
            "import sys; from gossamer_host_runtime.parallel.pool import pool; pool(); "
            f"assert ('llvmlite' in sys.modules) == {is_first}"
        )
        environment = {**os.environ, "GOSSAMER_CACHE_DIR": str(tmp_path)}
        subprocess.run([sys.executable, "-c", source], check=True, timeout=60, env=environment)


def test_threads_of_several_interpreter_threads_find_one_pool():
    sums = []
    finders = [threading.Thread(target=lambda: sums.append(pool())) for _ in range(4)]
    for finder in finders:
        finder.start()
    for finder in finders:
        finder.join()
    assert {id(one) for one in sums} == {id(pool())}
