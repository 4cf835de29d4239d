"""CPUs that code can be compiled for on any machine, by architecture and LLVM's names.

LLVM only prints a warning for an unknown name, so names are checked here.

The tables are not those of archspec: its names of CPUs (`zen4` for `znver4`) and of features (`abm` for
`lzcnt`) are not LLVM's. Version 0.2.7 lacks avx512fp16 for Sapphire Rapids, has no cache sizes, and maps a
machine to the nearest CPU in its table; code for the host is compiled for exactly the features that LLVM
finds.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer_host_runtime import Cpu


class CpuTable(msgspec.Struct, frozen=True):
    """The CPUs of an architecture, each with its features besides those that all have (`base`). If the
    architecture is not this machine's, the first is the default. A target may add the features `optional`.
    `tuning` is a switch of LLVM in the form of a feature.

    >>> CPU_TABLES["riscv64"].cpu("generic", added=frozenset({"zbb"})).features
    '+a,+c,+d,+f,+m,+zbb'
    """

    triple: str
    cpus: Mapping[str, frozenset[str]]
    base: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    tuning: str | None = None

    def cpu(self, name: str, *, added: frozenset[str] = frozenset()) -> Cpu:
        """Return a CPU of the table with more features."""
        # LLVM has the features of a CPU by its name.
        switches = [f"+{feature}" for feature in sorted(self.base | added)]
        tuned = [self.tuning] if self.tuning is not None else []
        return Cpu(name, ",".join([*switches, *tuned]), self.cpus[name] | added)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Features that LLVM does not need for arithmetic (aes, clwb, rdseed, ...) are omitted.
_V2 = _words("cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2")
_V3 = _V2 | _words("avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave")
_V4 = _V3 | _words("avx512f avx512bw avx512cd avx512dq avx512vl")
_ICELAKE = _V4 | _words(
    "avx512vbmi avx512ifma avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq gfni vpclmulqdq"
)
_X86_CPUS = {
    "x86-64": frozenset[str](),
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V4,
    "haswell": _V3,
    "skylake": _V3 | _words("adx"),
    "skylake-avx512": _V4 | _words("adx"),
    "cascadelake": _V4 | _words("adx avx512vnni"),
    "icelake-server": _ICELAKE | _words("adx"),
    "sapphirerapids": _ICELAKE | _words("adx avx512bf16 avx512fp16 avxvnni"),
    "znver3": _V3 | _words("adx sse4a vpclmulqdq"),
    "znver4": _ICELAKE | _words("adx sse4a avx512bf16"),
}

_ARM_V8_2 = _words("crc dotprod fullfp16 lse rcpc rdm")
_ARM_V8_4 = _ARM_V8_2 | _words("bf16 i8mm sve")

_X86_64 = CpuTable(
    triple="x86_64-unknown-linux-gnu",
    cpus=_X86_CPUS,
    optional=frozenset().union(*_X86_CPUS.values()),
    # LLVM would split vectors of 512 bits on CPUs that it believes to lower their clock.
    tuning="-prefer-256-bit",
)
_AARCH64 = CpuTable(
    triple="aarch64-unknown-linux-gnu",
    cpus={
        "generic": frozenset(),
        "cortex-a72": _words("crc"),
        "neoverse-n1": _ARM_V8_2,
        "neoverse-v1": _ARM_V8_4,
        "neoverse-v2": _ARM_V8_4 | _words("sve2"),
    },
    optional=_ARM_V8_2,
)
_RISCV64 = CpuTable(
    triple="riscv64-unknown-linux-gnu",
    cpus={"generic": frozenset(), "sifive-u74": frozenset()},
    # Linux needs these, and its distributions are compiled for them.
    base=_words("a c d f m"),
    optional=_words("v zba zbb zbs"),
)

CPU_TABLES = {"x86_64": _X86_64, "aarch64": _AARCH64, "riscv64": _RISCV64}
"""The tables by the first part of LLVM's triple."""
