"""The CPU of this machine, found without LLVM, whose import takes longer than loading a kernel."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from typing import NamedTuple

from gossamer_generic_cpu.target.architecture import architecture, vector_bits
from gossamer_generic_cpu.target.llvm_cpu import host_cpu

_CPUINFO = "/proc/cpuinfo"
_FIRST_CPU = 16_384
"""The number of bytes to read, enough for the entry of the first CPU."""

_FIELDS = frozenset({"vendor_id", "cpu family", "model", "model name", "stepping", "flags"})
"""The fields that may affect machine code; others change from boot to boot."""


class Host(NamedTuple):
    """A machine: `digest` differs between machines that may need different code; `vector_bits` is the width
    of vector registers."""

    digest: str
    vector_bits: str


@cache
def host() -> Host:
    """Return the machine on which this process runs."""
    fields = _cpuinfo() if sys.platform == "linux" and architecture() == "x86_64" else {}
    if "flags" in fields:
        flags, known = frozenset(fields["flags"].split()), repr(sorted(fields.items()))
    else:
        flags, known = host_cpu().required, f"{host_cpu().name} {host_cpu().features}"
    content = f"{sys.platform} {architecture()} {known}".encode()
    return Host(f"host-{hashlib.sha256(content).hexdigest()[:12]}", vector_bits(flags))


def _cpuinfo() -> dict[str, str]:
    try:
        with open(_CPUINFO, "rb") as file:
            text = file.read(_FIRST_CPU).decode("ascii", "replace")
    except OSError:
        return {}
    lines = text.partition("\n\n")[0].splitlines()
    pairs = (line.partition(":")[::2] for line in lines)
    return {name.strip(): value.strip() for name, value in pairs if name.strip() in _FIELDS}
