"""The CPU that a target means: this machine's, or one with a name, of any architecture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_generic_cpu.target.vectors import vector_bits
from gossamer_host_runtime import Cpu, architecture, host, host_cpu, parallelism_of
from gossamer_ir.errors import ArgumentError
from gossamer_ir.interchange.records import Target
from gossamer_machine.cpu_options import CPU_OPTIONS, require_options
from gossamer_support.items_by_name import items_by_name

if TYPE_CHECKING:
    from gossamer_generic_cpu.target.cpu_tables import CpuTable

_MODEL = items_by_name(CPU_OPTIONS)
OPTIONS = ("arch", "cpu", "features", "threads", *_MODEL)
_DIGEST_START = "host-"
_ARCHITECTURES = {"x86-64": "x86_64", "aarch64": "aarch64", "riscv64": "riscv64"}
"""The first part of LLVM's triple for each value of the option `arch`."""


def architecture_of(target: Target) -> str:
    """Return the first part of LLVM's triple for the architecture of a target, by default that of this
    machine; raise `ArgumentError` (`generic_cpu.arch`) if it is unknown.

    >>> architecture_of(Target.parse("generic-cpu:arch=x86-64"))
    'x86_64'
    """
    name = target.option("arch")
    if not name:
        return architecture()
    if name not in _ARCHITECTURES:
        raise ArgumentError(
            "generic_cpu.arch",
            f"'{name}' is not an architecture that generic-cpu compiles for.",
            hint=f"Expected one of {', '.join(_ARCHITECTURES)}.",
        )
    return _ARCHITECTURES[name]


def is_cross_compiled(target: Target) -> bool:
    """Return whether a target is for another architecture than that of this machine."""
    return bool(target.option("arch")) and architecture_of(target) != architecture()


def cpu_names(target: Target) -> tuple[str, ...]:
    """Return the names that the option `cpu` accepts for the architecture of a target."""
    names = tuple(_table_of(target).cpus)
    return names if is_cross_compiled(target) else ("host", *names)


def resolve_cpu(target: Target) -> Cpu:
    """Return the CPU of a target; raise `ArgumentError` (`generic_cpu.option`, `generic_cpu.arch`,
    `generic_cpu.cpu`, `generic_cpu.features`, `generic_cpu.option_value`, `threads.count`) if an option or
    its value is unknown."""
    _require_options(target)
    if is_cross_compiled(target):
        return _named_cpu(target, target.option("cpu", _default_cpu(target)))
    name, features = target.option("cpu", "host"), target.option("features")
    # A resolved target: the digest must be that of this machine.
    if name == "host" or features.startswith(_DIGEST_START):
        return _resolved_host(name, features)
    # LLVM supports more CPUs than the table has, possibly also this one.
    is_known = name in _table_of(target).cpus
    if not is_known and not features and name == host_cpu().name:
        return host_cpu()
    return _named_cpu(target, name)


def is_host(target: Target) -> bool:
    """Return whether a target means the CPU of the machine on which it is used."""
    _require_options(target)
    is_unnamed = target.option("cpu", "host") == "host" and not target.option("features")
    return is_unnamed and not is_cross_compiled(target)


def explicit_cpu_target(target: Target) -> str:
    """Return the target with a digest of the machine's CPU if it is `host`, and with what rules for schedules
    use: the width of vector registers, and of this machine the caches and the speed of gathers. It names no
    architecture if that is the one of this machine."""
    options = dict(target.options)
    if is_cross_compiled(target):
        options |= {"cpu": target.option("cpu", _default_cpu(target))}
    else:
        options.pop("arch", None)
    stated = dict(options)
    if is_host(target):
        options |= {"cpu": "host", "features": host().digest}
    # Caches and gathers of this machine say nothing about other machines of the same CPU.
    if options.get("features") == host().digest:
        model = {"vector_bits": vector_bits(host().features), **host().options}
    else:
        model = {"vector_bits": vector_bits(resolve_cpu(target).required)}
    return Target(target.backend, tuple((options | model | stated).items())).text


def gathers_of(target: Target) -> str:
    """Return for which of `GATHER_SPEEDS` code is compiled: that of the target, or of this machine if code is
    compiled for it."""
    stated = _MODEL["gathers"].parse(target.option("gathers"))
    if stated is not None:
        return str(stated)
    is_this = resolve_cpu(target) is host_cpu()
    return host().options["gathers"] if is_this else str(_MODEL["gathers"].default)


def missing_features(required: frozenset[str]) -> tuple[str, ...]:
    """Return the features that this machine lacks."""
    return tuple(sorted(required - host_cpu().required)) if required else ()


def _require_options(target: Target) -> None:
    require_options(target, names=OPTIONS, model=_MODEL, errors="generic_cpu")
    # The function of a kernel's threads is made when it is loaded, but a wrong number is refused before.
    parallelism_of(target)


def _resolved_host(name: str, features: str) -> Cpu:
    """Return the CPU of this machine, if the features are none or its digest."""
    if features and not features.startswith(_DIGEST_START):
        raise ArgumentError(
            "generic_cpu.features",
            f"The features '{features}' cannot be added to those of this machine.",
            hint="Name a CPU by cpu=, too.",
        )
    if features and (name, features) != ("host", host().digest):
        raise ArgumentError(
            "generic_cpu.features",
            f"The features '{features}' of '{name}' are those of another machine.",
            hint="Give cpu= alone.",
        )
    return host_cpu()


def _table_of(target: Target) -> CpuTable:
    # Imported late: most processes run code for their own machine.
    from gossamer_generic_cpu.target.cpu_tables import CPU_TABLES, CpuTable

    generic = CpuTable("", {"generic": frozenset()})
    return CPU_TABLES.get(architecture_of(target), generic)


def _default_cpu(target: Target) -> str:
    return next(iter(_table_of(target).cpus))


def _named_cpu(target: Target, name: str) -> Cpu:
    table = _table_of(target)
    if name not in table.cpus:
        raise ArgumentError(
            "generic_cpu.cpu",
            f"'{name}' is not a CPU that generic-cpu compiles for on {architecture_of(target)}.",
            hint=f"Expected one of {', '.join(cpu_names(target))}.",
        )
    text = target.option("features")
    added = frozenset(text.split("+")) if text else frozenset()
    if not added <= table.optional:
        raise ArgumentError(
            "generic_cpu.features",
            f"'{text}' are not features that can be added to '{name}'.",
            hint=f"Expected some of {', '.join(sorted(table.optional))}, joined by '+'.",
        )
    return table.cpu(name, added=added)
