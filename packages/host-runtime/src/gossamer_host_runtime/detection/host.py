"""The CPU of this machine, found without LLVM, whose import takes longer than loading a kernel.

Whether gathers are slow follows from the state of a vulnerability: the mitigation of gather data sampling
(Intel's Skylake to Ice Lake) makes a gather wait for each element. There SpMV by gathers was measured 2 to
4 times slower than by scalar loads. On Intel's CPUs without it, SpMV of SELL by gathers was measured 1.2 to
1.8 times faster than by scalar loads (Emerald Rapids), on AMD's 0.7 times as fast (Zen 4)."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from gossamer_backend.plugin_api import available_cpus
from gossamer_host_runtime.detection.architecture import architecture
from gossamer_host_runtime.detection.caches import cache_bytes, shared_cache_bytes
from gossamer_host_runtime.detection.linux_features import linux_features, linux_identity
from gossamer_host_runtime.detection.llvm_cpu import host_cpu

_CPUINFO = "/proc/cpuinfo"
_FIRST_CPU = 16_384
"""The number of bytes to read, enough for the entry of the first CPU."""

_FIELDS = frozenset({"vendor_id", "cpu family", "model", "model name", "stepping", "flags"})
"""The fields that may affect machine code; others change from boot to boot."""


_GATHER_DATA_SAMPLING = Path("/sys/devices/system/cpu/vulnerabilities/gather_data_sampling")


class Host(msgspec.Struct, frozen=True):
    """A machine: `digest` differs between machines that may need different code; `features` are those of its
    CPU; `options` are options of a target that describe its caches, gathers and cores to rules for schedules,
    without those that are unknown.

    >>> Host("host-0", frozenset({"avx2"}), {"cores": "2"}).options["cores"]
    '2'
    """

    digest: str
    features: frozenset[str]
    options: Mapping[str, str]


@cache
def host() -> Host:
    """Return the machine on which this process runs.

    >>> host().digest.startswith("host-"), int(host().options["cores"]) > 0
    (True, True)
    """
    fields = _cpuinfo() if sys.platform == "linux" and architecture() == "x86_64" else {}
    reported = linux_features()
    if "flags" in fields:
        features, identity = frozenset(fields["flags"].split()), repr(sorted(fields.items()))
    elif reported is not None:
        features = frozenset(name for name, is_present in reported.items() if is_present)
        identity = f"{linux_identity()} {sorted(features)}"
    else:
        features, identity = host_cpu().required, f"{host_cpu().name} {host_cpu().features}"
    content = f"{sys.platform} {architecture()} {identity}".encode()
    return Host(
        f"host-{hashlib.sha256(content).hexdigest()[:12]}",
        features,
        _options(fields.get("vendor_id", "")),
    )


def _options(vendor: str) -> dict[str, str]:
    caches = {"l2": cache_bytes(2), "l3": shared_cache_bytes(vendor)}
    sizes = {name: str(size) for name, size in caches.items() if size}
    speed, cores = gather_speed(vendor), str(available_cpus())
    return {**sizes, "gathers": speed, "cores": cores}


def gather_speed(vendor: str, file: Path = _GATHER_DATA_SAMPLING) -> str:
    """Return which of `GATHER_SPEEDS` this machine has, for a vendor as in `/proc/cpuinfo`."""
    if are_gathers_slow(file):
        return "slow"
    return "fast" if vendor == "GenuineIntel" else "moderate"


def are_gathers_slow(file: Path = _GATHER_DATA_SAMPLING) -> bool:
    """Return whether this machine is affected by gather data sampling. The mitigation of a virtual machine is
    unknown to it, and is assumed."""
    try:
        state = file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    # Vulnerable means not mitigated, so gathers are as fast as ever.
    return not state.startswith(("Not affected", "Vulnerable"))


def _cpuinfo() -> dict[str, str]:
    try:
        with open(_CPUINFO, "rb") as file:
            text = file.read(_FIRST_CPU).decode("ascii", "replace")
    except OSError:
        return {}
    # CPUs are separated by blank lines; the first stands for all.
    lines = text.partition("\n\n")[0].splitlines()
    pairs = (line.partition(":")[::2] for line in lines)
    return {name.strip(): value.strip() for name, value in pairs if name.strip() in _FIELDS}
