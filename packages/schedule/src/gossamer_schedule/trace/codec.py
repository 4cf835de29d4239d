"""Converts traces to and from JSON, and to Python code."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import LOWERING_PASSES, SCHEDULED_STAGES, Step, Trace
from gossamer_ir.nodes import StageName
from gossamer_schedule.definition.arguments import value_text, variadic_argument
from gossamer_schedule.errors import schedule_error
from gossamer_schedule.trace.primitive_table import PRIMITIVES

LOWERINGS: Mapping[StageName, str] = {
    stage: LOWERING_PASSES[stage] for stage in SCHEDULED_STAGES[:-1]
}
"""The step that lowers a module of each stage, in the trace of a builder. It has the name of the pass, so
that `gossamer opt` can apply the trace."""


def trace_to_json(trace: Trace) -> str:
    """Return a JSON list of steps, each with `op` and `args`. `gossamer opt --trace` reads it as well.

    >>> from gossamer_ir.interchange.records import Step
    >>> trace_to_json((Step("split", {"loop": "i", "factors": (None, 8)}),))
    '[{"op":"split","args":{"loop":"i","factors":[null,8]}}]'
    """
    return msgspec.json.encode(trace).decode()


def trace_from_json(text: str | bytes) -> Trace:
    """Return the trace of a JSON list of steps, given as text or as bytes in UTF-8.

    Raises `ScheduleError`: `schedule.trace.json`.

    >>> trace_from_json('[{"op":"split","args":{"loop":"i","factors":[null,8]}}]')
    (Step(op='split', args={'loop': 'i', 'factors': (None, 8)}),)
    """
    if not isinstance(text, (str, bytes, bytearray, memoryview)):
        raise _trace_error(f"The trace is {value_text(text)}; expected JSON as text or bytes.")
    try:
        data = text.encode() if isinstance(text, str) else text
        return msgspec.json.decode(data, type=Trace)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _trace_error(f"The text is not a list of steps: {error}.") from None


def _trace_error(message: str) -> ScheduleError:
    return schedule_error(
        "trace.json",
        message,
        hint='Expected steps such as {"op": "split", "args": {"loop": "i", "factors": [null, 8]}}.',
    )


def trace_to_python(trace: Trace) -> str:
    """Return the Python text of a function that applies the steps to a `ScheduleBuilder`.

    >>> from gossamer_ir.interchange.records import Step
    >>> print(trace_to_python((Step("split", {"loop": "i", "factors": (None, 8)}),)))
    def schedule(sch):
        sch.split(loop='i', factors=(None, 8))
        return sch
    """
    calls = [f"    sch.{step_to_python(step)}" for step in trace]
    return "\n".join(["def schedule(sch):", *calls, "    return sch"])


def step_to_python(step: Step) -> str:
    """Return a step as the text of a method call on `ScheduleBuilder`.

    >>> from gossamer_ir.interchange.records import Step
    >>> step_to_python(Step("reorder", {"loops": ("j", "i")}))
    "reorder('j', 'i')"
    >>> step_to_python(Step("lower_buffers", {}))
    'lower()'
    >>> step_to_python(Step("toy.keep", {"loop": "i"}))
    "apply('toy.keep', loop='i')"
    """
    if step.op in LOWERINGS.values():
        return "lower()"
    variadic = variadic_argument(PRIMITIVES[step.op]) if step.op in PRIMITIVES else None
    variadic_values = () if variadic is None else step.args.get(variadic, ())
    parts = [repr(name) for name in variadic_values] if isinstance(variadic_values, tuple) else []
    parts += [f"{name}={value!r}" for name, value in step.args.items() if name != variadic]
    if "." in step.op:
        return f"apply({', '.join([repr(step.op), *parts])})"
    return f"{step.op}({', '.join(parts)})"
