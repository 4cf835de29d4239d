"""Stops long loops when a signal handler raises, as that of Ctrl-C does.

Python handles signals in its main thread, and only while that runs Python code. A kernel with much work
therefore asks between portions of its loops, without holding the GIL. The function in `interruption.ll` is
cheap unless some time has passed; then, on the main thread, it lets Python handle signals, and keeps what a
handler raises for the caller of the kernel.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from functools import cache
from typing import Any

from gossamer_host_runtime.parallel.native_code import (
    function_address,
    load_with_structure,
    make_immortal,
    read_llvm_file,
)

INTERRUPTION_SYMBOL = "gossamer_is_interrupted"

_FUNCTIONS = (
    "clock_gettime",
    "pthread_self",
    "PyGILState_Ensure",
    "PyErr_CheckSignals",
    "PyErr_Fetch",
    "PyErr_NormalizeException",
    "PyGILState_Release",
)


class _State(ctypes.Structure):
    """The fields that the code reads, in the order of its type `%state`."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
        ("main_thread", ctypes.c_uint64),
        ("handled_at", ctypes.c_int64),
        ("raised", ctypes.c_void_p * 3),
    )


class Interruption:
    """The function of this process that kernels ask, by its `address`."""

    def __init__(self) -> None:
        self._state = _State()
        for name in _FUNCTIONS:
            setattr(self._state, name, function_address(name))
        self.find_main_thread()
        text = read_llvm_file("interruption.ll")
        self.address, self._library = load_with_structure(text, INTERRUPTION_SYMBOL, self._state)
        # A kernel may ask until the process ends.
        make_immortal(self)

    def find_main_thread(self) -> None:
        """Find the main thread again: in a forked child, it is the one that has forked."""
        self._state.main_thread = threading.main_thread().ident or 0

    def take_exception(self) -> BaseException:
        """Return what a signal handler raised, for the thread whose kernel was stopped."""
        addresses = list(self._state.raised)
        self._state.raised[:] = (None, None, None)
        _, error, traceback = map(_take_object, addresses)
        return KeyboardInterrupt() if error is None else error.with_traceback(traceback)


def _take_object(address: int | None) -> Any:
    """Return the object at an address, whose reference is taken over; None if there is none."""
    if not address:
        return None
    value = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(value))
    return value


@cache
def interruption() -> Interruption | None:
    """Return what stops the loops of this process, or None if the system does not support it.

    The caller holds `compiling`."""
    is_supported = sys.platform == "linux" and sys.maxsize > 2**32
    library = ctypes.CDLL(None)
    if not is_supported or not all(hasattr(library, name) for name in _FUNCTIONS):
        return None
    return Interruption()


def _after_fork_in_child() -> None:
    existing = interruption() if interruption.cache_info().currsize else None
    if existing is not None:
        existing.find_main_thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
