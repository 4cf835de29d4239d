"""A builder of schedules: applies primitives to a module one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from gossamer_ir.interchange.records import Intrinsic, Schedule, Step, Trace
from gossamer_ir.nodes import Module
from gossamer_ir.script import print_module
from gossamer_schedule.cursor.handles import StmtHandle
from gossamer_schedule.cursor.name_queries import (
    get_blocks,
    get_child_blocks,
    get_consumers,
    get_iterations,
    get_loops,
    get_producers,
)
from gossamer_schedule.definition.arguments import op_of, value_text
from gossamer_schedule.definition.sampled_values import is_reference, with_values
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.primitive_result import PrimitiveResult
from gossamer_schedule.trace.applied_steps import AppliedSteps
from gossamer_schedule.trace.call_arguments import call_arguments, normalize_if_valid
from gossamer_schedule.trace.codec import LOWERINGS, trace_from_json, trace_to_json, trace_to_python
from gossamer_schedule.trace.find_primitive import NO_PLUGIN_PRIMITIVES, find_primitive
from gossamer_schedule.trace.fluent_primitives import Fluent
from gossamer_schedule.trace.replay import apply
from gossamer_schedule.trace.stage_lowering import lower_stage, require_lowers
from gossamer_schedule.trace.unknown_names import unknown_name_error
from gossamer_support.message_texts import amount


class ScheduleBuilder(Fluent):
    """Applies primitives one after the other, and keeps the module, the trace and the names.

    Every primitive is a method that takes the arguments of the primitive after the module and returns the
    builder. `function` selects a function of a module with several. `intrinsics` are those of the machine,
    `primitives` those of the target's plugin, which `apply` applies by name, and `lower` is the function that
    lowers a module to the next stage (a builder of `gossamer.schedule` has all of them). The builder returns
    names as handles: in a later step, a handle refers to the loops or the block that its statement has
    become.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> builder = ScheduleBuilder(SCALE)
    >>> (i,) = builder.get_loops("scale")
    >>> outer, inner = builder.split(i, factors=(None, 8)).names
    >>> print(body_text(builder.unroll(inner).module))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.unroll(8):
            with T.block("scale"):
                vi = T.axis.spatial(n, i_0 * 8 + i_1)
                T.where(vi < n)
                Y[vi] = X[vi] * 2.0
    >>> print(builder.to_python())
    def schedule(sch):
        sch.split(loop='i', factors=(None, 8))
        sch.unroll(loop='i_1')
        return sch
    """

    def __init__(
        self,
        module: Module,
        *,
        function: str | None = None,
        intrinsics: Sequence[Intrinsic] = (),
        primitives: Mapping[str, Callable[..., PrimitiveResult]] = NO_PLUGIN_PRIMITIVES,
        lower: Callable[[Module], Module] | None = None,
    ) -> None:
        if not isinstance(module, Module):
            raise schedule_error(
                "module",
                f"A builder needs a module, but is given {value_text(module)}.",
                hint="parse_module gives a module of a script, and gossamer.schedule takes any program.",
            )
        self._applied = AppliedSteps(module)
        self._function = function
        self._intrinsics = intrinsics
        self._primitives = primitives
        self._lower = lower

    @property
    def program(self) -> Module:
        """The module that the builder was made with."""
        return self._applied.program

    @property
    def module(self) -> Module:
        """The module with all steps applied."""
        return self._applied.module

    @property
    def trace(self) -> Trace:
        """The steps so far. `lower()` is a step with the name of the lowering pass."""
        return self._applied.trace

    @property
    def schedule(self) -> Schedule:
        """The steps so far by stage. `gossamer.compile` takes this schedule, or the builder.

        >>> from gossamer_testkit.examples import SCALE
        >>> [step.op for step in ScheduleBuilder(SCALE).parallel("i").schedule.loop]
        ['parallel']
        """
        return self._applied.schedule

    @property
    def names(self) -> tuple[StmtHandle, ...]:
        """The names that the last step made or moved.

        >>> from gossamer_testkit.examples import SCALE
        >>> ScheduleBuilder(SCALE).split("i", factors=(None, 8)).names
        ('i_0', 'i_1')
        """
        return self._applied.names

    def get_loops(self, block: str | None = None) -> tuple[StmtHandle, ...]:
        """Return the loops around a block, outermost first, or all loops, like
        `gossamer_schedule.get_loops`."""
        name = None if block is None else self._applied.with_current_names(block)
        return self._applied.handles(get_loops(self.module, name, function=self._function))

    def get_blocks(self) -> tuple[StmtHandle, ...]:
        """Return the blocks in program order."""
        return self._applied.handles(get_blocks(self.module, function=self._function))

    def get_child_blocks(self, name: str) -> tuple[StmtHandle, ...]:
        """Return the blocks below a loop or block."""
        return self._handles_from(get_child_blocks, name)

    def get_producers(self, block: str) -> tuple[StmtHandle, ...]:
        """Return the other blocks that write buffers that a block reads.

        >>> from gossamer_testkit.examples import SCALE
        >>> builder = ScheduleBuilder(SCALE).cache_read("scale", buffer="X", scope="local")
        >>> builder.get_producers("scale")
        ('scale_X_local',)
        """
        return self._handles_from(get_producers, block)

    def get_consumers(self, block: str) -> tuple[StmtHandle, ...]:
        """Return the other blocks that read buffers that a block writes."""
        return self._handles_from(get_consumers, block)

    def get_iterations(self) -> tuple[StmtHandle, ...]:
        """Return the sparse iterations in program order."""
        return self._applied.handles(get_iterations(self.module, function=self._function))

    def show(self) -> str:
        """Return the script of the module, and the steps that led to it."""
        return f"{print_module(self.module)}\n{self.to_python()}"

    def to_json(self) -> str:
        """Return the trace as JSON.

        >>> from gossamer_testkit.examples import SCALE
        >>> ScheduleBuilder(SCALE).parallel("i").to_json()
        '[{"op":"parallel","args":{"loop":"i"}}]'
        """
        return trace_to_json(self.trace)

    def to_python(self) -> str:
        """Return the trace as a Python function that takes a builder."""
        return trace_to_python(self.trace)

    @classmethod
    def from_json(
        cls,
        module: Module,
        text: str | bytes,
        *,
        intrinsics: Sequence[Intrinsic] = (),
        primitives: Mapping[str, Callable[..., PrimitiveResult]] = NO_PLUGIN_PRIMITIVES,
        lower: Callable[[Module], Module] | None = None,
    ) -> Self:
        """Return a builder of a module with the steps of a trace in JSON applied.

        >>> from gossamer_testkit.examples import SCALE
        >>> text = ScheduleBuilder(SCALE).parallel("i").to_json()
        >>> print(ScheduleBuilder.from_json(SCALE, text).to_python())
        def schedule(sch):
            sch.parallel(loop='i')
            return sch
        """
        builder = cls(module, intrinsics=intrinsics, primitives=primitives, lower=lower)
        return builder.replay(trace_from_json(text))

    def lower(self) -> Self:
        """Lower the module to the next stage: from coordinate to position, from position to loop.

        Afterward, handles of iterations refer to their blocks, and those of variables to their loops.
        Raises `ScheduleError`: `schedule.lower.last` (the loop stage is the last), `.no_passes` (the builder
        was made without `lower`).
        """
        self._applied.record(lower_stage(self.module, self._lower))
        return self

    def copy(self) -> Self:
        """Return an independent builder with the same steps. Handles work in both.

        >>> from gossamer_testkit.examples import SCALE
        >>> builder = ScheduleBuilder(SCALE).split("i", factors=(None, 8))
        >>> unrolled = builder.copy().unroll("i_1")
        >>> len(builder.trace), len(unrolled.trace)
        (1, 2)
        """
        other = type(self)(
            self.program,
            function=self._function,
            intrinsics=self._intrinsics,
            primitives=self._primitives,
            lower=self._lower,
        )
        # Not by a replay, which would take the time of all steps again.
        other._applied = self._applied.copy()
        return other

    def undo(self, steps: int = 1) -> Self:
        """Undo the last steps, including `lower()`. Handles from these steps are refused afterward.

        Raises `ScheduleError`: `schedule.undo.steps` (not a number from 0 to the number of steps).

        >>> from gossamer_testkit.examples import SCALE
        >>> builder = ScheduleBuilder(SCALE).split("i", factors=(None, 8)).unroll("i_1")
        >>> builder.undo().get_loops(), builder.undo().get_loops()
        (('i_0', 'i_1'), ('i',))
        """
        count, step_count = normalize_if_valid(steps), len(self._applied)
        # `type`, since a bool is an int, too.
        if type(count) is not int or not 0 <= count <= step_count:
            raise schedule_error(
                "undo.steps",
                f"undo is given {value_text(steps)}, and the trace has {amount(step_count, 'step')}.",
                hint=f"Expected a number from 0 to {step_count}.",
            )
        self._applied.keep(step_count - count)
        return self

    def replay(self, trace: Trace) -> Self:
        """Apply the steps of a trace. If a step is refused, those before it remain applied."""
        if not isinstance(trace, (tuple, list)) or not all(isinstance(x, Step) for x in trace):
            raise schedule_error(
                "trace.steps",
                f"The trace is {value_text(trace)}; expected a tuple of steps.",
                hint="from_json reads a trace in JSON.",
            )
        for step in trace:
            # Lowering is not a primitive: it runs passes of the builder, and the trace only records that.
            if step.op in LOWERINGS.values():
                require_lowers(step, self.module)
                self.lower()
            else:
                self._applied.record(replace(self._apply(step), step=step))
        return self

    def apply(
        self, primitive: Callable[..., PrimitiveResult] | str, /, *args: Any, **keywords: Any
    ) -> Self:
        """Apply a primitive, given itself or by its name in steps; one of a plugin is
        `apply("<plugin>.<name>", ...)`. Handles are replaced by the current names of their statements.

        Raises `ScheduleError`: `schedule.replay.no_primitive`, `schedule.replay.no_plugin`, and whatever the
        primitive raises.

        >>> from gossamer_testkit.examples import SCALE
        >>> ScheduleBuilder(SCALE).apply("split", "i", factors=(None, 8)).names
        ('i_0', 'i_1')
        """
        if isinstance(primitive, str):
            primitive = find_primitive(primitive, self._primitives)
        values = call_arguments(primitive, args, keywords, function=self._function)
        self._applied.warn_of_conflicts(values)
        current_values = {
            name: self._applied.with_current_names(value) for name, value in values.items()
        }
        step_args = {name: value for name, value in current_values.items() if value is not None}
        step = Step(op_of(primitive), step_args)
        result = self._apply(step)
        # The trace keeps references to drawn values, not the values.
        has_references = any(map(is_reference, step.args.values()))
        self._applied.record(replace(result, step=step) if has_references else result)
        return self

    def _apply(self, step: Step) -> PrimitiveResult:
        with_drawn = with_values(step, self._applied.drawn_values)
        return apply(
            self.module, with_drawn, intrinsics=self._intrinsics, primitives=self._primitives
        )

    def _handles_from(
        self, look_up: Callable[..., tuple[str, ...]], name: str
    ) -> tuple[StmtHandle, ...]:
        return self._applied.handles(
            look_up(self.module, self._applied.with_current_names(name), function=self._function)
        )

    if not TYPE_CHECKING:  # a type checker finds unknown names itself

        def __getattr__(self, name: str) -> Any:
            # Python asks for names of its own, as copies do, and expects this error.
            if name.startswith("_"):
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            raise unknown_name_error(type(self), name)
