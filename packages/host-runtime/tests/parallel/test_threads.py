"""The function that runs parallel regions, as the environment, the target and the system determine it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest
from region_loops import incomplete_regions

from gossamer_backend.call.threads import get_num_threads
from gossamer_host_runtime.parallel import gomp, threads
from gossamer_host_runtime.parallel.per_region import fallback_parallel
from gossamer_host_runtime.parallel.pool import is_pool_supported, pool
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target


@pytest.fixture(autouse=True)
def chosen_anew(monkeypatch):
    # Another package's tests in this process may share the threads of a library.
    monkeypatch.setattr(threads, "_default_choice", "pool")
    threads.refresh()
    yield
    monkeypatch.undo()
    gomp.gomp_parallel.cache_clear()
    threads.refresh()


def test_an_unknown_choice_is_refused(monkeypatch):
    monkeypatch.setenv("GOSSAMER_PARALLEL", "openmp")
    with pytest.raises(ArgumentError, match="GOSSAMER_PARALLEL is 'openmp'") as caught:
        threads.parallel_function()
    assert caught.value.code == "host_runtime.parallel"


@pytest.mark.parametrize("count", ["0", "-1", "two", "4097", "²"])
def test_a_bad_number_of_threads_in_a_target_is_refused(count):
    with pytest.raises(ArgumentError) as caught:
        threads.parallelism_of(Target("generic-cpu", (("threads", count),)))
    assert caught.value.code == "threads.count"


def test_none_keeps_the_calling_thread(monkeypatch):
    monkeypatch.setenv("GOSSAMER_PARALLEL", "none")
    assert threads.parallelism_of(Target("generic-cpu", (("threads", "3"),)))()[:2] == (3, None)


@pytest.fixture
def no_pool(monkeypatch):
    monkeypatch.setattr("gossamer_host_runtime.parallel.pool.pool", lambda: None)


@pytest.mark.parametrize("choice", ["", "pool", "gomp"])
def test_threads_for_each_region_stand_in_for_pool_and_libgomp(monkeypatch, no_pool, choice):
    monkeypatch.setenv("GOSSAMER_PARALLEL", choice)
    gomp.gomp_parallel.cache_clear()
    monkeypatch.setattr(gomp, "_LIBRARIES", ("libno_such_library.so.1",))
    assert gomp.gomp_parallel() is None
    assert threads.parallel_function() == fallback_parallel()


@pytest.mark.skipif(not is_pool_supported(), reason="this system does not support the pool")
def test_the_pool_is_the_default_and_stands_in_for_libgomp(monkeypatch):
    monkeypatch.delenv("GOSSAMER_PARALLEL", raising=False)
    assert threads.parallel_function() == pool().address
    monkeypatch.setenv("GOSSAMER_PARALLEL", "gomp")
    monkeypatch.setattr(gomp, "_LIBRARIES", ("libno_such_library.so.1",))
    gomp.gomp_parallel.cache_clear()
    assert threads.parallel_function() == pool().address


def test_one_thread_needs_no_function_that_runs_regions():
    assert threads.parallelism_of(Target("generic-cpu", (("threads", "1"),)))()[:2] == (1, None)
    assert threads.parallelism_of(Target("generic-cpu"))()[0] == get_num_threads()


@pytest.mark.skipif(gomp.gomp_parallel() is None, reason="this system has no libgomp")
@pytest.mark.parametrize("choice", ["", "pool"])
def test_libgomp_stands_in_for_the_pool(monkeypatch, no_pool, choice):
    monkeypatch.setenv("GOSSAMER_PARALLEL", choice)
    address = ctypes.cast(threads.parallel_function(), ctypes.c_void_p).value
    assert address == gomp.gomp_parallel()


SHARING = """
import ctypes, sys
BEFORE
from gossamer_host_runtime import share_openmp_threads
from gossamer_host_runtime.parallel import gomp, threads
threads.parallel_function()
share_openmp_threads()
address = threads.parallel_function()
sys.exit(8 if address == gomp.gomp_parallel() else 7)
"""


@pytest.mark.skipif(gomp.gomp_parallel() is None, reason="this system has no libgomp")
@pytest.mark.skipif(not is_pool_supported(), reason="this system does not support the pool")
@pytest.mark.parametrize(
    ("before", "choice", "code"),
    [
        ("ctypes.CDLL('libgomp.so.1')", "", 8),
        ("", "", 7),
        ("ctypes.CDLL('libgomp.so.1')", "pool", 7),
    ],
    ids=["loaded", "not loaded", "the user's choice"],
)
def test_threads_of_a_loaded_libgomp_are_shared_unless_the_user_chooses(before, choice, code):
    source = SHARING.replace("BEFORE", before)
    environment = {**os.environ, "GOSSAMER_PARALLEL": choice}
    done = subprocess.run([sys.executable, "-c", source], check=False, timeout=60, env=environment)
    assert done.returncode == code


def test_threads_are_not_shared_where_libraries_cannot_be_looked_up(monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(os, "RTLD_NOLOAD", raising=False)
    assert not gomp.is_gomp_loaded()
    threads.share_openmp_threads()
    assert threads._default_choice == "pool"
    gomp.gomp_parallel.cache_clear()
    gomp.gomp_parallel()


CHILD = """
import ctypes, os, signal, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork with threads
BEFORE
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(30)
from gossamer_host_runtime.parallel import gomp, threads
address = threads.parallel_function()
os._exit(8 if address == gomp.gomp_parallel() else 7)
"""
THEIRS, OURS = "ctypes.CDLL('libgomp.so.1')", "import gossamer_host_runtime.parallel.threads as t"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(gomp.gomp_parallel() is None, reason="this system has no libgomp")
@pytest.mark.parametrize(
    ("before", "code"),
    [("", 8), (OURS, 8), (THEIRS, 7), (f"{THEIRS}; {OURS}", 7), (f"{OURS}; t.gomp_parallel()", 7)],
    ids=["none", "ours unused", "theirs", "both", "ours used"],
)
def test_a_child_does_without_a_libgomp_that_its_parent_may_have_used(before, code):
    source = CHILD.replace("BEFORE", before)
    environment = {**os.environ, "GOSSAMER_PARALLEL": "gomp"}
    done = subprocess.run([sys.executable, "-c", source], check=False, timeout=60, env=environment)
    assert done.returncode == code


@pytest.mark.parametrize("count", [1, 2, 5])
def test_threads_for_each_region_do_all_of_its_work(count):
    assert incomplete_regions(fallback_parallel(), 50, threads=count, chunks=2 * count) == 0
