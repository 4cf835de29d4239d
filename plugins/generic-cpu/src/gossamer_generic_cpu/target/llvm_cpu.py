"""A CPU as LLVM describes it, and this machine's."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from gossamer_generic_cpu.target.architecture import architecture


class Cpu(NamedTuple):
    """A CPU as LLVM names it: `features` as in `+avx2,-avx512f`, `required` those that a machine
    must have to run the code."""

    name: str
    features: str
    required: frozenset[str]


@cache
def host_cpu() -> Cpu:
    """The CPU of this machine with exactly its features; vectors of 512 bits are used where it has
    them."""
    import llvmlite.binding as llvm  # a process whose kernels are all cached does without

    features = dict(llvm.get_host_cpu_features())
    required = frozenset(name for name, is_present in features.items() if is_present)
    if architecture() == "x86_64":
        features["prefer-256-bit"] = False
    text = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    return Cpu(llvm.get_host_cpu_name(), text, required)
