"""Kernels in the emulated process: arguments, lengths of vectors, errors, and what a process survives."""

import os
import threading

import numpy as np
import pytest

from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.interchange.records import Target
from gossamer_llvm_sve.backend import LlvmSve
from gossamer_llvm_sve.emulation import emulated_kernel
from gossamer_llvm_sve.emulation.emulator import emulator_of

DOUBLE = ("for i in T.serial(n):", "    Y[i] = X[i] + X[i]")
WRITES_FAR_AWAY = ("Y[n * 1099511627776] = 1.0",)


def doubled(kernel, count=5):
    x, y = np.arange(count, dtype=np.float32), np.zeros(count, np.float32)
    kernel(x, y)
    return (y == 2 * x).all()


@pytest.mark.parametrize("bits", [128, 256, 512, 1024, 2048])
def test_the_vectors_have_the_length_of_the_target(bits, flat, load):
    kernel = load(flat("Y[0] = T.vscale()", dtype="int64"), f"llvm-sve:vector_bits={bits}")
    x, y = np.zeros((2, 1), np.int64)
    kernel(x, y)
    assert y.tolist() == [bits // 128]


def test_a_kernel_says_that_it_is_emulated(flat, load):
    assert load(flat(*DOUBLE)).emulator == "qemu-aarch64-static"


def test_arguments_beyond_the_registers_are_passed_on_the_stack(flat, load):
    """More than 8 integers and more than 8 floats, in turns."""
    names = [f"{kind}{number}" for number in range(12) for kind in ("a", "f", "d")]
    dtypes = {"a": "int32", "f": "float32", "d": "float64"}
    parameters = "".join(f", {name}: T.{dtypes[name[0]]}" for name in names)
    lines = [f"Y[{at}] = T.cast({name}, 'float64')" for at, name in enumerate(names)]
    kernel = load(flat(*lines, dtype="float64", parameters=parameters))
    values = [at * (1 if name[0] == "a" else 0.5) for at, name in enumerate(names)]
    x, y = np.zeros((2, len(names)))
    kernel(x, y, len(names), *values)
    assert y.tolist() == values


def test_too_many_parameters_are_refused(flat):
    parameters = "".join(f", a{number}: T.int64" for number in range(80))
    artifact = LlvmSve().compile(flat(*DOUBLE, parameters=parameters), Target("llvm-sve"))
    with pytest.raises(ArgumentError) as caught:
        emulated_kernel.emulated_kernel(artifact, vector_bits=128)
    assert caught.value.code == "llvm_sve.parameters"


def test_a_failed_bounds_check_names_the_buffer(flat, load):
    kernel = load(flat("T.guard(n < 3, X)", "Y[0] = X[0]"))
    with pytest.raises(ArgumentError, match="'X' out of bounds"):
        doubled(kernel)


def test_a_crash_is_an_error_and_the_next_call_has_another_process(flat, load):
    good, bad = load(flat(*DOUBLE)), load(flat(*WRITES_FAR_AWAY))
    assert doubled(good)
    for _ in range(2):
        with pytest.raises(InternalError, match="emulated process ended in a kernel"):
            doubled(bad)
        assert doubled(good)


def test_an_interrupt_is_raised_by_the_call(flat, load, monkeypatch):
    kernel = load(flat(*DOUBLE))

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(emulated_kernel, "_arguments", interrupted)
        with pytest.raises(KeyboardInterrupt):
            doubled(kernel)
    assert doubled(kernel)


def test_an_object_file_that_is_none_is_refused(flat, load):
    load(flat(*DOUBLE))
    with pytest.raises(InternalError, match="it is not an object file for AArch64"):
        emulator_of(128).call(bytes(64), [])
    assert doubled(load(flat(*DOUBLE)))


def test_a_forked_child_has_a_process_of_its_own(flat, load):
    kernel = load(flat(*DOUBLE))
    assert doubled(kernel)
    child = os.fork()
    if not child:
        os._exit(0 if doubled(kernel) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert doubled(kernel)


def test_kernels_share_a_process_among_threads(flat, load):
    kernels = [load(flat(*DOUBLE)), load(flat(*DOUBLE, "Y[0] = X[0]"))]
    results = []
    threads = [
        threading.Thread(target=lambda kernel=kernel: results.append(doubled(kernel)))
        for kernel in kernels * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8
