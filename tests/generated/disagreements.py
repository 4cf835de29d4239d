"""Whether a program means the same to its oracle, at every stage, and as machine code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gossamer_ir.errors import GossamerError, UnsupportedError
from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_ir.verify import diagnostics, verify
from tests.generated.compilers import COMPILER, Compiler, Scheduler, unscheduled
from tests.generated.programs import Program


class Disagreement(Exception):
    """What a stage does and the oracle does not."""


@dataclass(frozen=True)
class Verdict:
    """At most one of: what disagrees, and the code with which the compiler refuses the program."""

    disagreement: str | None = None
    refusal: str | None = None


def disagreement(
    program: Program,
    compiler: Compiler = COMPILER,
    *,
    native: bool = False,
    schedule: Scheduler = unscheduled,
) -> str | None:
    """What the first stage that disagrees with the oracle does, None where all agree; a program that
    is refused agrees with nothing."""
    verdict = judged(program, compiler, native=native, schedule=schedule)
    return verdict.disagreement or (verdict.refusal and f"refused: {verdict.refusal}")


def judged(
    program: Program,
    compiler: Compiler = COMPILER,
    *,
    native: bool = False,
    schedule: Scheduler = unscheduled,
) -> Verdict:
    """Runs every stage, and where `native` machine code too."""
    where = "the parsed program"
    try:
        module = verify(parse_module(program.text))
        for current in compiler.stages(module, schedule):
            where = f"the {current.stage} stage"
            _require_valid(current)
            _interpret(program, current)
        if native:
            where = "machine code"
            _call(program, compiler, current)
    except UnsupportedError as error:
        return Verdict(refusal=error.code)
    except (Disagreement, GossamerError) as error:
        return Verdict(f"{where}: {type(error).__name__}: {error}")
    return Verdict()


def _require_valid(module: Module) -> None:
    found = [f"{item.code}: {item.message}" for item in diagnostics(module)]
    if found:
        raise Disagreement("; ".join(found))


def _interpret(program: Program, module: Module) -> None:
    arrays = _fresh(program)
    try:
        run(module, {**arrays, **program.sizes}, chunks=2)
    except InterpreterError as error:
        raise Disagreement(str(error)) from None
    _require_expected(program, arrays)


def _call(program: Program, compiler: Compiler, flat: Module) -> None:
    arrays = _fresh(program)
    compiler.kernel(flat)(**arrays, **program.sizes)
    _require_expected(program, arrays)


def _fresh(program: Program) -> dict[str, np.ndarray]:
    return {name: array.flatten() for name, array in program.arrays.items()}


def _require_expected(program: Program, arrays: Mapping[str, np.ndarray]) -> None:
    for name, expected in program.expected.items():
        if not np.array_equal(arrays[name], expected.ravel(), equal_nan=expected.dtype.kind == "f"):
            raise Disagreement(f"{name} is {arrays[name]}, expected {expected.ravel()}")
