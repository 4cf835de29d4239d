"""Shared by backends for the CPU of this machine: loading of object code, threads, detection of the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_host_runtime.detection.architecture import architecture
    from gossamer_host_runtime.detection.host import Host, host
    from gossamer_host_runtime.detection.llvm_cpu import Cpu, host_cpu
    from gossamer_host_runtime.native_kernel import load_kernel
    from gossamer_host_runtime.native_target import data_layout, target_machine, triple
    from gossamer_host_runtime.parallel.threads import parallelism_of, share_openmp_threads
    from gossamer_host_runtime.vector_length import scalable_vector_bits

_HOMES = {
    "Cpu": "gossamer_host_runtime.detection.llvm_cpu",
    "Host": "gossamer_host_runtime.detection.host",
    "architecture": "gossamer_host_runtime.detection.architecture",
    "data_layout": "gossamer_host_runtime.native_target",
    "host": "gossamer_host_runtime.detection.host",
    "host_cpu": "gossamer_host_runtime.detection.llvm_cpu",
    "load_kernel": "gossamer_host_runtime.native_kernel",
    "parallelism_of": "gossamer_host_runtime.parallel.threads",
    "scalable_vector_bits": "gossamer_host_runtime.vector_length",
    "share_openmp_threads": "gossamer_host_runtime.parallel.threads",
    "target_machine": "gossamer_host_runtime.native_target",
    "triple": "gossamer_host_runtime.native_target",
}

__all__ = [
    "Cpu",
    "Host",
    "architecture",
    "data_layout",
    "host",
    "host_cpu",
    "load_kernel",
    "parallelism_of",
    "scalable_vector_bits",
    "share_openmp_threads",
    "target_machine",
    "triple",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
