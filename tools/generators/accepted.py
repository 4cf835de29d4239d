"""`docs/accepted.md`: which scripts of the testkit each pass accepts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from gossamer.compilation.pipeline import lower_by_stage
from gossamer.targets.resolve_target import machine_for, resolve_target
from gossamer_ir.analysis.invariants import mutable_buffers
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interchange.records import Schedule, Target
from gossamer_ir.nodes import STAGES, Buffer, Module
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_lower.passes_by_name import PASSES, apply_pass
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES
from gossamer_schedule.rules import default_schedule
from gossamer_testkit import script, script_names
from tools import ROOT

PAGE = ROOT / "docs/accepted.md"
NOTE = "<!-- Generated from the scripts of the testkit by tools/generators/accepted.py. -->"
TARGET = Target.parse("generic-cpu:vector_bits=512")
"""A fixed target, so that the table does not depend on the machine that generates it."""
ACCEPTED, ABSENT = "+", " "
FORCED = {
    "lower.inspector.no_search": (
        "n",
        "the program has no search that depends on index arrays only, so nothing can be searched "
        "before the values are known",
    ),
    "lower.bounds_check_flat.not_proved": (
        "f",
        "the proofs need the caller of a function, or the loop that was vectorized, and the flat module "
        "does not have them; the pipeline has inserted the bounds checks of such a module before",
    ),
}
"""The codes of the errors, each with its sign and the reason why the pass cannot accept the module."""
INTRODUCTION = f"""\
For every script of the testkit, at every stage, these tables show which passes accept it. Each program is
lowered twice: as written, and with the schedule that the rules choose for `{TARGET.text}`.
A pass that leads from the loop stage to the flat stage is applied to the output of the passes before it;
every other pass is applied to the module of the stage. `lower_math` is given the instructions of the
target, `lower_vscale` its vscale. `substitute_buffer` replaces the elements of the first read-only buffer
of floats by ones.

* `{ACCEPTED}`: the pass returns a correct module, for both versions of the program.
* A letter: the pass raises the error that the last table lists.
* Two signs: the first is for the program as written, the second for the scheduled one.
* An empty cell: the program starts at a later stage, or has no buffer for `substitute_buffer`.

A test compares the tables with the passes, and fails if a pass raises an error that is not listed."""

Signs: TypeAlias = dict[tuple[str, str], str]
"""The sign for each pair of a stage and a pass."""


def sign_of(name: str, module: Module, arguments: dict[str, Any]) -> tuple[str | None, Module]:
    """Return the sign of a pass for a module (None if it does not take its stage), and the new module."""
    try:
        return ACCEPTED, verify(apply_pass(name, module, arguments=arguments))
    except (ArgumentError, UnsupportedError) as error:
        if error.code == "pass.stage":
            return None, module
        if error.code not in FORCED:
            raise
        return FORCED[error.code][0], module


def arguments_for(name: str, module: Module) -> dict[str, Any] | None:
    """Return the arguments of a pass besides the module; None if the pass cannot be applied to it."""
    if name == "lower_math":
        return {"instructions": list(resolve_target(TARGET)[0].instructions(TARGET))}
    if name == "lower_vscale":
        return {"vscale": machine_for(TARGET).fixed_vscale}
    if name == "substitute_buffer" and module.stage in PASSES[name].takes:
        return ones(module)
    return {}


def ones(module: Module) -> dict[str, Any] | None:
    """Return arguments that replace the first read-only buffer of floats by ones; None if there is none."""
    entry = next(function for function in module.functions if function.name == module.entry)
    for buffer in entry.buffers:
        if not isinstance(buffer, Buffer):
            continue
        is_read = buffer.handle is not None and buffer.name not in mutable_buffers(entry)
        if is_read and DType.parse(buffer.dtype).kind == "float":
            indices = [f"at_{count}" for count in range(len(buffer.shape))]
            return {"buffer": buffer.name, "indices": indices, "value": f"T.{buffer.dtype}(1)"}
    return None


def signs_of(module: Module, schedule: Schedule) -> Signs:
    """Return the signs of a program for each stage and pass, each pass in its place in the pipeline."""
    signs: Signs = {}
    places = {function.__name__ for function in FLAT_PASSES}
    for current in lower_by_stage(module, schedule):
        for name in PASSES.keys() - places:
            arguments = arguments_for(name, current)
            if arguments is not None:
                sign, _ = sign_of(name, current, arguments)
                signs |= {} if sign is None else {(current.stage, name): sign}
        if current.stage == "loop":
            for function in FLAT_PASSES:
                sign, current = sign_of(function.__name__, current, {})
                signs["loop", function.__name__] = sign or ABSENT
    return signs


def signs_of_script(name: str) -> Signs:
    """Return the signs of a script as written and as scheduled; one sign where both are equal."""
    module = parse_module(script(name))
    schedule = default_schedule(module, machine_for(TARGET))
    written = signs_of(module, Schedule())
    # The rules have nothing to change in two thirds of the scripts: both versions are the same program.
    scheduled = written if schedule == Schedule() else signs_of(module, schedule)
    return {
        key: sign if sign == scheduled[key] else sign + scheduled[key]
        for key, sign in written.items()
    }


def table(stage: str, signs: dict[str, Signs]) -> Iterator[str]:
    """Yield the lines of the table of a stage: a row for each program, a column for each pass."""
    taken = {
        name
        for program_signs in signs.values()
        for stage_name, name in program_signs
        if stage_name == stage
    }
    passes = [name for name in PASSES if name in taken]
    yield f"## {stage.capitalize()} stage\n"
    yield f"| program | {' | '.join(f'`{name}`' for name in passes)} |"
    yield f"|---|{':-:|' * len(passes)}"
    for name, program_signs in signs.items():
        if any(stage_name == stage for stage_name, _ in program_signs):
            yield f"| `{name}` | {' | '.join(program_signs.get((stage, of), ABSENT) for of in passes)} |"
    yield ""


def refusals(signs: Iterable[Signs]) -> Iterator[str]:
    """Yield the lines of the table of the errors that occur, with their reasons."""
    used: dict[str, set[str]] = defaultdict(set)
    for program_signs in signs:
        for (_, name), sign in program_signs.items():
            for letter in sign:
                used[letter].add(name)
    yield "## Errors\n"
    yield "| sign | code | passes | reason |\n|:-:|---|---|---|"
    for code, (letter, why) in FORCED.items():
        if letter in used:
            passes = ", ".join(f"`{name}`" for name in PASSES if name in used[letter])
            yield f"| {letter} | `{code}` | {passes} | {why} |"


def files() -> dict[Path, str]:
    """Return the whole document."""
    signs = {name: signs_of_script(name) for name in script_names()}
    lines = ["# Programs that each pass accepts\n", NOTE, "", INTRODUCTION, ""]
    for stage in STAGES:
        lines += table(stage, signs)
    return {PAGE: "\n".join([*lines, *refusals(signs.values()), ""])}
