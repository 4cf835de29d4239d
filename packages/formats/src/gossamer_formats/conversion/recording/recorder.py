"""Records the steps of a conversion while they are executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gossamer_formats.conversion.recording.branch import Branch, PlannedCall, PlanValue
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.registry.compiler import Compile


class Recorder:
    """The steps so far for some inputs, and the values for these. `compile` compiles the programs.

    Only what is equal for all inputs of a kind is an argument of the caller's code; everything else is a
    `PlanValue`, and what the code does next depends on it by `decide` only.

    >>> import operator
    >>> recorder = Recorder(print, [4])
    >>> if recorder.decide(operator.lt, PlanValue(0), 10):
    ...     doubled = recorder.compute(operator.add, PlanValue(0), PlanValue(0))
    >>> from gossamer_formats.conversion.recording.branch import run_plan
    >>> run_plan(recorder.finish(doubled), [7])
    14
    """

    def __init__(self, compile: Compile, inputs: Sequence[Any]) -> None:
        self.compile = compile
        self._values: dict[int, Any] = dict(enumerate(inputs))
        self._next = len(inputs)
        self._path = [Branch()]
        self._decided: dict[tuple[Any, ...], Any] = {}

    def compute(self, function: Callable[..., Any], *arguments: Any) -> PlanValue:
        """Call a function of values and constants, and return its result as a value."""
        step = self._step(function, arguments)
        self._values[step.result] = self._call(step)
        self._path[-1].steps.append(step)
        return PlanValue(step.result)

    def decide(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a function of values and constants, on which all that follows may depend.

        The result must be hashable. The values must not be changed later by a step.
        """
        if not any(isinstance(argument, PlanValue) for argument in arguments):
            return function(*arguments)
        key = (function, *arguments)
        if key not in self._decided:
            step = self._step(function, arguments)
            outcome = self._decided[key] = self._call(step)
            self._path[-1].decision, after = step, Branch()
            self._path[-1].outcomes[outcome] = after
            self._path.append(after)
        return self._decided[key]

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Forget the steps of code that raises `NotDirectError`, unless a decision has led to the error."""
        branch, count = self._path[-1], len(self._path[-1].steps)
        try:
            yield
        except NotDirectError:
            if self._path[-1] is branch:
                del branch.steps[count:]
            raise

    def finish(self, result: PlanValue | None) -> Branch:
        """Return the plan. It returns the value `result`, or None."""
        last = self._path[-1]
        if result is None:
            last.constants[self._next] = None
        last.result = self._next if result is None else result.number
        _set_last_used(self._path)
        return self._path[0]

    def value(self, value: PlanValue | None) -> Any:
        """Return a value for the inputs of the recording: the result."""
        return None if value is None else self._values[value.number]

    def _step(self, function: Callable[..., Any], arguments: Sequence[Any]) -> PlannedCall:
        numbers = []
        for argument in arguments:
            if isinstance(argument, PlanValue):
                numbers.append(argument.number)
                continue
            self._values[self._next] = self._path[-1].constants[self._next] = argument
            numbers.append(self._next)
            self._next += 1
        self._next += 1
        return PlannedCall(function, tuple(numbers), self._next - 1)

    def _call(self, step: PlannedCall) -> Any:
        return step.function(*[self._values[number] for number in step.arguments])


def _set_last_used(path: Sequence[Branch]) -> None:
    """Note in each step which of its values are used last there, so that their memory can be used again."""
    needed = {path[-1].result}
    for branch in reversed(path):
        if branch.decision is not None:
            needed.update(branch.decision.arguments)
        for place in reversed(range(len(branch.steps))):
            step = branch.steps[place]
            used = {*step.arguments, step.result}
            branch.steps[place] = step._replace(last_used=tuple(used - needed))
            needed |= used
