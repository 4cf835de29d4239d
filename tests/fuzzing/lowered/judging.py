"""Checks that a program means the same before and after every pass, and as machine code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from gossamer_ir.errors import GossamerError, PluginError, UnsupportedError
from gossamer_ir.interpret import GuardFailed, InterpreterError
from gossamer_ir.interpret.interpreter_errors import AllocationFailed
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import diagnostics
from tests.fuzzing.execution.compilers import BEFORE, COMPILER, Compiler, has_too_many_nodes
from tests.fuzzing.execution.races import Race, require_no_race
from tests.fuzzing.lowered.limited_interpreter import TooManySteps, run_limited
from tests.fuzzing.lowered.native_process import NativeProcess, Outcome
from tests.fuzzing.lowered.programs.lowered_program import Lowered
from tests.fuzzing.schedules.sequences import Traces

PRINTED = 8
"""One in so many programs is parsed again from its printed text."""
MACHINE_CODE = "machine code"
TOO_LARGE = "too large to be interpreted"
GOES_ON = "goes on where it has to stop"
# After these primitives, values that are not read, or that a `Select` does not choose, are not computed.
LEAVE_OUT = frozenset({"compute_inline", "decompose_padding"})
Step: TypeAlias = tuple[str, Callable[[Module], Module]]


class Scheduler(Protocol):
    """Applies the steps that `traces` holds for each stage."""

    traces: Traces

    def __call__(self, module: Module, /) -> Module: ...


@dataclass(frozen=True)
class Finding:
    """The first pass or run that fails, how, and the module before it; or (`is_refusal`) the code with which
    the compiler rejects the program."""

    where: str
    what: str
    made: str = ""
    is_refusal: bool = False


def finding_of(
    program: Lowered,
    compiler: Compiler = COMPILER,
    *,
    process: NativeProcess | None = None,
    schedule: Scheduler | None = None,
) -> Finding | None:
    """Interprets the program as it is and after each pass that changes it, then runs it as machine code on
    `process`. `schedule` is applied before the passes of each stage."""
    message = interpreted(program, program.module, "the program")
    if len(program.text) % PRINTED == 0:
        message = message or _text(program)
    if message is not None:
        return message
    module, is_guarded = program.module, False
    for name, apply in _steps(module, compiler, schedule):
        try:
            after = apply(module)
        except (UnsupportedError, PluginError) as error:
            return Finding(name, error.code, is_refusal=True)
        except GossamerError as error:
            return Finding(name, f"{type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever is not ours is what is looked for
            return Finding(name, f"{type(error).__name__}: {error}", print_module(module))
        is_guarded |= name == "insert_bounds_checks"
        if name == "insert_bounds_checks" and has_too_many_nodes(after):
            return Finding(name, TOO_LARGE, is_refusal=True)
        message = (
            None if after == module else interpreted(program, after, name, is_guarded=is_guarded)
        )
        if message is not None:
            return None if _is_left_out(message, schedule) else message
        module = after
    return None if process is None else _run(program, module, process)


def _is_left_out(finding: Finding, schedule: Scheduler | None) -> bool:
    """True if a program does not stop any more because these primitives removed the computation that stopped
    it."""
    if schedule is None or finding.what != GOES_ON or not finding.where.startswith("the schedule"):
        return False
    return any(step.op in LEAVE_OUT for trace in schedule.traces.values() for step in trace)


def _steps(module: Module, compiler: Compiler, schedule: Scheduler | None) -> Iterator[Step]:
    """The passes from the stage of a module on, with the schedule before those of each stage. A flat module
    gets bounds checks like a module of the loop stage, as one of a user does."""
    passes = compiler.passes[BEFORE.get(module.stage, BEFORE["loop"]) :]
    if module.stage == "flat":
        yield "as a loop program", partial(_staged, stage="loop")
    elif schedule is not None:
        yield f"the schedule of the {module.stage} stage", schedule
    for name, lower in passes:
        yield name, lower
        if name == "lower_buffers" and schedule is not None:
            yield "the schedule of the loop stage", schedule


def _staged(module: Module, *, stage: str) -> Module:
    return Module(stage, module.functions, module.entry)  # type: ignore[arg-type]  # a stage's name


def _text(program: Lowered) -> Finding | None:
    if parse_module(program.text) == program.module:
        return None
    return Finding("print_module", "the text is parsed as another program")


def interpreted(
    program: Lowered, module: Module, where: str, *, is_guarded: bool = False
) -> Finding | None:
    """The difference between the run of a module and the meaning of the program; None if there is none. A
    module with bounds checks (`is_guarded`) may only stop at a guard."""
    wrong = [f"{item.code}: {item.message}" for item in diagnostics(module)]
    if wrong:
        return Finding(where, f"not valid: {'; '.join(wrong)}", print_module(module))
    arrays = fresh(program)
    try:
        run_limited(module, {**arrays, **program.sizes}, chunks=2)
        if where.startswith(("the schedule", "lower_buffers")):
            # Later, nothing tells which lanes combine what each of them has summed up.
            require_no_race(module, {**fresh(program), **program.sizes})
        what = compared(program, arrays)
    except AllocationFailed:
        return Finding(where, TOO_LARGE, is_refusal=True)
    except InterpreterError as error:
        what = None if program.expected is None else f"stops: {error}"
        if is_guarded and not isinstance(error, GuardFailed):
            what = f"accesses what no guard has checked: {error}"
    except (Race, TooManySteps, GossamerError) as error:
        what = f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - whatever is not ours is what is looked for
        what = f"the interpreter: {type(error).__name__}: {error}"
    return what and Finding(where, what, print_module(module))


def _run(program: Lowered, flat: Module, process: NativeProcess) -> Finding | None:
    outcome: Outcome = process.run(flat, program.arrays, program.sizes)
    what = outcome.what
    if outcome.code is not None:
        if outcome.code == "kernel.out_of_bounds":
            what = None if program.expected is None else f"stops: {outcome.code}"
        elif outcome.code.startswith(("llvm.", "backend.", "plugin.", "lower.")):
            return Finding(MACHINE_CODE, outcome.code, is_refusal=True)
        else:
            what = f"refuses its arguments: {outcome.code}"
    elif what is None:
        what = compared(program, outcome.arrays)
    return what and Finding(MACHINE_CODE, what, print_module(flat))


def fresh(program: Lowered) -> dict[str, np.ndarray]:
    """Arrays for one run."""
    return {name: array.copy() for name, array in program.arrays.items()}


def compared(program: Lowered, arrays: Mapping[str, np.ndarray]) -> str | None:
    """The difference between arrays and the meaning of the program."""
    if program.expected is None:
        return GOES_ON
    for name, expected in program.expected.items():
        actual = arrays[name]
        is_float = expected.dtype.kind == "f"
        if not np.array_equal(actual.ravel(), expected.ravel(), equal_nan=is_float):
            return f"{name} is {actual.ravel()}; expected {expected.ravel()}"
    return None
