"""A fork, and the end of the process, wait for whoever holds the lock; a child can take it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SETUP = """
import os, sys, threading, time, warnings
from gossamer_backend.fork import Exclusion

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork with threads
exclusion, library = Exclusion(), threading.RLock()
exclusion.include(library)
state = []

def hold(lock):
    with lock:
        state.append("begun")
        time.sleep(0.2)
        state.append("done")

def started(lock):
    thread = threading.Thread(target=hold, args=(lock,), daemon=True)
    thread.start()
    while not state:
        time.sleep(0.001)
    return thread
"""

FORK = """
thread = started(HELD)
child = os.fork()
if not child:
    with exclusion, library:
        os._exit(5 if state == ["begun", "done"] else 6)
thread.join()
with exclusion, library:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

NESTED = """
with exclusion, library:
    child = os.fork()
    if not child:
        thread = threading.Thread(target=hold, args=(exclusion,), daemon=True)
        thread.start()
        thread.join(0.1)
        os._exit(6 if state else 5)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

LATE = """
def hook():
    global late
    late = Exclusion()
    BEGIN

os.register_at_fork(before=hook)
sys.unraisablehook = lambda error: os._exit(6)
child = os.fork()
thread = threading.Thread(target=hold, args=(late,), daemon=True)
thread.start()
thread.join()
if not child:
    os._exit(5)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

END = """
import atexit

@atexit.register
def last():
    with exclusion, library:
        os._exit(5 if state == ["begun", "done"] else 6)

atexit.register(exclusion._enter_all)  # as when it was made after the handler
started(HELD)
"""


def status_of(source: str) -> int:
    command = [sys.executable, "-W", "error", "-c", SETUP + source]
    return subprocess.run(command, check=False, timeout=60).returncode


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("held", ["exclusion", "library"])
def test_a_fork_waits_and_both_sides_can_go_on(held):
    assert status_of(FORK.replace("HELD", held)) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_who_holds_the_lock_may_fork_and_holds_it_in_the_child():
    assert status_of(NESTED) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    "begin", ["pass", "late.begin_fork()", "late.begin_fork(), late.begin_fork()"]
)
def test_a_lock_that_is_made_while_the_process_forks_is_free_afterwards(begin):
    assert status_of(LATE.replace("BEGIN", begin)) == 5


@pytest.mark.parametrize("held", ["exclusion", "library"])
def test_the_end_waits(held):
    assert status_of(END.replace("HELD", held)) == 5
