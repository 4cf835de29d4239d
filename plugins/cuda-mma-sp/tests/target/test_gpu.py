"""The options of targets, and code for each of them on any machine."""

import subprocess
import sys

import pytest

from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.target import architectures
from gossamer_cuda_mma_sp.target.architectures import ARCHITECTURES
from gossamer_cuda_mma_sp.target.gpu import gpu_of, machine_of_gpu
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import print_module

BACKEND = CudaBackend()
LOOP = ("for i in T.serial(n):", "    Y[i] = X[i] * 2.0")


@pytest.mark.parametrize(
    ("target", "code", "expected"),
    [
        ("cuda-mma-sp:cpu=sm_80", "cuda.option", "arch, ptx, multiprocessors, driver"),
        ("cuda-mma-sp:arch=sm_60", "cuda.option_value", "sm_70"),
        ("cuda-mma-sp:arch=sm_90,ptx=7.0", "cuda.option_value", "7.8"),
        ("cuda-mma-sp:ptx=85", "cuda.option_value", "8.5"),
        ("cuda-mma-sp:multiprocessors=0", "cuda.option_value", "from 1 to 9999"),
        ("cuda-mma-sp:driver=cuda", "cuda.option_value", "interpreter"),
        ("cuda-mma-sp:multiprocessors=many", "cuda.option_value", "from 1 to 9999"),
    ],
)
def test_refused_targets(target, code, expected, flat):
    parsed = Target.parse(target)
    with pytest.raises(ArgumentError, match=expected) as caught:
        BACKEND.compile(flat(*LOOP), parsed)
    assert caught.value.code == code
    probe = BACKEND.probe(parsed)
    assert not probe.is_usable
    assert caught.value.diagnostics[0].message in probe.reason


def test_the_machine_is_that_of_the_architecture():
    machine = machine_of_gpu(Target.parse("cuda-mma-sp:arch=sm_86,multiprocessors=28"))
    assert (machine.grid.multiprocessors, machine.grid.shared_memory) == (28, 49152)
    assert gpu_of(Target.parse("cuda-mma-sp:arch=sm_86,ptx=9.0")).llvm_features == "+ptx90"


def test_a_version_of_two_digits_is_later_than_one_of_one_digit(monkeypatch):
    monkeypatch.setattr(architectures, "PTX_VERSIONS", (*architectures.PTX_VERSIONS, "10.0"))
    monkeypatch.setattr(architectures, "SPARSE_PTX", "10.0")
    assert ARCHITECTURES["sm_90"].default_ptx == "10.0"


EACH_PAIR = """
import sys
from gossamer_cuda_mma_sp.backend import CudaBackend
from gossamer_cuda_mma_sp.device_code import DeviceCode
from gossamer_ir.interchange.records import Target
from gossamer_ir.script import parse_module

module = parse_module(sys.stdin.read())
for text in sys.argv[1:]:
    target = Target.parse(text)
    head = DeviceCode.decode(CudaBackend().compile(module, target).code).ptx.split("{")[0]
    assert f".version {target.option('ptx')}\\n.target {target.option('arch')}\\n" in head, head
    print(text, flush=True)
"""
"""In a process of its own: LLVM ends the process for a pair that it does not know."""


def test_each_architecture_compiles_with_each_version_of_ptx(flat):
    targets = [
        f"cuda-mma-sp:arch={name},ptx={version}"
        for name, architecture in ARCHITECTURES.items()
        for version in architecture.versions
    ]
    done = subprocess.run(
        [sys.executable, "-c", EACH_PAIR, *targets],
        input=print_module(flat(*LOOP)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == targets, done.stderr
