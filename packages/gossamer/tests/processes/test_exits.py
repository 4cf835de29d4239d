"""Processes that end during calls or compilation: exit code and output are those of the program."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unserialized

PROGRAM = """
import atexit, os, sys, time
import gossamer as gs
EARLY
from race_setup import *
LATE
gs.set_num_threads(2)
start(WORKS)
time.sleep(DELAY)
END
"""

ENDS = {"sys.exit(3)": 3, "os._exit(4)": 4, "raise KeyError('the end')": 1, "pass": 0}
WORKS = {
    "calls": "call_for_ever, call_for_ever",
    "compiling": "compile_for_ever, compile_for_ever",
    "both": "call_for_ever, call, compile_for_ever",
}


def ended(end, *, works, early="", late=""):
    """Runs a program and ends it after a random time."""
    source = PROGRAM.replace("WORKS", works).replace("EARLY", early).replace("LATE", late)
    source = source.replace("DELAY", str(0.2 * random.random())).replace("END", end)
    path = os.pathsep.join([str(Path(__file__).parents[1] / "helpers"), *sys.path])
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("works", WORKS)
@pytest.mark.parametrize("end", ENDS)
def test_the_process_ends_while_daemon_threads_work(end, works):
    done = ended(end, works=WORKS[works])
    assert done.returncode == ENDS[end], done.stderr
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1:]
    assert last == (["KeyError: 'the end'"] if "raise" in end else [])


HANDLER = """
def last():
    from race_setup import call, compile_new
    call()
    compile_new()
    print("computed", flush=True)
atexit.register(last)
"""


@pytest.mark.parametrize("works", ["", WORKS["both"]])
@pytest.mark.parametrize("when", ["early", "late"])
def test_handlers_compute_and_compile_at_the_end(when, works):
    done = ended("sys.exit(0)", works=works, **{when: HANDLER})
    assert (done.returncode, done.stdout, done.stderr) == (0, "computed\n", "")


def test_the_process_waits_for_threads_that_are_no_daemons():
    late = "threading.Thread(target=lambda: [call(), compile_new(), print('computed')]).start()"
    done = ended("sys.exit(0)", works="", late=late)
    assert (done.returncode, done.stdout, done.stderr) == (0, "computed\n", "")
