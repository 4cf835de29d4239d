"""The conformance suite of the testkit, for the CPU of this machine and for a common one."""

from gossamer_generic_cpu.backend import GenericCpu
from gossamer_testkit import BackendSuite


class TestGenericCpu(BackendSuite):
    backend = GenericCpu()
