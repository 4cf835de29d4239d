"""The keys of the cache: of programs, of requests, and of compiled objects.

A key is the SHA-256 of everything that the result depends on; each part is preceded by its length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import msgspec

from gossamer_ir.interchange.kernel_abi import ABI_VERSION
from gossamer_ir.interchange.records import Schedule, Stats, Target
from gossamer_ir.interchange.serialization import dumps, dumps_record
from gossamer_ir.nodes import Module
from gossamer_machine.machine import Machine
from gossamer_support.typed_calls import typed


@typed
def request_key(
    module: Module,
    schedule: Schedule,
    *,
    target: Target | str,
    machine: Machine,
    versions: Mapping[str, str],
) -> str:
    """Return the key of a coordinate module compiled with a schedule for a target and its machine.

    `target` is the resolved one (`Probe.resolved`), so that different machines have different keys;
    `versions` are those of all packages that take part (see `package_versions`).

    >>> flat = Module("flat", (), "main")
    >>> options = {"machine": Machine(), "versions": {"toy": "1.0"}}
    >>> one = request_key(flat, Schedule(), target="toy", **options)
    >>> len(one), one == request_key(flat, Schedule(), target="toy:cpu=any", **options)
    (64, False)
    """
    parts = (dumps(module), dumps_record(schedule), _encode(machine))
    return _digest("request", parts, target, versions)


@typed
def program_key(
    program: bytes,
    stats: Stats | None,
    *,
    target: Target | str,
    machine: Machine,
    versions: Mapping[str, str],
) -> str:
    """Return the key of a program with the schedule that rules choose for a machine and these stats. The
    bytes identify the program; `target` and `versions` as in `request_key`.

    >>> options = {"target": "toy", "machine": Machine(), "versions": {}}
    >>> key = program_key(b"spmv", None, **options)
    >>> len(key), key == program_key(b"spmm", None, **options)
    (64, False)
    """
    facts = b"" if stats is None else dumps_record(stats)
    return _digest("program", (program, facts, _encode(machine)), target, versions)


@typed
def object_key(module: Module, *, target: Target | str, versions: Mapping[str, str]) -> str:
    """Return the key of a flat module compiled for a target; `versions` are those of the backend and of its
    code generator.

    >>> flat = Module("flat", (), "main")
    >>> key = object_key(flat, target="toy", versions={"toy": "1.0"})
    >>> len(key), key == object_key(flat, target="toy", versions={"toy": "1.1"})
    (64, False)
    """
    return _digest("object", (dumps(module),), target, versions)


def _encode(machine: Machine) -> bytes:
    return msgspec.json.encode(machine)


def _digest(
    kind: str, parts: Iterable[bytes], target: Target | str, versions: Mapping[str, str]
) -> str:
    text = target if isinstance(target, str) else target.text
    digest = hashlib.sha256()
    for part in (kind.encode(), str(ABI_VERSION).encode(), text.encode(), *parts):
        digest.update(len(part).to_bytes(8, "little") + part)
    for name, version in sorted(versions.items()):
        for word in (name.encode(), version.encode()):
            digest.update(len(word).to_bytes(8, "little") + word)
    return digest.hexdigest()
