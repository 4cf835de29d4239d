"""The build pipeline: from a coordinate module to a kernel, through two caches.

It replays the traces of the schedule between the lowering passes. It only composes the other packages.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from gossamer.targets import parse_target
from gossamer_backend import (
    ArtifactCache,
    FactChecker,
    GeneratedCheck,
    Kernel,
    Registry,
    name_key,
    object_key,
    package_versions,
    request_key,
)
from gossamer_backend.fork import compiling
from gossamer_ir.errors import ArgumentError, PluginError, ScheduleError
from gossamer_ir.interchange.records import (
    Decision,
    Schedule,
    ScheduledStage,
    ScheduleReport,
    Stats,
    Target,
    Trace,
)
from gossamer_ir.nodes import Module, StageName

if TYPE_CHECKING:
    from gossamer_backend import Artifact, Probe
    from gossamer_backend.registry.plugin import Plugin
    from gossamer_backend.registry.validating import ValidatingBackend

STAGES: tuple[StageName, ...] = ("coordinate", "position", "loop", "flat")
SCHEDULED: tuple[ScheduledStage, ...] = ("coordinate", "position", "loop")
"""The stages that a schedule has a trace for."""
DISTRIBUTIONS = (
    "gossamer",
    "gossamer-ir",
    "gossamer-schedule",
    "gossamer-lower",
    "gossamer-backend",
    "gossamer-llvm",
)
"""The packages whose versions are part of each cache key, besides the backend's."""


class Built(msgspec.Struct, frozen=True):
    """A kernel, the duration of `build` in milliseconds, whether its code came from a cache, and its key in
    the cache."""

    kernel: Kernel
    compile_ms: float
    cached: bool
    key: str


registry = Registry()

LIMIT = 1024
"""The number of keys whose kernels are kept in memory; others are loaded from the cache again."""

_loaded: dict[str, Kernel] = {}
_by_code: WeakValueDictionary[tuple[object, ...], Kernel] = WeakValueDictionary()
"""The loaded kernels by target, signature, checked buffers and code: requests with equal code share one."""


def build(
    module: Module,
    *,
    target: str | Target = "generic-cpu",
    schedule: Schedule | None = None,
    stats: Stats | None = None,
) -> Built:
    """Compile a module of any stage for a target.

    Without `schedule`, the default rules choose one by the pattern of the computation and by `stats`.
    Raises `VerifyError`, `ScheduleError`, `UnsupportedError`, `PluginError`, and `ArgumentError` for a target
    that is unknown or does not work on this machine.
    """
    start = time.perf_counter()
    with compiling:
        backend, resolved = resolve(target)
        if schedule is None:
            schedule = default_schedule(module, resolved, stats)
        key = request_key(module, schedule, target=resolved, versions=_versions(backend))
        kernel = _loaded.get(key)
        is_cached = kernel is not None
        if kernel is None:
            kernel, is_cached = _kernel(module, schedule, backend, resolved, key=key)
            _keep(key, kernel)
    return Built(kernel, _since(start), is_cached, key)


def build_named(
    name: bytes,
    program: Callable[[], Module],
    *,
    target: str | Target = "generic-cpu",
    stats: Stats | None = None,
) -> Built:
    """Like `build`, for a program that `name` identifies. The program is only made if it is not cached under
    this name, for stats of the same class, for this machine and for these versions of all packages.
    """
    start = time.perf_counter()
    stats = stats.rounded() if stats is not None else None
    with compiling:
        backend, resolved = resolve(target)
        key = name_key(name, stats, target=resolved, versions=_versions(backend))
        kernel, is_cached = _loaded.get(key) or _stored(key, backend), True
        if kernel is None:
            built = build(program(), target=resolved, stats=stats)
            kernel, is_cached = built.kernel, built.cached
            ArtifactCache().put_link(key, built.key)
        if key not in _loaded:
            _keep(key, kernel)
    return Built(kernel, _since(start), is_cached, key)


def _keep(key: str, kernel: Kernel) -> None:
    while len(_loaded) >= LIMIT:
        del _loaded[next(iter(_loaded))]
    _loaded[key] = kernel


def _since(start: float) -> float:
    """Return the milliseconds since the start."""
    return (time.perf_counter() - start) * 1e3


def default_schedule(module: Module, target: Target, stats: Stats | None) -> Schedule:
    """Return the schedule that the rules of the target's plugin choose, else the general rules. Those return
    an empty schedule for modules after the coordinate stage. The module is verified first."""
    return default_report(module, target, stats).schedule


