"""The conformance suite of the testkit, natively or by the emulator."""

from gossamer_llvm_sve.backend import ScalableBackend
from gossamer_llvm_sve.vector_extension import RVV, SVE
from gossamer_testkit import BackendSuite


class TestLlvmSve(BackendSuite):
    backend = ScalableBackend(SVE)
    targets = ("llvm-sve:vector_bits=256",)


class TestLlvmRvv(BackendSuite):
    backend = ScalableBackend(RVV)
    targets = ("llvm-rvv:vector_bits=256",)
