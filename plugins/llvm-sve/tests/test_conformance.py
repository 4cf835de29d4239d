"""The conformance suite of the testkit, natively or by the emulator."""

from gossamer_llvm_sve.backend import LlvmSve
from gossamer_testkit import BackendSuite


class TestLlvmSve(BackendSuite):
    backend = LlvmSve()
    targets = ("llvm-sve:vector_bits=256",)
