"""Artifacts with object code as kernels: their threads, errors, and the end of long loops by a signal."""

import os
import signal
import threading

import numpy as np
import pytest

from gossamer_backend.plugin_api import Artifact
from gossamer_host_runtime import data_layout, host_cpu, load_kernel, target_machine, triple
from gossamer_ir.core.build import index
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import BufferParam, Signature
from gossamer_llvm.optimization import parse

FIELDS = """
%workspace = type {{ i64, ptr, i64, ptr }}
define i64 @gossamer_kernel(ptr %x, ptr %workspace) {{
  {body}
}}"""
THREADS = """
  %threads = load i64, ptr %workspace
  %threads.float = sitofp i64 %threads to double
  store double %threads.float, ptr %x
  ret i64 0"""
UNTIL_INTERRUPTED = """
  %asked.at = getelementptr %workspace, ptr %workspace, i32 0, i32 3
  %ask = load ptr, ptr %asked.at
  %last = alloca i64
  store i64 0, ptr %last
  br label %portion
portion:
  br label %work
work:
  %done = phi i64 [ 0, %portion ], [ %more, %work ]
  %more = add i64 %done, 1
  store volatile i64 %more, ptr %x
  %is.done = icmp eq i64 %more, 2000000
  br i1 %is.done, label %poll, label %work
poll:
  %answer = call i64 %ask(ptr %last)
  %stops = icmp sgt i64 %answer, 0
  br i1 %stops, label %stop, label %portion
stop:
  ret i64 3"""
"""A loop in portions of about a millisecond; no signal is handled after shorter ones."""


def loaded(body, *, target="toy", code=None):
    module = parse(f'target triple = "{triple()}"\n{FIELDS.format(body=body)}')
    code = bytes(target_machine(host_cpu()).emit_object(module)) if code is None else code
    x = BufferParam("x", "X", "float64", (index(1),), is_read=True, is_written=True)
    return load_kernel(Artifact("toy", "1.0", target, Signature("f", (x,), (), ("x",)), code))


@pytest.mark.parametrize("count", [1, 3])
def test_a_kernel_gets_the_threads_of_its_target(count):
    values = np.zeros(1)
    loaded(THREADS, target=f"toy:threads={count}")(values)
    assert values.tolist() == [count]


def test_a_bad_number_of_threads_names_the_backend():
    with pytest.raises(ArgumentError, match=r"as in toy:threads=2") as caught:
        loaded(THREADS, target="toy:threads=many")
    assert caught.value.code == "threads.count"


def test_bytes_that_are_not_object_code_are_refused():
    with pytest.raises(ArgumentError) as caught:
        loaded(THREADS, code=b"\x7fELF")
    assert caught.value.code == "host_runtime.object"


class Stopped(Exception):
    """Raised by the signal handler of the test."""


@pytest.mark.skipif(os.name != "posix", reason="this system has no signals of this kind")
def test_a_signal_handler_that_raises_ends_a_loop():
    def stop(*_):
        raise Stopped

    before = signal.signal(signal.SIGUSR1, stop)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(Stopped):
            loaded(UNTIL_INTERRUPTED)(np.zeros(1))
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)


def test_the_data_layout_is_that_of_the_target_machine():
    assert data_layout(host_cpu()) == str(target_machine(host_cpu()).target_data)
