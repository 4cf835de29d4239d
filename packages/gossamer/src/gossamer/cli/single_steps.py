"""Apply single passes and primitives to a module, for `gossamer opt`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

from gossamer.cli.plugin_passes import extension_points_of, pass_records
from gossamer.targets import resolve_target
from gossamer.targets.parse_target import DEFAULT_TARGET, parse_target
from gossamer.targets.resolve_target import plugin_of
from gossamer_ir.errors import ArgumentError, Diagnostic, VerifyError
from gossamer_ir.interchange.records import Step, Target
from gossamer_ir.interchange.serialization import loads
from gossamer_ir.nodes import Module
from gossamer_ir.script.parser.modules import ParsedModule, parse_text
from gossamer_ir.script.render import render
from gossamer_ir.script.source import Source
from gossamer_ir.verify import diagnostics, verify
from gossamer_support.message_texts import either

if TYPE_CHECKING:
    from gossamer_backend.internal_api import Extension
    from gossamer_lower.internal_api import PassRecord

MAX_STEP = 10_000
"""The maximum number of characters of a step, and of steps of a trace."""

_NAME = re.compile(r"(?:[^\W\d][\w-]*\.)?[^\W\d]\w*")
"""The name of a pass or a primitive, after that of its plugin if it has one."""


def to_step(text: str) -> Step:
    """Parse a pass or a primitive with its arguments.

    `ArgumentError` (`option.pass`) unless the text is a name, or a call whose arguments are literals given by
    name.

    >>> to_step('split(loop="i", factors=[None, 8])')
    Step(op='split', args={'loop': 'i', 'factors': (None, 8)})
    >>> to_step("lower_iterations")
    Step(op='lower_iterations', args={})
    >>> to_step('my-plugin.interchange(loop="i")')
    Step(op='my-plugin.interchange', args={'loop': 'i'})
    """
    try:
        return _parsed_step(text.strip())
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise ArgumentError(
            "option.pass",
            f"--pass is '{text.strip()[:80]}'; expected a name, or a name with arguments.",
            hint="As in 'split(loop=\"i\", factors=[None, 8])'.",
        ) from None


def _parsed_step(text: str) -> Step:
    """Return the step of a text; anything else raises `ValueError` or an error of Python's parser."""
    op = _NAME.match(text)
    if op is None or len(text) > MAX_STEP:
        raise ValueError
    # The names of plugins may have hyphens, which the names of Python do not.
    match ast.parse(f"op{text[op.end() :]}", mode="eval").body:
        case ast.Name():
            return Step(op[0], {})
        case ast.Call(func=ast.Name(), args=[], keywords=keywords):
            return Step(op[0], dict(map(_argument, keywords)))
    raise ValueError


def _argument(keyword: ast.keyword) -> tuple[str, Any]:
    """Return the name and the value of an argument; lists are tuples, as in traces."""
    if keyword.arg is None:
        raise ValueError
    value = ast.literal_eval(keyword.value)
    return keyword.arg, tuple(value) if isinstance(value, list) else value


def parse_program_text(text: str, *, name: str) -> Module:
    """Return the verified module of a script or of canonical JSON; errors show the text and its `name`."""
    if text.lstrip()[:1] == "{":
        return verify(loads(text))
    parsed = parse_text(Source(text, name=name), captured={})
    problems = diagnostics(parsed.module)
    if problems:
        raise VerifyError.from_diagnostics(problems, _caret_lines(parsed, problems))
    return parsed.module


