"""Kernels in the emulated process: arguments, errors, and what a process survives."""

import os
import threading

import numpy as np
import pytest
from toy_artifacts import MACHINES, artifact_of

from gossamer_emulation import emulated_kernel
from gossamer_emulation import kernel as kernels
from gossamer_emulation.driver import program
from gossamer_emulation.emulator import emulator_of
from gossamer_ir.errors import ArgumentError, InternalError
from gossamer_ir.interchange.records import ScalarParam

PARAMETERS = "const float *x, float *y, int64_t n, struct gossamer_workspace *workspace"
DOUBLE = f"""
int64_t gossamer_kernel({PARAMETERS}) {{
    for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i];
    return 0;
}}"""
NEGATE = DOUBLE.replace("2 * x[i]", "-x[i]")
WRITES_FAR_AWAY = f"""
int64_t gossamer_kernel({PARAMETERS}) {{
    y[n << 40] = 1;
    return 0;
}}"""
FAILS_FOR_Y = f"""
int64_t gossamer_kernel({PARAMETERS}) {{
    workspace->failed_buffer = 1;
    return 1;
}}"""


def factor_of(kernel, count=5):
    """The factor by which a kernel multiplies, the same for all elements."""
    x, y = np.arange(1, count + 1, dtype=np.float32), np.zeros(count, np.float32)
    kernel(x, y)
    (factor,) = set((y / x).tolist())
    return factor


def test_a_kernel_says_that_it_is_emulated(load, machine):
    assert load(DOUBLE).emulator == f"qemu-{machine.architecture.name}-static"


def test_arrays_without_elements_are_passed(load):
    kernel, empty = load(DOUBLE), np.zeros(0, np.float32)
    kernel(empty, empty.copy())
    assert factor_of(kernel) == 2


ORDERS = {
    "in turns": "afd" * 12,
    "floats first": "f" * 7 + "d" * 11 + "a" * 12,
    "integers first": "a" * 12 + "d" * 11 + "f" * 7,
    "floats only": "f" * 10 + "d" * 10,
}
"""The parameters after the arrays and their size: integers, float32 and float64."""


@pytest.mark.parametrize("kinds", ORDERS.values(), ids=ORDERS)
def test_arguments_are_passed_as_c_compilers_expect_them(kinds, load):
    dtypes = {"a": "int32", "f": "float32", "d": "float64"}
    types = {"a": "int64_t", "f": "float", "d": "double"}
    scalars = [ScalarParam(f"{kind}{number}", dtypes[kind]) for number, kind in enumerate(kinds)]
    listed = "".join(f"{types[param.name[0]]} {param.name}, " for param in scalars)
    body = "".join(f"y[{number}] = {param.name};" for number, param in enumerate(scalars))
    source = (
        f"int64_t gossamer_kernel(double *x, double *y, int64_t n, {listed} void *workspace)"
        f"{{ {body} return 0; }}"
    )
    kernel = load(source, scalars=scalars, dtype="float64")
    values = [-number if kind == "a" else number + 0.5 for number, kind in enumerate(kinds)]
    x, y = np.zeros((2, len(kinds)))
    kernel(x, y, len(kinds), *values)
    assert y.tolist() == values


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_too_many_parameters_are_refused(machine, monkeypatch):
    """8 integers are in registers, among them two arrays and their size, and 64 on the stack, among them the
    workspace."""
    monkeypatch.setattr(kernels, "reason_against_emulation", lambda architecture: None)
    scalars = [ScalarParam(f"a{number}", "int64") for number in range(69)]
    emulated_kernel(artifact_of(b"", scalars=scalars[:68]), machine)
    with pytest.raises(ArgumentError) as caught:
        emulated_kernel(artifact_of(b"", scalars=scalars), machine)
    assert caught.value.code == "emulation.parameters"


def test_programs_that_are_absent_are_named_with_their_packages(monkeypatch):
    monkeypatch.setattr(program.shutil, "which", lambda name: None)
    with pytest.raises(ArgumentError) as caught:
        emulated_kernel(artifact_of(b""), MACHINES["riscv64"])
    assert caught.value.code == "emulation.programs"
    message = caught.value.diagnostics[0].message
    assert "qemu-riscv64-static and riscv64-linux-gnu-gcc" in message
    assert "qemu-user-static gcc-riscv64-linux-gnu libc6-dev-riscv64-cross" in message


def test_the_compiler_is_not_needed_once_it_has_made_the_driver(load, machine, monkeypatch):
    kernel = load(DOUBLE)
    assert factor_of(kernel) == 2
    compiler, find = machine.architecture.compiler, program.shutil.which
    monkeypatch.setattr(
        program.shutil, "which", lambda name: None if name == compiler else find(name)
    )
    assert program.reason_against_emulation(machine.architecture) is None


def test_a_status_is_an_error_that_names_the_buffer(load):
    with pytest.raises(ArgumentError, match="'Y' out of bounds"):
        factor_of(load(FAILS_FOR_Y))


def test_a_crash_is_an_error_and_the_next_call_has_another_process(load):
    good, bad = load(DOUBLE), load(WRITES_FAR_AWAY)
    assert factor_of(good) == 2
    for _ in range(2):
        with pytest.raises(InternalError, match="emulated process ended in a kernel"):
            factor_of(bad)
        assert factor_of(good) == 2


def test_an_interrupt_is_raised_by_the_call(load, monkeypatch):
    kernel = load(DOUBLE)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kernels, "_arguments", interrupted)
        with pytest.raises(KeyboardInterrupt):
            factor_of(kernel)
    assert factor_of(kernel) == 2


def test_an_object_file_that_is_none_is_refused(load, machine):
    kernel = load(DOUBLE)
    with pytest.raises(InternalError, match=r"it is not an object file for (AArch64|RISC-V)\."):
        emulator_of(machine).call(bytes(64), [])
    assert factor_of(kernel) == 2


def test_a_forked_child_has_a_process_of_its_own(load):
    kernel = load(DOUBLE)
    assert factor_of(kernel) == 2
    child = os.fork()
    if not child:
        os._exit(0 if factor_of(kernel) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert factor_of(kernel) == 2


def test_kernels_share_a_process_among_threads(load):
    kernels_by_factor = {2: load(DOUBLE), -1: load(NEGATE)}
    results = []
    threads = [
        threading.Thread(target=lambda run=run: results.append(factor_of(run)))
        for run in [*kernels_by_factor.values()] * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [-1] * 4 + [2] * 4


def test_machines_of_one_architecture_have_processes_of_their_own(load, machine):
    """Vectors of RISC-V have the length of the machine, in bytes in the register vlenb."""
    if machine.architecture.name != "riscv64":
        pytest.skip("lengths of SVE are tested by llvm-sve")
    source = f"""int64_t gossamer_kernel({PARAMETERS}) {{
        int64_t bytes;
        __asm__("csrr %0, vlenb" : "=r"(bytes));
        for (int64_t i = 0; i < n; i++) y[i] = bytes * x[i];
        return 0;
    }}"""
    for bits in (128, 256, 512):
        on = machine._replace(cpu=f"rv64,v=true,vext_spec=v1.0,vlen={bits}")
        assert factor_of(load(source, "-march=rv64gcv", on=on)) == bits // 8
