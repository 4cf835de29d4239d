"""The steps from a coordinate module to a flat module: default schedule, traces and lowering passes.

Each trace of the schedule is replayed before the pass that lowers its stage. This module only composes the
other packages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gossamer.targets.parse_target import DEFAULT_TARGET
from gossamer.targets.resolve_target import plugin_of, resolve_elsewhere
from gossamer_ir.errors import ScheduleError, UnsupportedError
from gossamer_ir.interchange.records import (
    LOWERING_PASSES,
    SCHEDULED_STAGES,
    Decision,
    Schedule,
    ScheduleReport,
    ScheduleSpace,
    Stats,
    Target,
    Trace,
)
from gossamer_ir.nodes import STAGES, Module, StageName

if TYPE_CHECKING:
    from gossamer_backend.internal_api import Plugin


def stats_for_rules(stats: Stats | None) -> Stats | None:
    """Return the stats that rules see of a matrix: those of its class, so that similar matrices share a
    schedule and its kernel."""
    return None if stats is None else stats.representative()


def schedule_for_target(module: Module, target: Target, stats: Stats | None) -> Schedule:
    """Return the schedule that the rules of plugins for the target choose, else the general rules. Those
    return an empty schedule for modules after the coordinate stage. The module is verified first."""
    return report_for_target(module, target, stats).schedule


def report_for_target(module: Module, target: Target, stats: Stats | None) -> ScheduleReport:
    """Return the schedule of `schedule_for_target` with the reasons that the rule gives, for a space of
    schedules the prior."""
    stats = stats_for_rules(stats)
    space = _space_of_plugins(module, target, stats)
    if space is not None:
        return space.prior
    from gossamer_schedule.internal_api import schedule_report as report_of_rules

    return report_of_rules(module, plugin_of(target).backend.machine(target), stats)


def space_for_target(module: Module, target: Target, stats: Stats | None) -> ScheduleSpace:
    """Return all schedules of the rule that `report_for_target` uses; that one is the first."""
    stats = stats_for_rules(stats)
    space = _space_of_plugins(module, target, stats)
    if space is not None:
        return space
    from gossamer_schedule.internal_api import default_space

    return default_space(module, plugin_of(target).backend.machine(target), stats)


def _space_of_plugins(module: Module, target: Target, stats: Stats | None) -> ScheduleSpace | None:
    """Return the result of the rules of plugins for a module, as a space; None if none of them applies. The
    module is verified first."""
    from gossamer_ir.verify import verify

    plugin = plugin_of(target)
    # Rules of plugins first: they know more about their machine.
    planned = plugin.schedule(verify(module), plugin.backend.machine(target), stats)
    if planned is None:
        return None
    name, result = planned
    if isinstance(result, ScheduleSpace):
        return result
    if isinstance(result, Schedule):
        result = _report_without_reasons(result, name)
    return ScheduleSpace((result,))


def _report_without_reasons(schedule: Schedule, plugin: str) -> ScheduleReport:
    """Return the report of a schedule for which a plugin's rule gives no reasons."""
    why = "its rules come before those of gossamer, and this one gives no reasons"
    decisions = (
        Decision(f"the {stage} steps of the plugin", why, schedule.traces[stage], stage=stage)
        for stage in SCHEDULED_STAGES
    )
    pattern = f"one that the plugin '{plugin}' has a rule for"
    return ScheduleReport(
        plugin, pattern, tuple(decision for decision in decisions if decision.steps)
    )


def lower_by_stage(
    module: Module,
    schedule: Schedule,
    *,
    plugin: Plugin | None = None,
    target: Target | None = None,
) -> Iterator[Module]:
    """Yield the module at each stage from its own to flat, after the schedule's trace for the stage and the
    passes of plugins. A module that is flat already gets missing bounds checks. The passes that depend on
    the target run only if a plugin and a target are given."""
    from gossamer_ir.verify import verify

    # Once here: every later pass and step leaves a valid module valid.
    current = verify(module)
    _require_no_earlier_trace(module.stage, schedule.traces)
    if current.stage == "flat":
        # Imported late: few programs are flat.
        from gossamer_lower import bounds_check_flat

        # The passes before this stage insert the checks, and have not run.
        current = bounds_check_flat(current, **_target_arguments(current, plugin, target))
    while current.stage != "flat":
        current = _schedule(current, schedule, plugin)
        # After the trace, since a step names loops that a plugin's pass may rewrite.
        current = plugin.run_passes(current) if plugin else current
        yield current
        current = next_stage(current, plugin=plugin, target=target)
    yield plugin.run_passes(current) if plugin else current


def _schedule(module: Module, schedule: Schedule, plugin: Plugin | None) -> Module:
    """Return the module after the schedule's trace for its stage."""
    from gossamer_schedule import replay

    trace = schedule.traces[module.stage]
    if not trace:
        return module
    return replay(
        module,
        trace,
        intrinsics=plugin.intrinsics if plugin else (),
        primitives=plugin.primitives if plugin else {},
    )


