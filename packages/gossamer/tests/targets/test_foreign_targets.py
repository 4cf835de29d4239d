"""Kernels for other architectures, which run in an emulated process."""

import numpy as np
import pytest
from scipy import sparse

import gossamer as gs
from gossamer.targets.resolve_target import registry
from gossamer_emulation.emulator import emulator_of
from gossamer_generic_cpu.target.emulation import emulated_machine
from gossamer_ir.errors import UserError
from gossamer_ir.interchange.records import Target

MATRIX = sparse.csr_array(np.arange(1, 13, dtype=np.float32).reshape(3, 4))
X = np.array([1, 0, -2, 3], np.float32)


@pytest.mark.parametrize("name", ["aarch64", "riscv64"])
def test_a_kernel_runs_in_a_process_and_in_the_next_one(name):
    target = Target.parse(f"generic-cpu:arch={name}")
    probe = registry.backend("generic-cpu").probe(target)
    if not probe.is_usable:
        pytest.skip(probe.reason)
    machine = emulated_machine(target)
    for _ in range(2):
        np.testing.assert_array_equal(gs.spmv(MATRIX, X, target=target), MATRIX @ X)
        # The next process has the program that is in the cache by now.
        emulator_of(machine).close()


def test_an_architecture_that_is_unknown_is_refused():
    with pytest.raises(UserError, match="'z80' is not an architecture") as caught:
        gs.spmv(MATRIX, X, target="generic-cpu:arch=z80")
    assert caught.value.code == "target.unusable"
