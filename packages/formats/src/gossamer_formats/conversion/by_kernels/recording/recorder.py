"""Records the calls of a conversion while they are executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gossamer_formats.conversion.by_kernels.recording.branch import (
    Branch,
    RecordedCall,
    RecordedValue,
)
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.registry.compiler import Compile


class Recorder:
    """The calls so far for some inputs, and the values for these. `compile` compiles the kernels.

    Only what is equal for all inputs of a kind is an argument of the caller's code; everything else is a
    `RecordedValue`, and what the code does next depends on it by `decide` only.

    >>> import operator
    >>> recorder = Recorder(print, [4])
    >>> if recorder.decide(operator.lt, RecordedValue(0), 10):
    ...     doubled = recorder.compute(operator.add, RecordedValue(0), RecordedValue(0))
    >>> from gossamer_formats.conversion.by_kernels.recording.branch import run_recording
    >>> run_recording(recorder.finish(doubled), [7])
    14
    """

    def __init__(self, compile: Compile, inputs: Sequence[Any]) -> None:
        self.compile = compile
        self._values: dict[int, Any] = dict(enumerate(inputs))
        self._next = len(inputs)
        self._path = [Branch()]
        self._decided: dict[tuple[Any, ...], Any] = {}

    def compute(self, function: Callable[..., Any], *arguments: Any) -> RecordedValue:
        """Call a function of values and constants, and return its result as a value."""
        call = self._recorded_call(function, arguments)
        self._values[call.result] = self._call(call)
        self._path[-1].calls.append(call)
        return RecordedValue(call.result)

    def decide(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a function of values and constants, on which all that follows may depend.

        The result must be hashable. The values must not be changed later by a call.
        """
        # Equal for all inputs of the kind: there is nothing to decide again.
        if not any(isinstance(argument, RecordedValue) for argument in arguments):
            return function(*arguments)
        key = (function, *arguments)
        if key not in self._decided:
            call = self._recorded_call(function, arguments)
            outcome = self._decided[key] = self._call(call)
            self._path[-1].decision, after = call, Branch()
            self._path[-1].outcomes[outcome] = after
            self._path.append(after)
        return self._decided[key]

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Forget the calls of code that raises `NotDirectError`, unless a decision has led to the error."""
        branch, count = self._path[-1], len(self._path[-1].calls)
        try:
            yield
        except NotDirectError:
            # After a decision, calls belong to its branch, which other inputs may leave by another outcome.
            if self._path[-1] is branch:
                del branch.calls[count:]
            raise

    def finish(self, result: RecordedValue | None) -> Branch:
        """Return the recording. It returns the value `result`, or None."""
        last = self._path[-1]
        if result is None:
            last.constants[self._next] = None
        last.result = self._next if result is None else result.key
        _set_last_used(self._path)
        return self._path[0]

    def value(self, value: RecordedValue | None) -> Any:
        """Return a value for the inputs of the recording: the result."""
        return None if value is None else self._values[value.key]

    def _recorded_call(
        self, function: Callable[..., Any], arguments: Sequence[Any]
    ) -> RecordedCall:
        keys = []
        for argument in arguments:
            if isinstance(argument, RecordedValue):
                keys.append(argument.key)
                continue
            self._values[self._next] = self._path[-1].constants[self._next] = argument
            keys.append(self._next)
            self._next += 1
        self._next += 1
        return RecordedCall(function, tuple(keys), self._next - 1)

    def _call(self, call: RecordedCall) -> Any:
        return call.function(*[self._values[key] for key in call.arguments])


def _set_last_used(path: Sequence[Branch]) -> None:
    """Note in each call which of its values are used last there, so that their memory can be used again."""
    needed = {path[-1].result}
    for branch in reversed(path):
        if branch.decision is not None:
            needed.update(branch.decision.arguments)
        for number in reversed(range(len(branch.calls))):
            call = branch.calls[number]
            used = {*call.arguments, call.result}
            branch.calls[number] = call._replace(last_used=tuple(used - needed))
            needed |= used
