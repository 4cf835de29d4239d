"""Kernels of modules, from the caches in memory and on disk, or compiled and stored there.

A request key identifies a module with its schedule and target, an object key its flat module: requests with
equal flat modules share one entry. `docs/caching.md` describes the cache on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, TypedDict
from weakref import WeakValueDictionary

import msgspec

from gossamer.pipeline import lower_for, schedule_for_target
from gossamer.resolve_target import extension_entry_points, resolve_elsewhere, resolve_target
from gossamer.targets import DEFAULT_TARGET
from gossamer_backend import (
    ArtifactCache,
    FactChecker,
    GeneratedCheck,
    Kernel,
    name_key,
    object_key,
    package_versions,
    request_key,
)
from gossamer_backend.internal_api import extension_versions
from gossamer_ir.errors import ArgumentError, PluginError
from gossamer_ir.interchange.records import Schedule, Stats, Target
from gossamer_ir.nodes import Module
from gossamer_ir.support.bounded_dict import put_bounded
from gossamer_ir.support.fork import compiling
from gossamer_ir.support.garbage_collection import pause_collection

if TYPE_CHECKING:
    from gossamer_backend import Artifact
    from gossamer_backend.internal_api import ValidatingBackend
    from gossamer_ir.plugins.installed_distributions import EntryPoint
    from gossamer_machine import Machine

DISTRIBUTIONS = (
    "gossamer",
    "gossamer-ir",
    "gossamer-machine",
    "gossamer-schedule",
    "gossamer-lower",
    "gossamer-backend",
    "gossamer-llvm",
    "gossamer-host-runtime",
)
"""The packages whose versions are part of each cache key, besides those of the backend and its
extensions."""

MAX_LOADED_KERNELS = 1024
"""The number of keys whose kernels are kept in memory; others are loaded from disk again."""

_kernels_by_key: dict[str, Kernel] = {}
_kernels_by_code: WeakValueDictionary[tuple[object, ...], Kernel] = WeakValueDictionary()
"""The loaded kernels by target, signature, checked buffers and code: requests with equal code share one."""


class BuiltKernel(msgspec.Struct, frozen=True):
    """A kernel, the duration of `build_kernel` in milliseconds, whether its code came from a cache, and its
    key in the cache."""

    kernel: Kernel
    compile_ms: float
    is_cached: bool
    key: str


def build_kernel(
    module: Module,
    *,
    target: str | Target = DEFAULT_TARGET,
    schedule: Schedule | None = None,
    stats: Stats | None = None,
) -> BuiltKernel:
    """Compile a module of any stage for a target.

    Without `schedule`, the default rules choose one by the pattern of the computation and by `stats`.
    Raises `VerifyError`, `ScheduleError`, `UnsupportedError`, `PluginError`, and `ArgumentError` for a target
    that is unknown or does not work on this machine.

    >>> from gossamer.operator_calls.operator_program import Variant, module_of
    >>> from gossamer.operators.spmv import PROGRAM
    >>> module = module_of(PROGRAM, Variant())
    >>> first, second = build_kernel(module), build_kernel(module)
    >>> second.is_cached, second.kernel is first.kernel, second.key == first.key
    (True, True, True)
    """
    start = time.perf_counter()
    with compiling, pause_collection():
        backend, resolved = resolve_target(target)
        if schedule is None:
            schedule = schedule_for_target(module, resolved, stats)
        key = request_key(module, schedule, **_environment(backend, resolved))
        kernel = _kernels_by_key.get(key)
        is_cached = kernel is not None
        if kernel is None:
            kernel, is_cached = _kernel_of(module, schedule, backend, resolved, key=key)
            put_bounded(_kernels_by_key, key, kernel, limit=MAX_LOADED_KERNELS)
    return BuiltKernel(kernel, _milliseconds_since(start), is_cached, key)


def build_by_identity(
    identity: bytes,
    make_module: Callable[[], Module],
    *,
    target: str | Target = DEFAULT_TARGET,
    stats: Stats | None = None,
) -> BuiltKernel:
    """Compile the program that `identity` stands for, with the default schedule.

    The program is only made if no kernel is cached for it, for stats of the same class, for this
    machine and for these versions of all packages. Errors are those of `build_kernel`.
    """
    start = time.perf_counter()
    # Classes of stats: every exact number would be a key of its own, and hardly any kernel would be shared.
    stats = stats.representative() if stats is not None else None
    with compiling, pause_collection():
        backend, resolved = resolve_target(target)
        key = name_key(identity, stats, **_environment(backend, resolved))
        # Memory before disk: a loaded kernel has its machine code in this process already.
        kernel = _kernels_by_key.get(key) or _stored_kernel(key, backend)
        is_cached = True
        if kernel is None:
            built = build_kernel(make_module(), target=resolved, stats=stats)
            kernel, is_cached = built.kernel, built.is_cached
            # A link, since the request by its module has stored the code.
            ArtifactCache().put_link(key, built.key)
        # Not moved to the end if it is there: the order is that of insertion, as for all entries.
        if key not in _kernels_by_key:
            put_bounded(_kernels_by_key, key, kernel, limit=MAX_LOADED_KERNELS)
    return BuiltKernel(kernel, _milliseconds_since(start), is_cached, key)


def compile_artifact(
    module: Module, *, target: str | Target = DEFAULT_TARGET, schedule: Schedule | None = None
) -> Artifact:
    """Return the code of a module, from the cache if possible, also for a target that does not work on this
    machine. Errors as those of `build_kernel`."""
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
            code_key = _code_key(flat, backend, resolved)
            artifact = store.get(code_key) or _compile(flat, backend, resolved, key=code_key)
            store.put_link(key, code_key)
    return artifact


@cache
def fact_checker(target: str) -> FactChecker:
    """Return a checker of facts about arrays with kernels for a target."""
    return GeneratedCheck(partial(kernel_by_identity, target=target))


def kernel_by_identity(
    identity: bytes, make_module: Callable[[], Module], *, target: str
) -> Kernel:
    """Return the kernel of `build_by_identity` alone."""
    return build_by_identity(identity, make_module, target=target).kernel


def _kernel_of(
    module: Module, schedule: Schedule, backend: ValidatingBackend, target: Target, *, key: str
) -> tuple[Kernel, bool]:
    """Return the kernel from the request cache, from the object cache, or compiled and stored."""
    kernel = _stored_kernel(key, backend)
    if kernel is not None:
        return kernel, True
    flat = lower_for(target, module, schedule)
    code_key = _code_key(flat, backend, target)
    kernel = _stored_kernel(code_key, backend)
    is_cached = kernel is not None
    if kernel is None:
        kernel = _load(_compile(flat, backend, target, key=code_key), backend)
    # The next request need not lower the module to find the code.
    ArtifactCache().put_link(key, code_key)
    return kernel, is_cached


def _code_key(flat: Module, backend: ValidatingBackend, target: Target) -> str:
    return object_key(flat, target=target, versions={backend.name: backend.version})


def _compile(flat: Module, backend: ValidatingBackend, target: Target, *, key: str) -> Artifact:
    """Compile a flat module, and store its code in the cache."""
    artifact = backend.compile(flat, target)
    ArtifactCache().put(key, artifact)
    return artifact


def _stored_kernel(key: str, backend: ValidatingBackend) -> Kernel | None:
    """Return the kernel of a cached artifact; an artifact that the backend refuses is removed."""
    store = ArtifactCache()
    artifact = store.get(key)
    if artifact is None:
        return None
    try:
        return _load(artifact, backend)
    except (ArgumentError, PluginError):
        # The next process would try, and fail, again.
        store.discard(key)
        return None


def _load(artifact: Artifact, backend: ValidatingBackend) -> Kernel:
    made_by = (artifact.backend, artifact.backend_version, artifact.target)
    code = (*made_by, artifact.signature, artifact.guarded, artifact.code)
    # Another key may lead to the same code, which is then loaded once.
    kernel = _kernels_by_code.get(code)
    if kernel is None:
        kernel = _kernels_by_code[code] = backend.load(artifact)
        kernel.set_fact_checker(fact_checker(artifact.target))
    return kernel


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
