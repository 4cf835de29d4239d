"""Apply single passes and primitives to a module, for `gossamer opt`."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import msgspec

from gossamer.targets import DEFAULT_TARGET
from gossamer_ir.errors import ArgumentError, Diagnostic, VerifyError
from gossamer_ir.interchange.records import Intrinsic, Step, Trace
from gossamer_ir.interchange.serialization import loads
from gossamer_ir.nodes import Module
from gossamer_ir.script.parser.modules import Parsed, parse_text
from gossamer_ir.script.render import render
from gossamer_ir.script.source import Source
from gossamer_ir.verify import diagnostics, verify

MAX_STEP = 10_000
"""The maximum number of characters of a step, and of steps of a trace."""


def to_step(text: str) -> Step:
    """Parse a pass or a primitive with its arguments.

    `ArgumentError` (`option.pass`) unless the text is a name, or a call whose arguments are literals given by
    name.

    >>> to_step('split(loop="i", factors=[None, 8])')
    Step(op='split', args={'loop': 'i', 'factors': (None, 8)})
    >>> to_step("lower_iterations")
    Step(op='lower_iterations', args={})
    """
    try:
        if len(text) > MAX_STEP:
            raise ValueError
        expression = ast.parse(text.strip(), mode="eval").body
        name, keywords = (
            (expression.func, expression.keywords)
            if isinstance(expression, ast.Call)
            else (expression, [])
        )
        has_names = all(keyword.arg is not None for keyword in keywords)
        has_positions = isinstance(expression, ast.Call) and bool(expression.args)
        if not isinstance(name, ast.Name) or not has_names or has_positions:
            raise ValueError
        return _step(name.id, {str(part.arg): ast.literal_eval(part.value) for part in keywords})
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise ArgumentError(
            "option.pass",
            f"--pass is '{text[:80]}'; expected a name, or a name with arguments.",
            hint="As in 'split(loop=\"i\", factors=[None, 8])'.",
        ) from None


def to_trace(text: str) -> Trace:
    """Return the steps of a JSON list of `{"op": ..., "args": {...}}`; raise `ArgumentError`
    (`option.trace`)."""
    try:
        steps = msgspec.json.decode(text.encode(), type=list[_Given])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ArgumentError(
            "option.trace",
            f"The trace is not a list of steps: {error}.",
            hint='Each step has the form {"op": "split", "args": {"loop": "i", "factors": [null, 8]}}.',
        ) from None
    return tuple(_step(step.op, step.args) for step in steps)


def _step(op: str, args: dict[str, Any]) -> Step:
    """Return a step with lists replaced by tuples, as in traces."""
    return Step(
        op, {name: tuple(arg) if isinstance(arg, list) else arg for name, arg in args.items()}
    )


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    op: str
    args: dict[str, Any] = {}


def to_module(text: str, *, name: str) -> Module:
    """Return the verified module of a script or of canonical JSON; errors show the text and its `name`."""
    if text.lstrip()[:1] == "{":
        return verify(loads(text))
    parsed = parse_text(Source(text, name=name), captured={})
    problems = diagnostics(parsed.module)
    if problems:
        raise VerifyError(
            problems[0].code,
            problems[0].message,
            diagnostics=problems,
            text=_caret_lines(parsed, problems),
        )
    return parsed.module


def apply_steps(module: Module, steps: Iterable[Step], *, verify_each: bool = False) -> Module:
    """Apply passes and primitives in order, and verify the module after each. With `verify_each`, it is also
    verified after each pass within a step, and against the entry of the pass in the table of passes.

    Raises their errors, and `ArgumentError` (`option.pass`) for an unknown name.

    >>> from gossamer_testkit.examples import SCALE
    >>> from gossamer_testkit.show import body_text
    >>> steps = map(to_step, ['split(loop="i", factors=[None, 8])', "lower_blocks", "simplify"])
    >>> print(body_text(apply_steps(SCALE, steps)))
    for i_0 in T.serial((n + 7) // 8):
        for i_1 in T.serial(8):
            if i_0 * 8 + i_1 < n:
                Y[i_0 * 8 + i_1] = X[i_0 * 8 + i_1] * 2.0
    """
    for step in steps:
        module = verify(_apply_step(module, step, verify_each=verify_each))
    return module


def _apply_step(module: Module, step: Step, *, verify_each: bool) -> Module:
    from gossamer_lower.pass_manager import PASSES, apply_pass
    from gossamer_schedule import PRIMITIVES, replay

    if step.op in PASSES:
        inner = {"verify_each": True} if verify_each and step.op == "lower_to_flat" else {}
        result = apply_pass(step.op, module, arguments={**step.args, **inner})
        if verify_each:
            PASSES[step.op].require_kept_promise(result)
        return result
    if step.op not in PRIMITIVES:
        raise ArgumentError(
            "option.pass",
            f"There is no pass or primitive '{step.op}'.",
            hint="gossamer opt --list shows them.",
        )
    return replay(module, (step,), intrinsics=_intrinsics() if "intrinsic" in step.args else ())


def _intrinsics() -> tuple[Intrinsic, ...]:
    """Return the intrinsics that steps may name: those of the default target."""
    from gossamer.resolve_target import registry

    return registry.plugin(DEFAULT_TARGET).intrinsics


def _caret_lines(module: Parsed, diagnostics: Iterable[Diagnostic]) -> str:
    """Return the lines of a text with carets below the places of diagnostics."""
    shown = [render(module, (one,)).partition("\n")[2] for one in diagnostics]
    return "\n".join(dict.fromkeys(filter(None, shown)))


def steps_text() -> str:
    """Return a list of all passes and primitives with their parameters, as text.

    >>> steps_text().splitlines()[:2]
    ['passes', '  lower_iterations                  coordinate to position']
    """
    from gossamer_lower.pass_manager import PASSES
    from gossamer_schedule import PRIMITIVES
    from gossamer_schedule.trace.replay import parameters_of

    lines = ["passes"]
    for name, record in PASSES.items():
        stages = " or ".join(record.takes) or "any stage"
        stages += f" to {record.gives}" if record.gives else ""
        without = f", without {', '.join(record.without)}" if record.without else ""
        lines.append(f"  {name:<32}  {stages}{without}")
    lines.append("primitives")
    for name in PRIMITIVES:
        lines.append(f"  {name}({', '.join(parameters_of(name))})")
    return "\n".join(lines)


__all__ = ["apply_steps", "steps_text", "to_module", "to_step", "to_trace"]
