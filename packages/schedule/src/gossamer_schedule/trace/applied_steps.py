"""The steps that a builder has applied to a program, and the names that statements have after them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from gossamer_ir.interchange.records import Schedule, Trace
from gossamer_ir.nodes import Module
from gossamer_schedule.cursor.ambiguity import name_conflicts, warn_ambiguous_name
from gossamer_schedule.cursor.handles import StmtHandle, current_name
from gossamer_schedule.primitive_result import PrimitiveResult
from gossamer_schedule.trace.codec import LOWERINGS
from gossamer_support.as_tuple import as_tuple


class AppliedSteps:
    """A program and the results of steps, of which each applies to the module of the one before.

    >>> from gossamer_schedule import split
    >>> from gossamer_testkit.examples import SCALE
    >>> applied = AppliedSteps(SCALE)
    >>> applied.record(split(SCALE, "i", factors=(None, 8)))
    >>> applied.names, [step.op for step in applied.trace]
    (('i_0', 'i_1'), ['split'])
    """

    def __init__(self, program: Module) -> None:
        self.program = program
        self.results: list[PrimitiveResult] = []
        self._conflicts: list[Mapping[str, str]] = []

    def __len__(self) -> int:
        return len(self.results)

    @property
    def module(self) -> Module:
        """The module after all steps. Handles refer to it by identity."""
        return self.results[-1].module if self.results else self.program

    @property
    def trace(self) -> Trace:
        """The steps. `lower()` is a step with the name of the lowering pass."""
        return tuple(result.step for result in self.results)

    @property
    def schedule(self) -> Schedule:
        """The steps by stage, without those that lower the module."""
        stages = [self.program.stage, *(result.module.stage for result in self.results)]
        traces: dict[str, Trace] = {}
        for stage, step in zip(stages, self.trace, strict=False):
            if step.op not in LOWERINGS.values():
                traces[stage] = (*traces.get(stage, ()), step)
        return Schedule(**traces)

    @property
    def names(self) -> tuple[StmtHandle, ...]:
        """The names that the last step made or moved."""
        return self.handles(self.results[-1].names if self.results else ())

    @property
    def drawn_values(self) -> dict[str, int | str | None]:
        """The values that sampling steps have drawn."""
        return {name: value for result in self.results for name, value in result.values.items()}

    def record(self, result: PrimitiveResult) -> None:
        """Add the result of a step."""
        earlier_names = {name for earlier in self.results for name in earlier.names}
        self._conflicts.append(name_conflicts(self.module, result, made=earlier_names))
        self.results.append(result)

    def keep(self, count: int) -> None:
        """Keep the first steps, and forget those after them."""
        del self.results[count:], self._conflicts[count:]

    def copy(self) -> Self:
        """Return an independent list of the same steps."""
        other = type(self)(self.program)
        other.results, other._conflicts = [*self.results], [*self._conflicts]
        return other

    def handles(self, names: tuple[str, ...]) -> tuple[StmtHandle, ...]:
        """Return handles of names in the module after all steps."""
        return tuple(StmtHandle(name, module=self.module) for name in names)

    def with_current_names(self, value: Any) -> Any:
        """Return an argument with its handles replaced by the names that their statements have now."""
        if isinstance(value, StmtHandle):
            return current_name(value, self.program, self.results)
        if isinstance(value, tuple):
            return tuple(map(self.with_current_names, value))
        return value

    def warn_of_conflicts(self, arguments: Mapping[str, Any]) -> None:
        """Warn about names given as text that an earlier step would have used for another loop."""
        if not any(self._conflicts):
            return
        texts = [text for value in arguments.values() for text in as_tuple(value)]
        for conflicts, result in zip(self._conflicts, self.results, strict=True):
            for name in texts:
                # A handle is a text of a type of its own, and says which loop it means.
                if type(name) is str and name in conflicts:
                    warn_ambiguous_name(name, conflicts[name], result.step.op)
