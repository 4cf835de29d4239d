"""The build pipeline: from a coordinate module to a kernel, through two caches.

Replays the schedule's traces between the lowering passes. It composes the packages and contains no
algorithm of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

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
"""Whose versions every kernel depends on, besides its backend's."""


class Built(msgspec.Struct, frozen=True):
    """A kernel, how long `build` took in milliseconds, whether its code came from a cache, and the
    key under which the cache has it."""

    kernel: Kernel
    compile_ms: float
    cached: bool
    key: str


registry = Registry()
_loaded: dict[str, Kernel] = {}


def build(
    module: Module,
    *,
    target: str | Target = "generic-cpu",
    schedule: Schedule | None = None,
    stats: Stats | None = None,
) -> Built:
    """Compiles a module of any stage for a target.

    Without `schedule` the default rules choose one by the pattern of the computation and by `stats`.
    Raises `VerifyError`, `ScheduleError`, `UnsupportedError`, `PluginError`, and `ArgumentError` for
    a target that is unknown or does not work on this machine.
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
            _loaded[key] = kernel
    return Built(kernel, _since(start), is_cached, key)


def build_named(
    name: bytes,
    program: Callable[[], Module],
    *,
    target: str | Target = "generic-cpu",
    stats: Stats | None = None,
) -> Built:
    """As `build`, for a program that `name` stands for: it is not even made where the same name was
    built before, with equal stats, for the same machine and with the same versions of all packages.
    """
    start = time.perf_counter()
    with compiling:
        backend, resolved = resolve(target)
        key = name_key(name, stats, target=resolved, versions=_versions(backend))
        kernel, is_cached = _loaded.get(key) or _stored(key, backend), True
        if kernel is None:
            built = build(program(), target=resolved, stats=stats)
            kernel, is_cached = built.kernel, built.cached
            ArtifactCache().put_link(key, built.key)
        _loaded[key] = kernel
    return Built(kernel, _since(start), is_cached, key)


def _since(start: float) -> float:
    """Milliseconds."""
    return (time.perf_counter() - start) * 1e3


def default_schedule(module: Module, target: Target, stats: Stats | None) -> Schedule:
    """What the rules of the target's plugin choose, else the general ones; those choose nothing for
    a module of a later stage than coordinate. Rules see right modules only."""
    return default_report(module, target, stats).schedule


def default_report(module: Module, target: Target, stats: Stats | None) -> ScheduleReport:
    """`default_schedule` with its reasons; a plugin's rules give none."""
    from gossamer_ir.verify import verify

    chosen = registry.plugin(target.backend).schedule(verify(module), target, stats)
    if chosen is not None:
        return _foreign(chosen, target.backend)
    from gossamer_schedule.rules import explain

    return explain(module, target, stats)


def _foreign(schedule: Schedule, plugin: str) -> ScheduleReport:
    """A schedule of a plugin's own rules."""
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
    """The module at each stage from its own to flat, after the schedule's trace of that stage and the
    plugin's passes; one that is flat already with the guards it lacks. Math functions that the target
    has no instructions for are arithmetic at the flat stage."""
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
    """The module lowered to the stage after its own."""
    from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat

    lower = {"coordinate": lower_iterations, "position": lower_buffers, "loop": lower_to_flat}
    return lower[module.stage](module)


def stage_lowering(target: str | Target) -> Callable[[Module], Module]:
    """The function that lowers a module to its next stage for a target, with the plugin's passes."""
    _, resolved = resolve_elsewhere(target)
    plugin = registry.plugin(resolved.backend)

    def lower(module: Module) -> Module:
        return next_stage(plugin.rewritten(module))

    return lower


def _require_no_earlier_trace(stage: StageName, traces: Mapping[str, Trace]) -> None:
    """A trace for a stage that the module has passed would be left out in silence."""
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
    """The text of a module at every stage, and what the backend makes of it (`llvm`, `asm`)."""
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
    """The flat module that a backend gets, as the default rules schedule it."""
    _, resolved = resolve_elsewhere(target)
    return _flat(module, default_schedule(module, resolved, stats), resolved)


def _flat(module: Module, schedule: Schedule, target: Target) -> Module:
    plugin = registry.plugin(target.backend)
    *_, found = lowered(module, schedule, plugin=plugin, target=target)
    return found


def resolve(target: str | Target) -> tuple[ValidatingBackend, Target]:
    """The backend of a target, and the target with everything that this machine decides."""
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
    """As `resolve`, also for a target that this machine can only make code for."""
    wanted = parse_target(target)
    backend = registry.backend(wanted.backend)
    return backend, _resolved(backend.probe(wanted), wanted)


def _resolved(probe: Probe, wanted: Target) -> Target:
    return Target.parse(probe.resolved) if probe.resolved else wanted


def compiled(
    module: Module, *, target: str | Target = "generic-cpu", schedule: Schedule | None = None
) -> Artifact:
    """The code of a module, from the cache where that has it; also for a target that does not work on
    this machine. Raises what `build` does."""
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
    """The kernel from the request cache, from the object cache, or compiled and stored."""
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
    """The code of a flat module, compiled and stored."""
    artifact = backend.compile(flat, target)
    ArtifactCache().put(key, artifact)
    return artifact


def _stored(key: str, backend: ValidatingBackend) -> Kernel | None:
    """The kernel of a cached artifact; one that the backend does not load is discarded."""
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
    kernel = backend.load(artifact)
    kernel.set_fact_checker(fact_checker(artifact.target))
    return kernel


@cache
def fact_checker(target: str) -> FactChecker:
    """Checks facts about arrays with kernels for a target."""

    def compile(name: bytes, program: Callable[[], Module]) -> Kernel:
        return build_named(name, program, target=target).kernel

    return GeneratedCheck(compile)


def _versions(backend: ValidatingBackend) -> dict[str, str]:
    return {**_package_versions(), backend.name: backend.version}


@cache
def _package_versions() -> dict[str, str]:
    return package_versions(DISTRIBUTIONS)