def default_report(module: Module, target: Target, stats: Stats | None) -> ScheduleReport:
    """Like `default_schedule`, with reasons; rules of plugins give none. Rules see the class of the stats."""
    from gossamer_ir.verify import verify

    stats = stats.rounded() if stats is not None else None

    chosen = registry.plugin(target.backend).schedule(verify(module), target, stats)
    if chosen is not None:
        return _foreign(chosen, target.backend)
    from gossamer_schedule.rules import explain

    return explain(module, target, stats)


def _foreign(schedule: Schedule, plugin: str) -> ScheduleReport:
    """Return the report of a schedule that a plugin's rules chose."""
    why = "its rules come before those of gossamer, and give no reasons"
    decisions = (
        Decision(f"the {stage} steps of the plugin", why, getattr(schedule, stage), stage=stage)
        for stage in SCHEDULED
    )
    pattern = f"one that the plugin '{plugin}' has a rule for"
    return ScheduleReport(plugin, pattern, tuple(found for found in decisions if found.steps))


def lowered(
    module: Module,
    schedule: Schedule,
    *,
    plugin: Plugin | None = None,
    target: Target | None = None,
) -> Iterator[Module]:
    """Return the module at each stage from its own to flat, after the schedule's trace for the stage and the
    plugin's passes. A module that is flat already gets missing bounds checks. Math functions without
    instructions on the target are lowered to arithmetic at the flat stage."""
    from gossamer_ir.verify import verify
    from gossamer_lower import bounds_check_flat, lower_math
    from gossamer_schedule import replay

    traces = {
        "coordinate": schedule.coordinate,
        "position": schedule.position,
        "loop": schedule.loop,
    }
    current = verify(module)
    _require_no_earlier_trace(module.stage, traces)
    if current.stage == "flat":
        current = bounds_check_flat(current)
    while current.stage != "flat":
        trace = traces[current.stage]
        if trace:
            current = replay(current, trace, intrinsics=plugin.intrinsics if plugin else ())
        current = plugin.rewritten(current) if plugin else current
        yield current
        current = next_stage(current)
    if plugin and target:
        current = lower_math(current, instructions=plugin.backend.instructions(target))
    yield plugin.rewritten(current) if plugin else current


def next_stage(module: Module) -> Module:
    """Lower a module to the next stage."""
    from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat

    lower = {"coordinate": lower_iterations, "position": lower_buffers, "loop": lower_to_flat}
    return lower[module.stage](module)


def stage_lowering(target: str | Target) -> Callable[[Module], Module]:
    """Return a function that lowers a module to the next stage for a target, with the plugin's passes."""
    _, resolved = resolve_elsewhere(target)
    plugin = registry.plugin(resolved.backend)

    def lower(module: Module) -> Module:
        return next_stage(plugin.rewritten(module))

    return lower


def _require_no_earlier_trace(stage: StageName, traces: Mapping[str, Trace]) -> None:
    """Raise if the schedule has a trace for a stage that the module has passed: it would be ignored
    silently."""
    for earlier in STAGES[: STAGES.index(stage)]:
        if traces.get(earlier):
            raise ScheduleError(
                "schedule.passed_stage",
                f"The schedule has a trace for the {earlier} stage, the module is of stage {stage}.",
                hint="Leave that trace out, or compile the module of the earlier stage.",
            )


def stages(
    module: Module,
    *,
    target: str | Target = "generic-cpu",
    schedule: Schedule | None = None,
    stats: Stats | None = None,
) -> dict[str, str]:
    """Return the text of a module at each stage, and the texts of the backend (`llvm`, `asm`)."""
    from gossamer_ir.script import print_module

    backend, resolved = resolve_elsewhere(target)
    if schedule is None:
        schedule = default_schedule(module, resolved, stats)
    plugin = registry.plugin(resolved.backend)
    found = list(lowered(module, schedule, plugin=plugin, target=resolved))
    texts: dict[str, str] = {stage.stage: print_module(stage) for stage in found}
    return {**texts, **backend.texts(found[-1], resolved)}


def flat_module(
    module: Module, *, target: str | Target = "generic-cpu", stats: Stats | None = None
) -> Module:
    """Return the flat module for the backend, with the schedule of the default rules."""
    _, resolved = resolve_elsewhere(target)
    return _flat(module, default_schedule(module, resolved, stats), resolved)