def apply_steps(
    module: Module,
    steps: Iterable[Step],
    *,
    verify_each: bool = False,
    target: str = DEFAULT_TARGET,
) -> Module:
    """Apply passes and primitives in order, and verify the module after each. With `verify_each`, it is also
    verified after each pass within a step, and against the entry of the pass in the table of passes. Steps
    may name the intrinsics of the target.

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
        module = verify(_apply_step(module, step, verify_each=verify_each, target=target))
    return module


def _apply_step(module: Module, step: Step, *, verify_each: bool, target: str) -> Module:
    from gossamer_lower.internal_api import PASSES, apply_pass, apply_record
    from gossamer_schedule import PRIMITIVES, replay

    if step.op in PASSES:
        inner = {"verify_each": True} if verify_each and step.op == "lower_to_flat" else {}
        result = apply_pass(step.op, module, arguments={**step.args, **inner})
        if verify_each:
            PASSES[step.op].require_postconditions(result)
        return result
    extension = _extension_of_step(step, parse_target(target))
    passes = pass_records(extension) if extension else {}
    if step.op in passes:
        return apply_record(passes[step.op], module, arguments=step.args)
    primitives = extension.primitives if extension else {}
    if step.op not in PRIMITIVES and step.op not in primitives:
        raise _unknown_step_error(step)
    # The plugin of the target is only loaded for steps that need it.
    intrinsics = plugin_of(parse_target(target)).intrinsics if "intrinsic" in step.args else ()
    return replay(module, (step,), intrinsics=intrinsics, primitives=primitives)


def _extension_of_step(step: Step, target: Target) -> Extension | None:
    """Return what the plugin in the name of a step, `<plugin>.<name>`, registered: an extension of the
    target's backend, or the plugin of any backend. None for other names."""
    name, is_of_plugin, _ = step.op.rpartition(".")
    if not is_of_plugin:
        return None
    registry = resolve_target.registry
    for point in registry.extension_entry_points(target.backend):
        if point.name == f"{target.backend}.{name}":
            return registry.extension(target.backend, point)
    if name not in registry.names():
        raise _unknown_step_error(
            step, f"the plugin '{name}' is not installed for '{target.backend}'"
        )
    return registry.plugin(name).backend_extension


def _unknown_step_error(step: Step, reason: str | None = None) -> ArgumentError:
    because = "" if reason is None else f": {reason}"
    return ArgumentError(
        "option.pass",
        f"There is no pass or primitive '{step.op}'{because}.",
        hint="gossamer opt --list shows them.",
    )


def _caret_lines(module: ParsedModule, diagnostics: Iterable[Diagnostic]) -> str:
    """Return the lines of a text with carets below the places of diagnostics."""
    shown = [render(module, (one,)).partition("\n")[2] for one in diagnostics]
    return "\n".join(dict.fromkeys(filter(None, shown)))


def steps_text() -> str:
    """Return a list of all passes and primitives with their parameters, as text. Those of installed plugins
    come last, and a plugin that cannot be loaded is left out.

    >>> steps_text().splitlines()[:2]
    ['passes', '  lower_iterations                  coordinate to position']
    """
    from gossamer_lower.internal_api import PASSES
    from gossamer_schedule import PRIMITIVES
    from gossamer_schedule.internal_api import parameters_of

    # `gossamer backends` shows why a plugin is broken.
    names = resolve_target.registry.names()
    extensions = [*chain.from_iterable(map(resolve_target.registry.working_extensions, names))]
    lines = ["passes", *map(_pass_line, PASSES.values())]
    lines += [
        ", ".join((_pass_line(record), *extension_points_of(extension, name)))
        for extension in extensions
        for name, record in pass_records(extension).items()
    ]
    lines.append("primitives")
    lines += [f"  {name}({', '.join(parameters_of(name))})" for name in PRIMITIVES]
    lines += [
        f"  {name}({', '.join(parameters_of(name, extension.primitives))})"
        for extension in extensions
        for name in extension.primitives
    ]
    # An extension of two backends is listed once.
    return "\n".join(dict.fromkeys(lines))


def _pass_line(record: PassRecord) -> str:
    stages = either(record.takes) if record.takes else "any stage"
    stages += f" to {record.gives}" if record.gives else ""
    without = f", without {', '.join(record.without)}" if record.without else ""
    return f"  {record.name:<32}  {stages}{without}"
