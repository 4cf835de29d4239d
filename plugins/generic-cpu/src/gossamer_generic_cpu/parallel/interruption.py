"""Stops long loops when a signal handler raises, as that of Ctrl-C does.

Python handles signals in its main thread, and only while that runs Python code. A kernel with much work
therefore asks between portions of its loops, without holding the GIL. The function below is cheap unless
some time has passed; then, on the main thread, it lets Python handle signals, and keeps what a handler raises
for the caller of the kernel.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from functools import cache
from typing import Any

from gossamer_generic_cpu.parallel.native_code import (
    PLACEHOLDER,
    function_address,
    keep_for_ever,
    load_with_structure,
)

INTERRUPTION_SYMBOL = "gossamer_is_interrupted"

SHORT_NANOSECONDS = 100_000
"""After a portion that takes less, the rest of its chunk is run at once. If iterations take equally long,
that is less than half a second, since chunks have 4,096 portions."""

LONG_NANOSECONDS = 100_000_000
"""After a portion that takes longer, the next one has half as many iterations."""

PAUSE_NANOSECONDS = 50_000_000
"""Time between checks for signals: taking the GIL may mean waiting for another thread."""

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
        text = _TEXT.replace("PLACEHOLDER", str(PLACEHOLDER))
        self.address, self._library = load_with_structure(text, INTERRUPTION_SYMBOL, self._state)
        # A kernel may ask until the process ends.
        keep_for_ever(self)

    def find_main_thread(self) -> None:
        """Find the main thread again: in a forked child, it is the one that has forked."""
        self._state.main_thread = threading.main_thread().ident or 0

    def raised(self) -> BaseException:
        """Return what a signal handler raised, for the thread whose kernel was stopped."""
        addresses = list(self._state.raised)
        self._state.raised[:] = (None, None, None)
        _, error, traceback = map(_taken, addresses)
        return KeyboardInterrupt() if error is None else error.with_traceback(traceback)


def _taken(address: int | None) -> Any:
    """Return the object at an address, whose reference is taken over; None if there is none."""
    if not address:
        return None
    found = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(found))
    return found


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
    found = interruption() if interruption.cache_info().currsize else None
    if found is not None:
        found.find_main_thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

_TEXT = f"""\
%state = type {{ ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, i64, ptr, ptr, ptr }}

; Not 'internal', as the value is unknown to LLVM: it is replaced before the code is loaded.
@gossamer_interruption = weak hidden constant i64 PLACEHOLDER, align 8

; Returns 1 if the loop is to stop, -1 after a short portion, -2 after a long one. `since` is the time of the
; last call for the chunk, 0 at first.
define i64 @{INTERRUPTION_SYMBOL}(ptr %since) nounwind noinline optnone {{
entry:
  %time = alloca {{ i64, i64 }}, align 8
  %place = load i64, ptr @gossamer_interruption, align 8
  %state = inttoptr i64 %place to ptr
  %clock = load ptr, ptr %state, align 8
  %ignored = call i32 %clock(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr {{ i64, i64 }}, ptr %time, i32 0, i32 1
  %rest = load i64, ptr %rest.at, align 8
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %rest
  %before = load i64, ptr %since, align 8
  store i64 %now, ptr %since, align 8
  %is.first = icmp eq i64 %before, 0
  br i1 %is.first, label %first, label %measured
first:
  ret i64 0
measured:
  %elapsed = sub i64 %now, %before
  %is.short = icmp slt i64 %elapsed, {SHORT_NANOSECONDS}
  br i1 %is.short, label %short, label %long
short:
  ret i64 -1
long:
  %self.at = getelementptr %state, ptr %state, i32 0, i32 1
  %self = load ptr, ptr %self.at, align 8
  %thread = call i64 %self()
  %main.at = getelementptr %state, ptr %state, i32 0, i32 7
  %main = load atomic i64, ptr %main.at monotonic, align 8
  %is.main = icmp eq i64 %thread, %main
  %too.long = icmp sgt i64 %elapsed, {LONG_NANOSECONDS}
  %answer = select i1 %too.long, i64 -2, i64 0
  br i1 %is.main, label %main.thread, label %go.on
main.thread:
  %handled.at = getelementptr %state, ptr %state, i32 0, i32 8
  %handled = load i64, ptr %handled.at, align 8
  %pause = sub i64 %now, %handled
  %is.due = icmp sge i64 %pause, {PAUSE_NANOSECONDS}
  br i1 %is.due, label %due, label %go.on
due:
  store i64 %now, ptr %handled.at, align 8
  %ensure.at = getelementptr %state, ptr %state, i32 0, i32 2
  %ensure = load ptr, ptr %ensure.at, align 8
  %release.at = getelementptr %state, ptr %state, i32 0, i32 6
  %release = load ptr, ptr %release.at, align 8
  %handle.at = getelementptr %state, ptr %state, i32 0, i32 3
  %handle = load ptr, ptr %handle.at, align 8
  %gil = call i32 %ensure()
  %failed = call i32 %handle()
  %is.raised = icmp ne i32 %failed, 0
  br i1 %is.raised, label %raised, label %unchanged
raised:
  %fetch.at = getelementptr %state, ptr %state, i32 0, i32 4
  %fetch = load ptr, ptr %fetch.at, align 8
  %normalize.at = getelementptr %state, ptr %state, i32 0, i32 5
  %normalize = load ptr, ptr %normalize.at, align 8
  %type = getelementptr %state, ptr %state, i32 0, i32 9
  %value = getelementptr %state, ptr %state, i32 0, i32 10
  %traceback = getelementptr %state, ptr %state, i32 0, i32 11
  call void %fetch(ptr %type, ptr %value, ptr %traceback)
  call void %normalize(ptr %type, ptr %value, ptr %traceback)
  call void %release(i32 %gil)
  ret i64 1
unchanged:
  call void %release(i32 %gil)
  br label %go.on
go.on:
  ret i64 %answer
}}
"""
