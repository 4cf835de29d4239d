"""CPUs as LLVM describes them, and the CPU of this machine."""

from __future__ import annotations

from functools import cache

import msgspec

from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.detection.linux_features import linux_features


class Cpu(msgspec.Struct, frozen=True):
    """A CPU by LLVM's name; `features` as in `+avx2,-avx512f`, `required` are the features that a machine
    must have to run the code.

    >>> Cpu("generic", "+sse4.2", frozenset({"sse4.2"})).name
    'generic'
    """

    name: str
    features: str
    required: frozenset[str]


def any_cpu() -> Cpu:
    """Return a CPU whose code runs on all machines of this architecture with Linux."""
    base = frozenset[str]()
    if architecture() == "riscv64":
        # Imported late: other architectures do not need it.
        from gossamer_host_runtime.detection.riscv64 import RISCV64_BASE

        # LLVM's base of RISC-V has integers alone, without products and atomic operations.
        base = RISCV64_BASE
    return Cpu("generic", ",".join(f"+{name}" for name in sorted(base)), base)


@cache
def host_cpu() -> Cpu:
    """Return the CPU of this machine with exactly its features; vectors of 512 bits are used if it has
    them.

    >>> host_cpu().required <= frozenset(part[1:] for part in host_cpu().features.split(","))
    True
    """
    import llvmlite.binding as llvm  # not needed if all kernels are cached

    features = linux_features() or dict(llvm.get_host_cpu_features())
    required = frozenset(name for name, is_present in features.items() if is_present)
    if architecture() == "x86_64":
        features["prefer-256-bit"] = False
    text = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    return Cpu(llvm.get_host_cpu_name(), text, required)
