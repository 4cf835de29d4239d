"""A fork, and the end of the process, wait for the lock to be released; the child can acquire it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from gossamer_support.fork import Exclusion

SETUP = """
import os, signal, sys, threading, time, warnings
from gossamer_support.fork import Exclusion

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
    signal.alarm(30)
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
        signal.alarm(30)
        thread = threading.Thread(target=hold, args=(exclusion,), daemon=True)
        thread.start()
        thread.join(0.1)
        os._exit(6 if state else 5)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

IMPORT = """
sys.path.insert(0, PATH)
thread = threading.Thread(target=lambda: IMPORTING)
thread.start()
while "slow" not in sys.modules:
    time.sleep(0.001)
child = os.fork()
if not child:
    signal.alarm(10)
    import slow
    os._exit(5 if slow.is_complete else 6)
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

SLOW = """
import threading, time
from gossamer_support.fork import compiling

time.sleep(0.1)
# A fork that waits for this module does not keep it from taking the lock of another library.
compiling.include(threading.RLock())
time.sleep(0.1)
is_complete = True
"""

WAITING = """
import os, signal, sys, threading
sys.path.insert(0, PATH)
import gossamer_support

thread = threading.Thread(target=lambda: __import__("app"), daemon=True)
thread.start()
while "app" not in sys.modules:
    pass
signal.alarm(10)
child = os.fork()
if not child:
    os._exit(5)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
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

INTERRUPT = """
import inspect, itertools

def is_free(lock):
    def take():
        with lock:
            taken.append(True)
    taken = []
    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(5)
    return bool(taken)

def once():
    with exclusion:
        len(state)

def nested():
    with exclusion:
        once()

def fork():
    child = os.fork()
    if not child:
        sys.setprofile(None)
        signal.alarm(30)
        os._exit(0 if is_free(exclusion) and is_free(library) else 1)
    status.append(os.waitpid(child, 0)[1])

status = []
USE()
sys.unraisablehook = lambda error: None
"""

EVENTS = """
def interrupted(use, number):
    events = 0

    def profile(frame, event, argument):
        # Python runs signal handlers where a function begins and after a call, but not where a generator
        # is closed, which is an event of the profile, too.
        nonlocal events
        is_generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        events += event == "c_return" or (event == "call" and not is_generator)
        if events == number:
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        use()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return events >= number

for number in itertools.count(2):  # the first event is the call of the function itself
    if not interrupted(USE, number):
        break
    if not is_free(exclusion) or not is_free(library):
        sys.exit(6)
sys.exit(5 if number > 3 and not any(status) else 7)
"""

SIGNALS = """
def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
for number in range(1000):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + number % 7))
        while True:
            USE()
    except KeyboardInterrupt:
        pass
    if number % 50 == 0 and not is_free(exclusion):
        sys.exit(6)
sys.exit(5 if is_free(exclusion) else 6)
"""


def status_of(source: str) -> int:
    command = [sys.executable, "-W", "error", "-c", SETUP + source]
    return subprocess.run(command, check=False, timeout=60).returncode


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("held", ["exclusion", "library"])
def test_a_fork_waits_and_both_sides_can_go_on(held):
    assert status_of(FORK.replace("HELD", held)) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_thread_that_holds_the_lock_may_fork_and_holds_it_in_the_child():
    assert status_of(NESTED) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_waits_for_a_late_import_of_a_module_or_of_what_it_imports(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "gossamer_late.py").write_text("import slow")
    (tmp_path / "gossamer_call.py").write_text("def call():\n    import slow")
    for each in ("gossamer_late", "gossamer_call.call()"):
        importing = f"__import__({each.partition('.')[0]!r}){each[13:]}"
        source = IMPORT.replace("PATH", repr(str(tmp_path))).replace("IMPORTING", importing)
        assert status_of(source) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_does_not_wait_for_a_program_that_runs_while_it_is_imported(tmp_path):
    (tmp_path / "app.py").write_text("import time\ntime.sleep(60)")
    assert status_of(WAITING.replace("PATH", repr(str(tmp_path)))) == 5


@pytest.mark.parametrize("held", ["exclusion", "library"])
def test_the_end_waits(held):
    assert status_of(END.replace("HELD", held)) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("use", ["once", "nested", "fork"])
def test_the_lock_is_free_after_an_interrupt_at_any_place(use):
    assert status_of((INTERRUPT + EVENTS).replace("USE", use)) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no such timers")
@pytest.mark.parametrize("use", ["once", "nested"])
def test_the_lock_is_free_after_interrupts_at_random_times(use):
    assert status_of((INTERRUPT + SIGNALS).replace("USE", use)) == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_both_processes_can_take_the_lock_after_a_fork():
    exclusion, library = Exclusion(), threading.RLock()
    exclusion.include(library)
    child = os.fork()
    if not child:
        with exclusion, library:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert exclusion.acquire(blocking=False)
    exclusion.release()
    assert library.acquire(blocking=False)
    library.release()
