"""The function that runs parallel regions, as the environment, the target and the system determine it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from gossamer_backend.call.threads import get_num_threads
from gossamer_generic_cpu.parallel import threads
from gossamer_generic_cpu.parallel.pool import fallback_parallel
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target


@pytest.fixture(autouse=True)
def chosen_anew(monkeypatch):
    threads.refresh()
    yield
    monkeypatch.undo()
    threads.gomp_parallel.cache_clear()
    threads.refresh()


def test_an_unknown_choice_is_refused(monkeypatch):
    monkeypatch.setenv("GOSSAMER_PARALLEL", "openmp")
    with pytest.raises(ArgumentError, match="GOSSAMER_PARALLEL is 'openmp'") as caught:
        threads.parallel_function()
    assert caught.value.code == "generic_cpu.parallel"


@pytest.mark.parametrize("count", ["0", "-1", "two", "4097", "²"])
def test_a_bad_number_of_threads_in_a_target_is_refused(count):
    with pytest.raises(ArgumentError) as caught:
        threads.parallelism_of(Target("generic-cpu", (("threads", count),)))
    assert caught.value.code == "threads.count"


def test_none_keeps_the_calling_thread(monkeypatch):
    monkeypatch.setenv("GOSSAMER_PARALLEL", "none")
    assert threads.parallelism_of(Target("generic-cpu", (("threads", "3"),)))() == (3, None)


def test_our_own_function_stands_in_where_libgomp_is_missing(monkeypatch):
    monkeypatch.delenv("GOSSAMER_PARALLEL", raising=False)
    threads.gomp_parallel.cache_clear()
    monkeypatch.setattr(threads, "_LIBRARIES", ("libno_such_library.so.1",))
    assert threads.gomp_parallel() is None
    assert threads.parallel_function() == fallback_parallel()


def test_one_thread_needs_no_function():
    assert threads.parallelism_of(Target("generic-cpu", (("threads", "1"),)))() == (1, None)
    assert threads.parallelism_of(Target("generic-cpu"))()[0] == get_num_threads()


@pytest.mark.skipif(threads.gomp_parallel() is None, reason="this system has no libgomp")
def test_libgomp_is_the_default(monkeypatch):
    monkeypatch.delenv("GOSSAMER_PARALLEL", raising=False)
    found = ctypes.cast(threads.parallel_function(), ctypes.c_void_p).value
    assert found == threads.gomp_parallel()


CHILD = """
import ctypes, os, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork with threads
BEFORE
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
from gossamer_generic_cpu.parallel import threads
from gossamer_generic_cpu.parallel.pool import fallback_parallel
found = threads.parallel_function()
os._exit(7 if found == fallback_parallel() else 8 if found == threads.gomp_parallel() else 9)
"""
THEIRS, OURS = "ctypes.CDLL('libgomp.so.1')", "import gossamer_generic_cpu.parallel.threads as t"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.skipif(threads.gomp_parallel() is None, reason="this system has no libgomp")
@pytest.mark.parametrize(
    ("before", "code"),
    [("", 8), (OURS, 8), (THEIRS, 7), (f"{THEIRS}; {OURS}", 7), (f"{OURS}; t.gomp_parallel()", 7)],
    ids=["none", "ours unused", "theirs", "both", "ours used"],
)
def test_a_child_does_without_a_libgomp_that_its_parent_may_have_used(before, code):
    source = CHILD.replace("BEFORE", before)
    done = subprocess.run([sys.executable, "-c", source], check=False, timeout=60)
    assert done.returncode == code
