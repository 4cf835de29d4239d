"""Kernels of programs and modules, from the caches in memory and on disk, or compiled and stored there.

A program key identifies a program with the stats by which rules schedule it, a request key a module with its
schedule, an object key a flat module: requests with equal flat modules share one entry. `docs/caching.md`
describes the cache on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias, TypedDict
from weakref import WeakValueDictionary

import msgspec

from gossamer.compilation.pipeline import lower_for, schedule_for_target, stats_for_rules
from gossamer.targets.parse_target import DEFAULT_TARGET, parse_target
from gossamer.targets.resolve_target import (
    extension_entry_points,
    resolve_elsewhere,
    resolve_target,
)
from gossamer_backend import (
    ArtifactCache,
    FactChecker,
    GeneratedCheck,
    Kernel,
    object_key,
    package_versions,
    program_key,
    request_key,
)
from gossamer_backend.internal_api import extension_versions
from gossamer_ir.errors import ArgumentError, PluginError
from gossamer_ir.interchange.records import Schedule, Stats, Target
from gossamer_ir.nodes import Module
from gossamer_support.bounded_dict import put_bounded
from gossamer_support.fork import compiling
from gossamer_support.garbage_collection import pause_collection

if TYPE_CHECKING:
    from gossamer_backend import Artifact
    from gossamer_backend.internal_api import ValidatingBackend
    from gossamer_machine import Machine
    from gossamer_support.plugins.installed_distributions import EntryPoint

DISTRIBUTIONS = (
    "gossamer",
    "gossamer-support",
    "gossamer-ir",
    "gossamer-machine",
    "gossamer-heuristics",
    "gossamer-schedule",
    "gossamer-lower",
    "gossamer-backend",
    "gossamer-llvm",
    "gossamer-host-runtime",
)
"""The packages whose versions are part of each cache key, besides those of the backend and its
extensions."""


class BuiltKernel(msgspec.Struct, frozen=True):
    """A kernel, the duration of its build in milliseconds, whether its code came from a cache, and its
    key in the cache."""

    kernel: Kernel
    compile_ms: float
    is_cached: bool
    key: str


MAX_KERNELS = 1024
"""The number of programs, and that of requests, whose kernels are kept in memory; others are loaded from disk
again."""

_ProgramKey: TypeAlias = tuple[Hashable, Stats | None, str]


class KernelCache:
    """The kernels of a process, in front of those that are stored on disk.

    A kernel is looked for in this order, and compiled if it is nowhere. Each level below is found by more of
    the work, and what it has is put into those above:

    1. in memory, by the records of the program, the class of its stats and the text of the target;
    2. on disk, by the program key;
    3. in memory, by the request key, which needs the module and its schedule;
    4. on disk, by the request key;
    5. on disk, by the object key, which needs the flat module.

    `build_program` begins with the first level, `build_module` with the third. An artifact from disk is
    loaded once, whatever the key that leads to it.
    """

    def __init__(self) -> None:
        self._by_program: dict[_ProgramKey, BuiltKernel] = {}
        self._by_request: dict[str, Kernel] = {}
        self._by_code: WeakValueDictionary[tuple[object, ...], Kernel] = WeakValueDictionary()
        """The loaded kernels by target, signature, checked buffers and code."""

    def __len__(self) -> int:
        """Return the number of programs whose kernels are in memory."""
        return len(self._by_program)

    def forget(self) -> None:
        """Drop all kernels, as a new process has none; those that are in use stay valid."""
        for kernels in (self._by_program, self._by_request, self._by_code):
            kernels.clear()

    def build_program(
        self,
        program: Hashable,
        make_module: Callable[[], Module],
        *,
        target: str | Target | None = None,
        stats: Stats | None = None,
    ) -> BuiltKernel:
        """Return the kernel of a program, with the schedule that rules choose for the class of the stats.

        `program` is a text, bytes, or a tuple of records that identifies the program on disk, too. Its module
        is only made if no kernel is cached for it, for this machine and for these versions of all packages.
        Errors are those of `build_module`.
        """
        wanted = DEFAULT_TARGET if target is None else target
        text = wanted if isinstance(wanted, str) else parse_target(wanted).text
        # With exact stats in the key, hardly any kernel would be shared.
        key = (program, stats_for_rules(stats), text)
        built = self._by_program.get(key)
        if built is not None:
            return built
        with compiling, pause_collection():
            # Another thread may have built it in the meantime.
            built = self._by_program.get(key)
            if built is None:
                built = self._build_program(key, make_module, target=wanted)
                put_bounded(self._by_program, key, built, limit=MAX_KERNELS)
        return built

    def _build_program(
        self, key: _ProgramKey, make_module: Callable[[], Module], *, target: str | Target
    ) -> BuiltKernel:
        """Return the kernel of a program that is not in memory."""
        start = time.perf_counter()
        program, stats, _ = key
        backend, resolved = resolve_target(target)
        on_disk = program_key(
            msgspec.json.encode(program), stats, **_environment(backend, resolved)
        )
        kernel = self._load_stored(on_disk, backend)
        is_cached = kernel is not None
        if kernel is None:
            built = self.build_module(make_module(), target=resolved, stats=stats)
            kernel, is_cached = built.kernel, built.is_cached
            # A link, since the request by its module has stored the code. Not for one more class of stats
            # with a kernel of this process: mini-batches would write files as long as new classes occur.
            if all(other.kernel is not kernel for other in self._by_program.values()):
                ArtifactCache().put_link(on_disk, built.key)
        return BuiltKernel(kernel, _milliseconds_since(start), is_cached, on_disk)

    def build_module(
        self,
        module: Module,
        *,
        target: str | Target = DEFAULT_TARGET,
        schedule: Schedule | None = None,
        stats: Stats | None = None,
    ) -> BuiltKernel:
        """Compile a module of any stage for a target.

        Without `schedule`, the default rules choose one by the pattern of the computation and by `stats`.
        Raises `VerifyError`, `ScheduleError`, `UnsupportedError`, `PluginError`, and `ArgumentError` for a
        target that is unknown or does not work on this machine.

        >>> from gossamer.operator_calls.operator_program import Variant, module_of
        >>> from gossamer.operators.spmv import PROGRAM
        >>> module = module_of(PROGRAM, Variant())
        >>> first, second = KERNELS.build_module(module), KERNELS.build_module(module)
        >>> second.is_cached, second.kernel is first.kernel, second.key == first.key
        (True, True, True)
        """
        start = time.perf_counter()
        with compiling, pause_collection():
            backend, resolved = resolve_target(target)
            if schedule is None:
                schedule = schedule_for_target(module, resolved, stats)
            key = request_key(module, schedule, **_environment(backend, resolved))
            kernel = self._by_request.get(key) or self._load_stored(key, backend)
            is_cached = kernel is not None
            if kernel is None:
                flat = lower_for(resolved, module, schedule)
                flat_key = _flat_key(flat, backend, resolved)
                kernel = self._load_stored(flat_key, backend)
                is_cached = kernel is not None
                if kernel is None:
                    kernel = self._load(_compile(flat, backend, resolved, key=flat_key), backend)
                # The next request need not lower the module to find the code.
                ArtifactCache().put_link(key, flat_key)
            # Not moved to the end if it is there: the order is that of insertion, as for all entries.
            if key not in self._by_request:
                put_bounded(self._by_request, key, kernel, limit=MAX_KERNELS)
        return BuiltKernel(kernel, _milliseconds_since(start), is_cached, key)

    def _load_stored(self, key: str, backend: ValidatingBackend) -> Kernel | None:
        """Return the kernel of an artifact on disk; one that the backend refuses is removed."""
        store = ArtifactCache()
        artifact = store.get(key)
        if artifact is None:
            return None
        try:
            return self._load(artifact, backend)
        except (ArgumentError, PluginError):
            # The next process would try, and fail, again.
            store.discard(key)
            return None

    def _load(self, artifact: Artifact, backend: ValidatingBackend) -> Kernel:
        """Return the kernel of an artifact. Another key may lead to the same code, which is then loaded
        once."""
        made_by = (artifact.backend, artifact.backend_version, artifact.target)
        code = (*made_by, artifact.signature, artifact.bounds_checked_buffers, artifact.code)
        kernel = self._by_code.get(code)
        if kernel is None:
            kernel = self._by_code[code] = backend.load(artifact)
            kernel.set_fact_checker(fact_checker(artifact.target))
        return kernel


KERNELS = KernelCache()
"""The kernels of this process."""


def compile_artifact(
    module: Module, *, target: str | Target = DEFAULT_TARGET, schedule: Schedule | None = None
) -> Artifact:
    """Return the code of a module, from the cache if possible, also for a target that does not work on this
    machine. Errors as those of `KernelCache.build_module`."""
    with compiling, pause_collection():
        backend, resolved = resolve_elsewhere(target)
        if schedule is None:
            # Without stats, since an exported kernel is for any matrix.
            schedule = schedule_for_target(module, resolved, None)
        key = request_key(module, schedule, **_environment(backend, resolved))
        store = ArtifactCache()
        artifact = store.get(key)
        if artifact is None:
            flat = lower_for(resolved, module, schedule)
            flat_key = _flat_key(flat, backend, resolved)
            artifact = store.get(flat_key) or _compile(flat, backend, resolved, key=flat_key)
            store.put_link(key, flat_key)
    return artifact


@cache
def fact_checker(target: str) -> FactChecker:
    """Return a checker of facts about arrays with kernels for a target."""
    return GeneratedCheck(partial(program_kernel, target=target))


def program_kernel(program: bytes, make_module: Callable[[], Module], *, target: str) -> Kernel:
    """Return the kernel of `KernelCache.build_program` alone."""
    return KERNELS.build_program(program, make_module, target=target).kernel


def _flat_key(flat: Module, backend: ValidatingBackend, target: Target) -> str:
    return object_key(flat, target=target, versions={backend.name: backend.version})


def _compile(flat: Module, backend: ValidatingBackend, target: Target, *, key: str) -> Artifact:
    """Compile a flat module, and store its code in the cache."""
    artifact = backend.compile(flat, target)
    ArtifactCache().put(key, artifact)
    return artifact


class _Environment(TypedDict):
    """The dependences of a kernel besides its program: the parts of the keys of requests that they share."""

    target: Target
    machine: Machine
    versions: dict[str, str]


def _environment(backend: ValidatingBackend, target: Target) -> _Environment:
    """Return the environment of a resolved target."""
    machine = backend.machine(target)
    return {"target": target, "machine": machine, "versions": _versions(backend)}


def _versions(backend: ValidatingBackend) -> dict[str, str]:
    extensions = extension_entry_points(backend.name)
    return {**_package_versions(), backend.name: backend.version, **_extension_versions(extensions)}


@cache
def _extension_versions(extensions: tuple[EntryPoint, ...]) -> dict[str, str]:
    return extension_versions(extensions)


@cache
def _package_versions() -> dict[str, str]:
    return package_versions(DISTRIBUTIONS)


def _milliseconds_since(start: float) -> float:
    """Return the milliseconds since the start."""
    return (time.perf_counter() - start) * 1e3
