"""Signals during kernels with much work: Ctrl-C and other handlers that raise stop a loop."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gossamer as gs

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="loops are stopped on 64-bit Linux only"
)

SLOW = """
@T.prim_func
def slow(x: T.handle, y: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    for i in T.parallel(m{options}):
        Y[i] = 0.0
        for j in T.serial(n):
            Y[i] = Y[i] + X[j] / (1.0 + Y[i])
"""
PLAIN = SLOW.replace("{options}", "")
WITH_GRAIN = SLOW.replace("{options}", ", grain=1")
SERIAL = PLAIN.replace("parallel", "serial")
GROWING = SERIAL.replace("T.serial(n)", "T.serial(T.min(i * i, n))")
"""Its first iterations, by which the length of portions is chosen, take no time."""
SHORT, LONG = 100, 100_000_000
"""The number of elements that an iteration adds: less than a microsecond, and about a second."""


class AlarmError(Exception):
    """The error that the handler of these tests raises."""


@pytest.fixture(params=[1, 2])
def threads(request):
    before = gs.get_num_threads()
    gs.set_num_threads(request.param)
    yield request.param
    gs.set_num_threads(before)


@pytest.fixture
def alarm():
    """Return a function that calls a handler after some seconds."""
    old = signal.getsignal(signal.SIGALRM)

    def ring(handler, *, after):
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, after)

    yield ring
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def raise_alarm(_number, _frame):
    raise AlarmError("ring")


@pytest.mark.parametrize(
    ("script", "rows", "each"),
    [
        (PLAIN, 1000, LONG // 100),
        (WITH_GRAIN, 70_000, LONG // 1000),
        (PLAIN, 2 * 10**8, SHORT),
        (SERIAL, 1000, LONG // 100),
        (SERIAL, 2 * 10**8, SHORT),
        (GROWING, 70_000, LONG // 100),
    ],
    ids=["long rows", "with a grain", "short rows", "serial", "short serial rows", "growing"],
)
@pytest.mark.usefixtures("threads")
def test_a_handler_that_raises_stops_a_long_loop(script, rows, each, alarm):
    kernel = gs.compile(script)
    x, y = np.ones(each, np.float32), np.zeros(rows, np.float32)
    alarm(raise_alarm, after=0.1)
    start = time.perf_counter()
    with pytest.raises(AlarmError, match="ring"):
        kernel(x, y)
    assert time.perf_counter() - start < 5
    few = np.zeros(3, np.float32)
    kernel(x[:1], few)  # the pool of threads works as before
    assert few.tolist() == ([0, 1, 1] if script is GROWING else [1, 1, 1])


@pytest.mark.parametrize("script", [PLAIN, SERIAL], ids=["parallel", "serial"])
@pytest.mark.usefixtures("threads")
def test_a_handler_that_returns_lets_the_loop_finish(script, alarm):
    kernel = gs.compile(script)
    x, y = np.ones(10_000, np.float32), np.zeros(5_000, np.float32)
    rung = []
    # A busy machine may ring before the call.
    start = time.perf_counter()
    alarm(lambda *_: rung.append(time.perf_counter()), after=0.02)
    kernel(x, y)
    end = time.perf_counter()
    assert np.all(y == y[0])
    assert y[0] > 0
    assert start < rung[0] < end


def test_a_kernel_of_another_thread_is_not_stopped(alarm):
    kernel = gs.compile(PLAIN)
    x, y = np.ones(10_000, np.float32), np.zeros(5_000, np.float32)
    done = threading.Event()

    def run():
        kernel(x, y)
        done.set()

    def wait():
        alarm(raise_alarm, after=0.02)
        time.sleep(60)

    threading.Thread(target=run).start()
    with pytest.raises(AlarmError):
        wait()
    assert done.wait(60)
    assert np.all(y == y[0])


CTRL_C = f"""
import os, signal, threading, time
import numpy as np
import gossamer as gs

kernel = gs.compile('''{PLAIN}''')
x, y = np.ones(1_000_000, np.float32), np.zeros(1000, np.float32)
bound = kernel.bind(x, y)
# A shell that runs commands in the background lets them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.perf_counter()
try:
    bound()
except KeyboardInterrupt:
    print(time.perf_counter() - start < 5)
"""


def test_control_c_stops_a_bound_call_of_a_compiled_kernel():
    done = subprocess.run(
        [sys.executable, "-c", CTRL_C], capture_output=True, text=True, check=True, env=os.environ
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_control_c_stops_a_kernel_of_a_forked_child():
    kernel = gs.compile(PLAIN)
    x, y = np.ones(1_000_000, np.float32), np.zeros(1000, np.float32)
    kernel(x[:1], y)
    child = os.fork()
    if not child:
        signal.alarm(60)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        status = 1
        try:
            kernel(x, y)
        except KeyboardInterrupt:
            status = 3
        finally:
            os._exit(status)
    time.sleep(0.5)
    os.kill(child, signal.SIGINT)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
