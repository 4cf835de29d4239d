"""Compares the result of a program at every stage and as machine code with its oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

import gossamer
from gossamer_backend import Kernel
from gossamer_ir.analysis.scalable_vectors import has_scalable_vectors
from gossamer_ir.errors import ArgumentError, GossamerError, PluginError, UnsupportedError
from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_ir.verify import diagnostics, verify
from tests.fuzzing.execution.array_placement import Passed, Place
from tests.fuzzing.execution.compilers import COMPILER, Compiler, Scheduler, unscheduled
from tests.fuzzing.execution.races import Race, require_no_race
from tests.fuzzing.oracle.arithmetic import loaded
from tests.fuzzing.programs.program import Program


class Disagreement(Exception):
    """The result of a stage differs from that of the oracle."""


@dataclass(frozen=True)
class Verdict:
    """The disagreement, or the code with which the compiler rejects the program; both None if all is
    right. `is_scalable` if scalable vectors were compiled."""

    disagreement: str | None = None
    refusal: str | None = None
    is_scalable: bool = field(default=False, compare=False)


def disagreement(
    program: Program,
    compiler: Compiler = COMPILER,
    *,
    native: bool = False,
    schedule: Scheduler = unscheduled,
    vscale: int = 1,
) -> str | None:
    """Describes the first stage whose result differs from the oracle; None if all agree. A rejected program
    is a disagreement, too."""
    verdict = verdict_of(program, compiler, native=native, schedule=schedule, vscale=vscale)
    return verdict.disagreement or (verdict.refusal and f"refused: {verdict.refusal}")


def verdict_of(
    program: Program,
    compiler: Compiler = COMPILER,
    *,
    native: bool = False,
    schedule: Scheduler = unscheduled,
    vscale: int | None = 1,
) -> Verdict:
    """Interprets every stage for a `vscale`, unless it is None, and runs machine code if `native`."""
    where = "the parsed program"
    try:
        module = verify(parse_module(program.text))
        if module != program.module:
            raise Disagreement("the text is parsed as another program")
        base = None
        for current in chain((module,), compiler.stages(module, schedule)):
            if current != base:
                where = f"the {current.stage} stage"
                _require_valid(current)
                if vscale is not None:
                    _interpret(program, current, vscale)
                base = current
        if compiler.split is not None:
            where = "the kernels"
            _interpret(program, compiler.split(compiler.math(current)), vscale or 1)
        if native:
            where = "machine code"
            _call(program, compiler, current)
    except (UnsupportedError, PluginError) as error:
        return Verdict(refusal=error.code)
    except (Disagreement, Race, GossamerError) as error:
        return Verdict(f"{where}: {type(error).__name__}: {error}")
    return Verdict(is_scalable=native and has_scalable_vectors(current))


def _require_valid(module: Module) -> None:
    messages = [f"{item.code}: {item.message}" for item in diagnostics(module)]
    if messages:
        raise Disagreement("; ".join(messages))


def _interpret(program: Program, module: Module, vscale: int) -> None:
    arrays = _fresh(program)
    try:
        run(module, {**arrays, **program.sizes}, vscale=vscale, chunks=2)
        require_no_race(module, {**_fresh(program), **program.sizes}, vscale=vscale)
    except InterpreterError as error:
        _require_stop(program, str(error))
    else:
        _require_expected(program, arrays)


def _call(program: Program, compiler: Compiler, flat: Module) -> None:
    for kernel in compiler.kernels(flat):
        _require_refused(program, kernel)
        for count in (1, 2):
            gossamer.set_num_threads(count)
            _run(program, kernel)


def _require_refused(program: Program, kernel: Kernel) -> None:
    """Arrays that are not aligned or not contiguous are rejected, and nothing is stored."""
    passed = _passed(program, is_usable=False)
    if all(placed.is_usable for placed in passed.values()):
        return
    try:
        kernel(**{name: placed.array for name, placed in passed.items()}, **program.sizes)
    except ArgumentError as error:
        if error.code not in ("kernel.contiguity", "kernel.alignment"):
            raise
    else:
        raise Disagreement("takes an array that is not aligned, or not dense")
    if not all(placed.is_as_before for placed in passed.values()):
        raise Disagreement("stores to arrays, and refuses them")


def _run(program: Program, kernel: Kernel) -> None:
    passed = _passed(program, is_usable=True)
    arrays = {name: placed.array for name, placed in passed.items()}
    try:
        kernel(**arrays, **program.sizes)
    except ArgumentError as error:
        if error.code != "kernel.out_of_bounds":
            raise
        _require_stop(program, str(error))
    else:
        _require_expected(program, arrays)
    for name, array in passed.items():
        if not array.has_clean_edges:
            raise Disagreement(f"stores beside {name}")


def _require_stop(program: Program, why: str) -> None:
    if program.expected is not None:
        raise Disagreement(f"stops: {why}")


def _fresh(program: Program) -> dict[str, np.ndarray]:
    """Arrays for one run."""
    return {
        name: _protected(program, name, array.flatten()) for name, array in program.arrays.items()
    }


def _passed(program: Program, *, is_usable: bool) -> dict[str, Passed]:
    """The arrays for one run of machine code. If all have to be usable, arrays that kernels reject are
    moved."""
    arrays = {}
    for name, array in program.arrays.items():
        passed = Passed(array, program.places.get(name, Place()))
        arrays[name] = Passed(array, Place()) if is_usable and not passed.is_usable else passed
        _protected(program, name, arrays[name].array)
    return arrays


def _protected(program: Program, name: str, array: np.ndarray) -> np.ndarray:
    """The array, made read-only unless the program stores to it."""
    array.flags.writeable = program.expected is None or name in program.expected
    return array


def _require_expected(program: Program, arrays: Mapping[str, np.ndarray]) -> None:
    if program.expected is None:
        raise Disagreement("goes on where it has to stop")
    dtypes = {buffer.handle: buffer.dtype for buffer in program.module.functions[0].buffers}
    for name, expected in program.expected.items():
        actual, wanted = loaded(arrays[name], dtypes[name]), loaded(expected, dtypes[name])
        if not is_near(actual, wanted.ravel(), tolerance=program.tolerances.get(name, 0.0)):
            raise Disagreement(f"{name} is {actual}; expected {wanted.ravel()}")


def is_near(actual: np.ndarray, expected: np.ndarray, *, tolerance: float) -> bool:
    """True if values are equal, or within the bounds of rounding errors."""
    if expected.dtype.kind != "f":
        return np.array_equal(actual, expected)
    with np.errstate(invalid="ignore"):
        is_equal = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    return bool(np.all(is_equal | (difference <= tolerance)))
