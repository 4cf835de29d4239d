"""The conformance suite of the testkit, for the CPU of this machine and for a common one. For other
architectures, only its checks of results, since compilation is the same."""

from gossamer_generic_cpu.backend import GenericCpu
from gossamer_testkit import BackendSuite
from gossamer_testkit.conformance.metadata import MetadataChecks
from gossamer_testkit.conformance.results import ResultChecks


class TestGenericCpu(BackendSuite):
    backend = GenericCpu()
    targets = ("generic-cpu", "generic-cpu:arch=x86-64,cpu=x86-64-v3")


class TestOtherArchitectures(MetadataChecks, ResultChecks):
    backend = GenericCpu()
    targets = (
        "generic-cpu:arch=aarch64",
        "generic-cpu:arch=riscv64",
        "generic-cpu:arch=riscv64,features=v+zba+zbb",
    )
