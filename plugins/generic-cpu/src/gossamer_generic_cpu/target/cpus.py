"""CPUs that code can be compiled for: this machine's, and a table of others by name.

LLVM only prints a warning for an unknown name, so names are checked here.

The table is not that of archspec: its names of CPUs (`zen4` for `znver4`) and of features (`abm` for `lzcnt`)
are not LLVM's. Version 0.2.7 lacks avx512fp16 for Sapphire Rapids, has no cache sizes, and maps a machine to
the nearest CPU in its table; code for the host is compiled for exactly the features that LLVM finds.
"""

from __future__ import annotations

from gossamer_generic_cpu.target.vectors import vector_bits
from gossamer_host_runtime import Cpu, architecture, host, host_cpu
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_ir.support.items_by_name import items_by_name
from gossamer_machine.cpu_options import CPU_OPTIONS

_MODEL = items_by_name(CPU_OPTIONS)
OPTIONS = ("cpu", "features", "threads", *_MODEL)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Features that LLVM does not need for arithmetic (aes, clwb, rdseed, ...) are omitted.
_V2 = _words("cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2")
_V3 = _V2 | _words("avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave")
_V4 = _V3 | _words("avx512f avx512bw avx512cd avx512dq avx512vl")
_ICELAKE = _V4 | _words(
    "avx512vbmi avx512ifma avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq gfni vpclmulqdq"
)
_X86: dict[str, frozenset[str]] = {
    "x86-64": frozenset(),
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
_TABLES: dict[str, dict[str, frozenset[str]]] = {"x86_64": _X86}


def cpu_names() -> tuple[str, ...]:
    """Return the names that the option `cpu` accepts on this architecture."""
    return ("host", *_TABLES.get(architecture(), {"generic": frozenset()}))


def resolve_cpu(target: Target) -> Cpu:
    """Return the CPU of a target; raise `ArgumentError` (`generic_cpu.option`, `generic_cpu.cpu`,
    `generic_cpu.features`, `generic_cpu.option_value`) if an option or its value is unknown."""
    _require_options(target)
    name = target.option("cpu", "host")
    # A resolved target: the digest must be that of this machine.
    if target.option("features"):
        return _resolved_host(name, target.option("features"))
    if name == "host":
        return host_cpu()
    known = _TABLES.get(architecture(), {"generic": frozenset()})
    # LLVM supports more CPUs than the table has, among them perhaps this one.
    if name not in known and name == host_cpu().name:
        return host_cpu()
    if name not in known:
        raise ArgumentError(
            "generic_cpu.cpu",
            f"'{name}' is not a CPU that generic-cpu compiles for on {architecture()}.",
            hint=f"Expected one of {', '.join(cpu_names())}.",
        )
    # LLVM would split vectors of 512 bits on CPUs that it believes to lower their clock.
    features = ["-prefer-256-bit"] if architecture() == "x86_64" else []
    return Cpu(name, ",".join(features), known[name])


def is_host(target: Target) -> bool:
    """Return whether a target means the CPU of the machine on which it is used."""
    _require_options(target)
    return target.option("cpu", "host") == "host" and not target.option("features")


def explicit(target: Target) -> str:
    """Return the target with a digest of the machine's CPU if it is `host`, and with what rules for schedules
    use: the width of vector registers, and of this machine the caches and the speed of gathers."""
    options = dict(target.options)
    if is_host(target):
        options |= {"cpu": "host", "features": host().digest}
    # Caches and gathers of this machine say nothing about other machines of the same CPU.
    if options.get("features") == host().digest:
        model = {"vector_bits": vector_bits(host().features), **host().options}
    else:
        model = {"vector_bits": vector_bits(resolve_cpu(target).required)}
    return Target(target.backend, tuple((options | model | dict(target.options)).items())).text


def gathers_of(target: Target) -> str:
    """Return for which of `GATHER_SPEEDS` code is compiled: that of the target, or of this machine if code is
    compiled for it."""
    given = _MODEL["gathers"].parse(target.option("gathers"))
    if given is not None:
        return str(given)
    is_this = resolve_cpu(target) is host_cpu()
    return host().options["gathers"] if is_this else str(_MODEL["gathers"].default)


def missing_features(required: frozenset[str]) -> tuple[str, ...]:
    """Return the features that this machine lacks."""
    return tuple(sorted(required - host_cpu().required)) if required else ()


def _require_options(target: Target) -> None:
    for key, _ in target.options:
        if key not in OPTIONS:
            raise ArgumentError(
                "generic_cpu.option",
                f"'{key}' is not an option of generic-cpu.",
                hint=f"Expected one of {', '.join(OPTIONS)}.",
            )
        _require_value(target, key)


def _require_value(target: Target, key: str) -> None:
    """Raise if the value of an option of the model is not one of it."""
    option, value = _MODEL.get(key), target.option(key)
    if option is not None and option.parse(value) is None:
        raise ArgumentError(
            "generic_cpu.option_value",
            f"The option {key} of '{target.text}' is '{value}'.",
            hint=f"Expected {option.expected}.",
        )


def _resolved_host(name: str, digest: str) -> Cpu:
    if name != "host" or digest != host().digest:
        raise ArgumentError(
            "generic_cpu.features",
            f"The features '{digest}' of '{name}' are those of another machine.",
            hint="Give cpu= alone.",
        )
    return host_cpu()