def _flat(module: Module, schedule: Schedule, target: Target) -> Module:
    plugin = registry.plugin(target.backend)
    *_, found = lowered(module, schedule, plugin=plugin, target=target)
    return found


def resolve(target: str | Target) -> tuple[ValidatingBackend, Target]:
    """Return the backend of a target, and the target with all options explicit that depend on this
    machine."""
    wanted = parse_target(target)
    backend = registry.backend(wanted.backend)
    probe = backend.probe(wanted)
    if not probe.usable:
        raise ArgumentError(
            "target.unusable",
            f"The target {wanted.text} does not work on this machine: {probe.reason}",
            hint="`gossamer backends` lists those that do.",
        )
    return backend, _resolved(probe, wanted)


def resolve_elsewhere(target: str | Target) -> tuple[ValidatingBackend, Target]:
    """Like `resolve`, also for a target that does not work on this machine."""
    wanted = parse_target(target)
    backend = registry.backend(wanted.backend)
    return backend, _resolved(backend.probe(wanted), wanted)


def _resolved(probe: Probe, wanted: Target) -> Target:
    return Target.parse(probe.resolved) if probe.resolved else wanted


def compiled(
    module: Module, *, target: str | Target = "generic-cpu", schedule: Schedule | None = None
) -> Artifact:
    """Return the code of a module, from the cache if possible, also for a target that does not work on this
    machine. Errors as those of `build`."""
    with compiling:
        backend, resolved = resolve_elsewhere(target)
        if schedule is None:
            schedule = default_schedule(module, resolved, None)
        key = request_key(module, schedule, target=resolved, versions=_versions(backend))
        store = ArtifactCache()
        found = store.get(key)
        if found is None:
            flat = _flat(module, schedule, resolved)
            code_key = _code_key(flat, backend, resolved)
            found = store.get(code_key) or _stored_code(flat, backend, resolved, key=code_key)
            store.put_link(key, code_key)
    return found


def _kernel(
    module: Module, schedule: Schedule, backend: ValidatingBackend, target: Target, *, key: str
) -> tuple[Kernel, bool]:
    """Return the kernel from the request cache, from the object cache, or compiled and stored."""
    found = _stored(key, backend)
    if found is not None:
        return found, True
    flat = _flat(module, schedule, target)
    code_key = _code_key(flat, backend, target)
    kernel = found = _stored(code_key, backend)
    if kernel is None:
        kernel = _load(_stored_code(flat, backend, target, key=code_key), backend)
    ArtifactCache().put_link(key, code_key)
    return kernel, found is not None


def _code_key(flat: Module, backend: ValidatingBackend, target: Target) -> str:
    return object_key(flat, target=target, versions={backend.name: backend.version})


def _stored_code(flat: Module, backend: ValidatingBackend, target: Target, *, key: str) -> Artifact:
    """Compile a flat module, and store its code in the cache."""
    artifact = backend.compile(flat, target)
    ArtifactCache().put(key, artifact)
    return artifact


def _stored(key: str, backend: ValidatingBackend) -> Kernel | None:
    """Return the kernel of a cached artifact; an artifact that the backend refuses is removed."""
    store = ArtifactCache()
    artifact = store.get(key)
    if artifact is None:
        return None
    try:
        return _load(artifact, backend)
    except (ArgumentError, PluginError):
        store.discard(key)
        return None


def _load(artifact: Artifact, backend: ValidatingBackend) -> Kernel:
    made_by = (artifact.backend, artifact.backend_version, artifact.target)
    code = (*made_by, artifact.signature, artifact.guarded, artifact.code)
    kernel = _by_code.get(code)
    if kernel is None:
        kernel = _by_code[code] = backend.load(artifact)
        kernel.set_fact_checker(fact_checker(artifact.target))
    return kernel


@cache
def fact_checker(target: str) -> FactChecker:
    """Return a checker of facts about arrays with kernels for a target."""

    def compile(name: bytes, program: Callable[[], Module]) -> Kernel:
        return build_named(name, program, target=target).kernel

    return GeneratedCheck(compile)


def _versions(backend: ValidatingBackend) -> dict[str, str]:
    return {**_package_versions(), backend.name: backend.version}


@cache
def _package_versions() -> dict[str, str]:
    return package_versions(DISTRIBUTIONS)
