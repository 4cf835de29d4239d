"""Code shared by the programs that tests of threads, forks and exits run in separate processes."""

from __future__ import annotations

import contextlib
import faulthandler
import itertools
import os
import random
import signal
import sys
import threading
import traceback
import warnings

import numpy as np
from scipy import sparse

import gossamer as gs

# A child that hangs writes where, and ends.
faulthandler.register(signal.SIGALRM, chain=True)

SIZE = 600
matrix = sparse.random_array(
    (SIZE, SIZE), density=0.2, format="csr", dtype=np.float32, rng=np.random.default_rng(0)
)
matrix.data = np.ceil(3 * matrix.data)  # sums of integers are exact
x = np.arange(SIZE, dtype=np.float32) % 5
dense = np.outer(x, np.arange(32) % 3).astype(np.float32)
expected, expected_dense = matrix @ x, matrix @ dense

SCRIPT = """
@T.prim_func
def scale(x: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    for i in T.parallel(n, weight=i, grain=1):
        X[i] = FACTOR.0 * X[i]
"""


def call():
    """Calls operators on a SciPy matrix that is large enough to be checked by a parallel kernel."""
    assert matrix.nnz > 65_536
    assert np.array_equal(gs.spmv(matrix, x), expected)
    assert np.array_equal(gs.spmm(matrix, dense), expected_dense)


def compile_new(factor=None):
    """A kernel that was not compiled before, unless the factor is given."""
    factor = random.randrange(1, 10**6) if factor is None else factor
    values = np.ones(5000, np.float32)
    gs.compile(SCRIPT.replace("FACTOR", str(factor)))(values)
    assert np.array_equal(values, np.full(5000, factor, np.float32))


def call_for_ever():
    out = np.empty((SIZE, 32), np.float32)
    step = gs.spmm.bind(matrix, dense, out=out)
    for _ in itertools.count():
        step()


def compile_for_ever():
    for _ in itertools.count():
        compile_new()


def use_llvm_for_ever():
    """Calls LLVM as another library would: without the locks of gossamer."""
    from llvmlite import binding

    for _ in itertools.count():
        binding.parse_assembly("define void @nothing() { ret void }")


def start(*works):
    """Daemon threads that run the functions in endless loops."""
    for work in works:
        threading.Thread(target=work, daemon=True).start()


def forked(work):
    """The exit code of a forked child that runs the function; exceptions are printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of any fork with threads
        child = os.fork()
    if child == 0:
        signal.alarm(100)
        with contextlib.ExitStack() as last:
            last.callback(os._exit, 1)
            last.callback(sys.stderr.flush)
            last.callback(lambda: sys.exc_info()[1] and traceback.print_exc())
            work()
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def work(seed):
    """The function that processes of a pool run."""
    gs.set_num_threads(1 + seed % 2)
    call()
    compile_new(seed + 1)
    return seed
