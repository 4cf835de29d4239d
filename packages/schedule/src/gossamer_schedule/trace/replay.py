"""Applies the steps of a trace to a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gossamer_ir.interchange.records import Intrinsic, Step, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.definition.arguments import INTRINSICS, argument_types, takes_intrinsics
from gossamer_schedule.definition.sampled_values import with_values
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.primitive_result import PrimitiveResult
from gossamer_schedule.trace.find_primitive import NO_PLUGIN_PRIMITIVES, find_primitive
from gossamer_support.typed_calls import typed


@typed
def apply(
    module: Module,
    step: Step,
    *,
    intrinsics: Sequence[Intrinsic] = (),
    primitives: Mapping[str, Callable[..., PrimitiveResult]] = NO_PLUGIN_PRIMITIVES,
) -> PrimitiveResult:
    """Return the result of one step of a trace, with the intrinsics of a machine and the primitives of a
    plugin, by their names in steps.

    Raises `ScheduleError`: `schedule.replay.no_primitive`, `schedule.replay.no_plugin`,
    `schedule.replay.arguments` (missing, unknown, or of a wrong type), and whatever the primitive raises.

    >>> from gossamer_ir.interchange.records import Step
    >>> from gossamer_testkit.examples import SCALE
    >>> apply(SCALE, Step("split", {"loop": "i", "factors": (None, 8)})).names
    ('i_0', 'i_1')
    >>> apply(SCALE, Step("split", {"loop": "i"}))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gossamer_ir.errors.ScheduleError: split needs argument 'factors'. ...
    """
    primitive = find_primitive(step.op, primitives)
    # A trace is data that may come from a file; intrinsics are code of the machine.
    if INTRINSICS in step.args:
        raise schedule_error(
            "replay.arguments",
            f"{step.op} has no argument '{INTRINSICS}'.",
            hint="Give intrinsics to the builder: ScheduleBuilder(module, intrinsics=...).",
        )
    if takes_intrinsics(primitive):
        return primitive(module, **step.args, intrinsics=intrinsics)
    return primitive(module, **step.args)


@typed
def replay(
    module: Module,
    trace: Trace,
    *,
    intrinsics: Sequence[Intrinsic] = (),
    primitives: Mapping[str, Callable[..., PrimitiveResult]] = NO_PLUGIN_PRIMITIVES,
) -> Module:
    """Return the module after the steps of a trace, in order. Arguments and errors are those of `apply`.

    >>> from gossamer_ir.interchange.records import Step
    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> steps = (Step("split", {"loop": "i", "factors": (None, 8)}), Step("vectorize", {"loop": "i_1"}))
    >>> print(body_text(replay(SCALE, steps)))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.vectorized(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    """
    values: dict[str, int | str | None] = {}
    for step in trace:
        # A step refers to a drawn value by its name, so that the trace can be drawn again.
        with_drawn = with_values(step, values)
        result = apply(module, with_drawn, intrinsics=intrinsics, primitives=primitives)
        module, values = result.module, values | result.values
    return module


def parameters_of(
    op: str, primitives: Mapping[str, Callable[..., PrimitiveResult]] = NO_PLUGIN_PRIMITIVES
) -> tuple[str, ...]:
    """Return the arguments of a primitive. Optional ones are followed by `=...`.

    >>> parameters_of("parallel")[:2]
    ('loop', 'weight=...')
    """
    types, required = argument_types(find_primitive(op, primitives))
    return tuple(name if name in required else f"{name}=..." for name in types)