def next_stage(
    module: Module,
    *,
    plugin: Plugin | None = None,
    target: Target | None = None,
    verify_each: bool = False,
) -> Module:
    """Lower a module to the next stage, with the passes of plugins for the extension points between, and
    with a target those that depend on it. With `verify_each`, raise `InternalError` after the first pass to
    the flat stage whose result is invalid.

    >>> from gossamer.operator_calls.operator_program import Variant, module_of
    >>> from gossamer.operators.spmv import PROGRAM
    >>> position = next_stage(module_of(PROGRAM, Variant()))
    >>> position.stage, next_stage(position).stage
    ('position', 'loop')
    """
    import gossamer_lower

    if module.stage == "loop":
        arguments = _target_arguments(module, plugin, target)
        if plugin and plugin.extension_points:
            return _lower_with_plugins(module, plugin, verify_each=verify_each, **arguments)
        return gossamer_lower.lower_to_flat(module, verify_each=verify_each, **arguments)
    lower: Callable[[Module], Module] = getattr(gossamer_lower, LOWERING_PASSES[module.stage])
    return lower(module)


def _lower_with_plugins(module: Module, plugin: Plugin, **arguments: Any) -> Module:
    """Lower a module from the loop stage, with the passes that plugins have for extension points."""
    from gossamer_lower.internal_api import ExtensionPoint, lower_with_extensions

    def extend(point: ExtensionPoint, at_point: Module) -> Module:
        return plugin.run_passes(at_point, point=point.name, check=point.require_constructs)

    return lower_with_extensions(module, extend, **arguments)


def _target_arguments(
    module: Module, plugin: Plugin | None, target: Target | None
) -> dict[str, Any]:
    """Return the arguments of the passes that depend on the target; without a target there are none.

    They are the math functions with instructions and, for a module with scalable vectors on a target without
    them, the constant for vscale. Raise `UnsupportedError` (`target.vscale`) for such a module if the target
    has the option `vscale=none`.
    """
    from gossamer_ir.analysis.scalable_vectors import has_scalable_vectors

    if plugin is None or target is None:
        return {}
    arguments: dict[str, Any] = {"instructions": plugin.backend.instructions(target)}
    if "vectors.scalable" in plugin.backend.capabilities or not has_scalable_vectors(module):
        return arguments
    vscale = plugin.backend.machine(target).fixed_vscale
    if vscale is None:
        raise UnsupportedError(
            "target.vscale",
            f"The program has scalable vectors, and '{target.backend}' with vscale=none has none.",
            hint="Use vscale=native to compile it with vectors of a fixed number of lanes.",
        )
    return {**arguments, "vscale": vscale}


def stage_lowering(target: str | Target) -> Callable[[Module], Module]:
    """Return a function that lowers a module to the next stage for a target, with the passes of plugins."""
    _, resolved = resolve_elsewhere(target)
    plugin = plugin_of(resolved)

    def lower(module: Module) -> Module:
        return next_stage(plugin.run_passes(module), plugin=plugin)

    return lower


def _require_no_earlier_trace(stage: StageName, traces: Mapping[StageName, Trace]) -> None:
    """Raise if the schedule has a trace for a stage that the module has passed: it would be ignored
    silently."""
    for earlier in STAGES[: STAGES.index(stage)]:
        if traces.get(earlier):
            raise ScheduleError(
                "schedule.passed_stage",
                f"The schedule has a trace for the {earlier} stage, the module is of stage {stage}.",
                hint="Leave that trace out, or compile the module of the earlier stage.",
            )


def stage_texts(
    module: Module,
    *,
    target: str | Target = DEFAULT_TARGET,
    schedule: Schedule | None = None,
    stats: Stats | None = None,
) -> dict[str, str]:
    """Return the text of a module at each stage, and the texts of the backend (`llvm`, `asm`).

    >>> from gossamer.operator_calls.operator_program import Variant, module_of
    >>> from gossamer.operators.spmv import PROGRAM
    >>> texts = stage_texts(module_of(PROGRAM, Variant()))
    >>> list(texts)
    ['coordinate', 'position', 'loop', 'flat', 'llvm', 'asm']
    """
    from gossamer_ir.script import print_module

    backend, resolved = resolve_elsewhere(target)
    if schedule is None:
        schedule = schedule_for_target(module, resolved, stats)
    plugin = plugin_of(resolved)
    modules = list(lower_by_stage(module, schedule, plugin=plugin, target=resolved))
    texts: dict[str, str] = {lower.stage: print_module(lower) for lower in modules}
    return {**texts, **backend.texts(modules[-1], resolved)}


def flat_module(
    module: Module, *, target: str | Target = DEFAULT_TARGET, stats: Stats | None = None
) -> Module:
    """Return the flat module for the backend, with the schedule of the default rules."""
    _, resolved = resolve_elsewhere(target)
    return lower_for(resolved, module, schedule_for_target(module, resolved, stats))


def lower_for(target: Target, module: Module, schedule: Schedule) -> Module:
    """Return the flat module of a scheduled module for a resolved target."""
    *_, flat = lower_by_stage(module, schedule, plugin=plugin_of(target), target=target)
    return flat
