"""Writes `accepted.md`, the table of what every pass makes of every script of the testkit.

`python docs/generate_accepted.py` rewrites the file; a test fails if it is out of date.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gossamer.pipeline import STAGES, lowered, resolve
from gossamer_ir.analysis.invariants import mutable_buffers
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import ArgumentError, UnsupportedError
from gossamer_ir.interchange.records import Schedule, Target
from gossamer_ir.nodes import Buffer, Module
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_lower.pass_manager import PASSES, apply_pass
from gossamer_lower.pipeline import FLAT_PASSES
from gossamer_schedule.rules import choose
from gossamer_testkit import script, script_names

PAGE = Path(__file__).parent / "accepted.md"
NOTE = "<!-- Generated from the scripts of the testkit by docs/generate_accepted.py. -->"
TARGET = Target.parse("generic-cpu:vector_bits=512")
"""A machine that is the same wherever the table is made."""
ACCEPTED, ABSENT = "+", " "
FORCED = {
    "lower.preprocess.nothing": (
        "n",
        "it searches nothing, or only what depends on values, so nothing can be found before they are "
        "known",
    ),
    "lower.flat_guards": (
        "f",
        "what a function of the flat stage may rely on stands in its caller, or stood in the loop "
        "that its vectors come from; such a module was given its guards before",
    ),
}
"""The codes of refusals, each with its sign and why there is no other answer."""
INTRODUCTION = f"""\
Every script of the testkit at every stage, and what becomes of it under every pass that takes that
stage. Each program is lowered twice: as written, and as the rules schedule it for
`{TARGET.text}`. A pass from the loop stage to the flat stage gets what the passes before
it leave, every other one the module of the stage. `lower_math` gets the instructions of the target,
`specialize_buffer` the first array of values that is only read, whose elements become ones.

`{ACCEPTED}` is accepted both ways, which means that the pass gives a right module; a letter is a refusal of
the list at the end; two signs are for the program as written and for the scheduled one. Nothing
stands where a program is of a later stage, or has no such array. A test compares the table with what
the passes do, and refuses a code that is not in the list."""

Signs = dict[tuple[str, str], str]
"""The sign of each stage and pass."""


def sign_of(name: str, module: Module, arguments: dict[str, Any]) -> tuple[str | None, Module]:
    """The sign of a pass on a module, and what it makes of it; None for a stage it does not take."""
    try:
        return ACCEPTED, verify(apply_pass(name, module, arguments=arguments))
    except (ArgumentError, UnsupportedError) as error:
        if error.code == "pass.stage":
            return None, module
        if error.code not in FORCED:
            raise
        return FORCED[error.code][0], module


def arguments_for(name: str, module: Module) -> dict[str, Any] | None:
    """What a pass takes besides a module; None where there is nothing that it could be used for."""
    if name == "lower_math":
        return {"instructions": list(resolve(TARGET)[0].instructions(TARGET))}
    if name == "specialize_buffer" and module.stage in PASSES[name].takes:
        return ones(module)
    return {}


def ones(module: Module) -> dict[str, Any] | None:
    """What makes ones of the first array of values that is only read."""
    entry = next(found for found in module.functions if found.name == module.entry)
    for buffer in entry.buffers:
        if not isinstance(buffer, Buffer):
            continue
        is_read = buffer.handle is not None and buffer.name not in mutable_buffers(entry)
        if is_read and DType.parse(buffer.dtype).kind == "float":
            indices = [f"at_{count}" for count in range(len(buffer.shape))]
            return {"buffer": buffer.name, "indices": indices, "value": f"T.{buffer.dtype}(1)"}
    return None


def signs_of(module: Module, schedule: Schedule) -> Signs:
    """What every pass at its place makes of a program, by stage and pass."""
    found: Signs = {}
    places = {function.__name__ for function in FLAT_PASSES}
    for current in lowered(module, schedule):
        for name in PASSES.keys() - places:
            arguments = arguments_for(name, current)
            if arguments is not None:
                sign, _ = sign_of(name, current, arguments)
                found |= {} if sign is None else {(current.stage, name): sign}
        if current.stage == "loop":
            for function in FLAT_PASSES:
                sign, current = sign_of(function.__name__, current, {})
                found["loop", function.__name__] = sign or ABSENT
    return found


def signs_of_script(name: str) -> Signs:
    """Both ways of a script in one."""
    module = parse_module(script(name))
    written, scheduled = (signs_of(module, way) for way in (Schedule(), choose(module, TARGET)))
    return {
        key: sign if sign == scheduled[key] else sign + scheduled[key]
        for key, sign in written.items()
    }


def table(stage: str, signs: dict[str, Signs]) -> Iterator[str]:
    """The table of a stage: programs by passes, in their order."""
    taken = {name for found in signs.values() for at, name in found if at == stage}
    passes = [name for name in PASSES if name in taken]
    yield f"## {stage.capitalize()} stage\n"
    yield f"| program | {' | '.join(f'`{name}`' for name in passes)} |"
    yield f"|---|{':-:|' * len(passes)}"
    for name, found in signs.items():
        if any(at == stage for at, _ in found):
            yield f"| `{name}` | {' | '.join(found.get((stage, of), ABSENT) for of in passes)} |"
    yield ""


def refusals(signs: Iterable[Signs]) -> Iterator[str]:
    """The codes that occur, and why."""
    used: dict[str, set[str]] = defaultdict(set)
    for found in signs:
        for (_, name), sign in found.items():
            for letter in sign:
                used[letter].add(name)
    yield "## Refusals\n"
    yield "| sign | code | passes | why mathematics forces it |\n|:-:|---|---|---|"
    for code, (letter, why) in FORCED.items():
        if letter in used:
            passes = ", ".join(f"`{name}`" for name in PASSES if name in used[letter])
            yield f"| {letter} | `{code}` | {passes} | {why} |"


def page() -> str:
    """The whole document."""
    signs = {name: signs_of_script(name) for name in script_names()}
    lines = ["# What is accepted: program by stage by pass\n", NOTE, "", INTRODUCTION, ""]
    for stage in STAGES:
        lines += table(stage, signs)
    return "\n".join([*lines, *refusals(signs.values()), ""])


if __name__ == "__main__":
    PAGE.write_text(page())
