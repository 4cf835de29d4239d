"""A persistent pool of threads, the default way to run parallel regions on Linux.

The function has the signature of GOMP_parallel. It differs from libgomp in what a region waits for: the
caller closes the region as soon as it finds no work left, and waits only for workers that have entered by
then. A worker that is not scheduled, because another process is busy, costs nothing. Workers that cannot be
started are missing, and the others do their work, as a region distributes its work dynamically. A caller
that finds the pool in use, by another thread or in an enclosing region, runs its region alone.

The state is in memory that the kernel fills with zeros in a forked child (`MADV_WIPEONFORK`), and zeros are a
pool without threads: a child starts anew, whatever the threads of its parent did, and however it was forked.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache

from gossamer_backend.plugin_api import available_cpus
from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.loading.mapped_memory import advise, map_memory, unmap_memory
from gossamer_host_runtime.parallel.native_code import (
    PARALLEL_SYMBOL,
    function_address,
    load_with_structure,
    make_immortal,
    read_llvm_file,
)
from gossamer_support.fork import compiling

SPIN_NANOSECONDS = 20_000
"""Time that a thread waits without sleeping: a worker for the next region, the caller for the workers.

Where other processes need the CPUs (seven runnable on two CPUs), regions of 0.2 milliseconds on two threads
took 0.97, 1.06 and 1.14 times as long as on one for 5, 20 and 50 microseconds.
"""

_WIPE_ON_FORK = 18
"""MADV_WIPEONFORK of Linux 4.14, for which Python has no name."""

_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
"""The number of the system call."""

_PAUSES = {
    "x86_64": "declare void @llvm.x86.sse2.pause()\ndefine internal void @pause() nounwind {\n"
    "  call void @llvm.x86.sse2.pause()\n  ret void\n}\n",
    "aarch64": "declare void @llvm.aarch64.hint(i32)\ndefine internal void @pause() nounwind {\n"
    "  call void @llvm.aarch64.hint(i32 1)\n  ret void\n}\n",
    # Processors without the extension Zihintpause take it for a fence that orders nothing.
    "riscv64": "declare void @llvm.riscv.pause()\n"
    'define internal void @pause() nounwind "target-features"="+a,+c,+d,+f,+m,+zihintpause" {\n'
    "  call void @llvm.riscv.pause()\n  ret void\n}\n",
}
"""The instruction with which a spinning thread leaves the core to others, by architecture."""

_FUNCTIONS = (
    "pthread_create",
    "pthread_detach",
    "pthread_sigmask",
    "syscall",
    "clock_gettime",
    "sched_getcpu",
)

_FAULTS = (4, 7, 8, 11)
"""SIGILL, SIGBUS, SIGFPE and SIGSEGV. Workers block all other signals, which are for the user's threads."""


class _Configuration(ctypes.Structure):
    """The fields that the code reads, in the order of its type `%config`."""

    _fields_ = (
        ("state", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
        ("futex", ctypes.c_int64),
        ("spin", ctypes.c_int64),
        ("cpus", ctypes.c_int64),
        ("signals", ctypes.c_uint64 * 16),
    )


class Pool:
    """The pool of this process: the address of its function, and its settings."""

    def __init__(self, state: int) -> None:
        self._configuration = _Configuration(state=state, futex=_FUTEX[architecture()])
        for name in _FUNCTIONS:
            setattr(self._configuration, name, function_address(name))
        # A signal handler of the user could otherwise run on a worker, which Python does not know.
        self._configuration.signals[:] = [2**64 - 1] * 16
        for number in _FAULTS:
            self._configuration.signals[0] &= ~(1 << (number - 1))
        self.set_cpus(available_cpus())
        text = _PAUSES[architecture()] + read_llvm_file("pool.ll")
        self.address, self._library = load_with_structure(
            text, PARALLEL_SYMBOL, self._configuration
        )
        # Threads of the pool run the code until the process ends.
        make_immortal(self)

    def set_cpus(self, count: int) -> None:
        """Let threads spin only in regions with at most this many threads, and never on one CPU."""
        self._configuration.cpus = count
        # On one CPU, a spinning thread keeps the one that it waits for from running.
        self._configuration.spin = SPIN_NANOSECONDS if count > 1 else 0


def pool() -> Pool | None:
    """Return the pool of this process, or None if the system does not support it."""
    with compiling:
        return _pool()


@cache
def _pool() -> Pool | None:
    state = _wiped_memory() if is_pool_supported() else None
    return None if state is None else Pool(state)


def is_pool_supported() -> bool:
    """Return whether this is a 64-bit Linux with POSIX threads, on an architecture that the pool is written
    for."""
    # futex, MADV_WIPEONFORK and the layout of the signal mask are those of 64-bit Linux.
    if sys.platform != "linux" or architecture() not in _FUTEX or sys.maxsize < 2**32:
        return False
    library = ctypes.CDLL(None)
    return all(hasattr(library, name) for name in _FUNCTIONS)


def _wiped_memory() -> int | None:
    """Return the address of a page of zeros that a forked child finds as zeros, or None if that is not
    possible."""
    address = map_memory(mmap.PAGESIZE)
    # Kernels before 4.14 refuse. Without wiping, a child would wait for threads that it does not have.
    if address is not None and not advise(address, mmap.PAGESIZE, _WIPE_ON_FORK):
        unmap_memory(address, mmap.PAGESIZE)
        return None
    return address
