"""A fluent way to fold primitives over a module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from msgspec.structs import replace

from gossamer_ir.contracts import Intrinsic, Step, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.handles import Handle, current
from gossamer_schedule.lookups import (
    get_blocks,
    get_child_blocks,
    get_consumers,
    get_iterations,
    get_loops,
    get_producers,
)
from gossamer_schedule.replay import apply
from gossamer_schedule.result import Result
from gossamer_schedule.samples import is_reference, with_values
from gossamer_schedule.steps import step
from gossamer_schedule.table import Fluent, arguments_by_name
from gossamer_schedule.traces import trace_from_json, trace_to_json, trace_to_python


class ScheduleBuilder(Fluent):
    """Applies primitives one after the other, and keeps the module, the trace and the names.

    Every primitive is a method, which takes the arguments of the primitive but for the module, and
    returns the builder. `function` chooses the function of a module with several; `intrinsics` are those
    of the machine. Names that the builder gives are handles: given to a later step, they stand for what
    has become of the loop or block that they named.

    >>> from gossamer_schedule.examples import SCALE
    >>> from gossamer_schedule.show import body_text
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
    ) -> None:
        self._given = module
        self._function = function
        self._intrinsics = intrinsics
        self._results: list[Result] = []

    @property
    def module(self) -> Module:
        """The module with all steps applied."""
        return self._results[-1].module if self._results else self._given

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return tuple(result.step for result in self._results)

    @property
    def names(self) -> tuple[Handle, ...]:
        """The names that the last step made or moved."""
        return self._handles(self._results[-1].names if self._results else ())

    def get_loops(self, block: str | None = None) -> tuple[Handle, ...]:
        """The loops around a block, outermost first, or all; as `gossamer_schedule.get_loops`."""
        name = None if block is None else self._current(block)
        return self._handles(get_loops(self.module, name, function=self._function))

    def get_blocks(self) -> tuple[Handle, ...]:
        """The blocks in program order."""
        return self._handles(get_blocks(self.module, function=self._function))

    def get_child_blocks(self, name: str) -> tuple[Handle, ...]:
        """The blocks below a loop or block."""
        return self._found(get_child_blocks, name)

    def get_producers(self, block: str) -> tuple[Handle, ...]:
        """The other blocks that write what a block reads."""
        return self._found(get_producers, block)

    def get_consumers(self, block: str) -> tuple[Handle, ...]:
        """The other blocks that read what a block writes."""
        return self._found(get_consumers, block)

    def get_iterations(self) -> tuple[Handle, ...]:
        """The sparse iterations in program order."""
        return self._handles(get_iterations(self.module, function=self._function))

    def show(self) -> str:
        """The script of the module, and the steps that made it."""
        from gossamer_ir.script import print_module

        return f"{print_module(self.module)}\n{self.to_python()}"

    def to_json(self) -> str:
        """The trace as JSON."""
        return trace_to_json(self.trace)

    def to_python(self) -> str:
        """The trace as a Python function that takes a builder."""
        return trace_to_python(self.trace)

    @classmethod
    def from_json(cls, module: Module, text: str, *, intrinsics: Sequence[Intrinsic] = ()) -> Self:
        """The builder of a module after the steps of a trace in JSON."""
        return cls(module, intrinsics=intrinsics).replay(trace_from_json(text))

    def replay(self, trace: Trace) -> Self:
        """Applies the steps of a trace."""
        for given in trace:
            result = self._apply(given)
            self._results.append(replace(result, step=given))
        return self

    def applied(self, primitive: Callable[..., Result], *args: Any, **keywords: Any) -> Self:
        """Applies a primitive, handles being what they stand for now."""
        positional = arguments_by_name(primitive, args)
        named = positional | {"function": self._function} | keywords
        given = {name: self._current(value) for name, value in named.items()}
        made = Step(primitive.__name__, step(**given))
        result = self._apply(made)
        has_references = any(map(is_reference, made.args.values()))
        self._results.append(replace(result, step=made) if has_references else result)
        return self

    def _apply(self, given: Step) -> Result:
        made = with_values(given, self._values)
        return apply(self.module, made, intrinsics=self._intrinsics)

    @property
    def _values(self) -> dict[str, int | None]:
        """What sampling steps have drawn."""
        return {name: value for result in self._results for name, value in result.values.items()}

    def _found(self, look_up: Callable[..., tuple[str, ...]], name: str) -> tuple[Handle, ...]:
        return self._handles(look_up(self.module, self._current(name), function=self._function))

    def _handles(self, names: tuple[str, ...]) -> tuple[Handle, ...]:
        return tuple(Handle(name, taken=len(self._results)) for name in names)

    def _current(self, value: Any) -> Any:
        """An argument with the names that its handles stand for."""
        if isinstance(value, Handle):
            return current(value, self._results)
        if isinstance(value, tuple):
            return tuple(map(self._current, value))
        return value
