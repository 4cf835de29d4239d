"""Programs in scalable vectors, emulated at every vector length of Arm SVE and RISC-V: the corpus and the
scripts of the testkit, and random programs. `nox -s fuzz -- --scalable` runs more of the latter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import cycle
from random import Random

import pytest
from msgspec.structs import replace

from gossamer_backend import Kernel
from gossamer_formats.internal_api import value_array_dtype
from gossamer_ir.analysis.scalable_vectors import has_scalable_vectors
from gossamer_ir.core.dtypes import NUMBERS, SCALARS
from gossamer_ir.errors import UserError
from gossamer_ir.nodes import Module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.verify import diagnostics, verify
from gossamer_testkit.conformance.results import mismatch
from gossamer_testkit.corpus.case import Case
from gossamer_testkit.corpus.inputs.vectors import vectors
from gossamer_testkit.corpus.program import Program, corpus_names, corpus_program
from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.checks.ways import Settings
from tests.fuzzing.commands.engines import ByRandom, Programs
from tests.fuzzing.commands.step_sequences import SCALABLE, SCALABLE_FORMS, Sequences, judge
from tests.fuzzing.execution.compilers import COMPILERS, unscheduled
from tests.fuzzing.programs.handwritten import parsed, usable, with_arrays
from tests.fuzzing.programs.program import Program as FuzzedProgram
from tests.fuzzing.schedules.native_lanes import with_native_lanes

pytestmark = [
    pytest.mark.unserialized,
    pytest.mark.no_error_examples,
    pytest.mark.usefixtures("all_emulated"),
]

SIZES = (0, 1, 37, 115)
LENGTHS = (0, 1, 3, 4, 5, 9)
"""Lengths of axes: around vectors of 128 bits."""
LONG = (0, 1, 4, 5, 21)
DTYPES = [dtype for dtype in NUMBERS if value_array_dtype(dtype).kind != "u"]
"""Those whose arrays hold negative numbers, which are drawn, too. bfloat16 is stored as patterns."""
DRAWS = 3
"""How often arrays are drawn for a script, each time in another dtype."""


@pytest.mark.parametrize("backend", COMPILERS)
def test_the_corpus_is_right_at_every_vector_length(backend):
    wrong, ran = [], Counter[str]()
    for name in corpus_names():
        program = corpus_program(name)
        for bits, kernel in kernels_of(program, backend).items():
            if what := first_mismatch(kernel, program, bits):
                wrong.append(f"{name}, {bits} bits, {what}")
            ran[name] += 1
    assert not wrong, "\n".join(wrong[:10])
    assert len(ran) > 150


def first_mismatch(kernel: Kernel, program: Program, bits: int) -> str | None:
    """The first case with another result than the expected one."""
    for case in cases_of(program, bits):
        what = mismatch(kernel, program, case)
        if what is not None:
            return f"case '{case.name}': {what}"
    return None


def kernels_of(program: Program, backend: str) -> dict[int, Kernel]:
    """The kernel at each vector length; none if no loop of the program can have scalable vectors."""
    module = replace(program.module, stage="loop")
    if diagnostics(module):  # a launch, which only flat modules have
        return {}
    compiler = COMPILERS[backend]
    *_, flat = compiler.stages(module, with_native_lanes(unscheduled))
    if not has_scalable_vectors(flat):
        return {}
    return dict(compiler.kernels_by_bits(flat))


def cases_of(program: Program, bits: int) -> Iterator[Case]:
    """The cases of the corpus, and those of sizes around one vector."""
    yield from program.cases()
    if program.manifest.cases == "vectors":
        bytes_each = max(widths(program.manifest.options))
        lanes = bits // (8 * bytes_each)
        sizes = (*SIZES, lanes - 1, lanes, lanes + 1)
        yield from vectors({**program.manifest.options, "sizes": sizes})


def widths(options: Mapping) -> Iterator[int]:
    for _, dtype, *_ in options["arrays"].values():
        yield value_array_dtype(dtype).itemsize


@pytest.mark.parametrize("name", usable())
def test_scripts_are_right_at_every_vector_length(name):
    rng = Random(name)
    for module, backend in zip(rng.sample(modules_of(name), DRAWS), cycle(COMPILERS), strict=False):
        require_right(drawn(module, rng, LENGTHS), backend, vscale=rng.choice((1, 2, 4)))


@pytest.mark.parametrize("name", usable())
def test_scripts_are_right_for_several_vectors(name):
    rng = Random(name)
    # The interpreter takes long at such sizes, so only the expected result is its.
    program = drawn(rng.choice(modules_of(name)), rng, LONG)
    require_right(program, rng.choice(tuple(COMPILERS)), vscale=None)


@cache
def modules_of(name: str) -> list[Module]:
    """A script in each dtype that it supports; a few copies of one that has its dtypes already."""
    module = parsed(name)
    if module.stage != "coordinate":
        return [module] * DRAWS
    return list(filter(None, (in_dtype(module, dtype) for dtype in DTYPES)))


def in_dtype(module: Module, dtype: str) -> Module | None:
    """A script with values of a dtype, None if it has functions or constants that the dtype lacks."""
    index_dtype = "int64" if SCALARS[dtype].bits == 64 else "int32"
    try:
        return verify(retype_module(module, dtype=dtype, index_dtype=index_dtype))
    except UserError:
        return None


def drawn(module: Module, rng: Random, lengths: tuple[int, ...]) -> FuzzedProgram:
    program = None
    while program is None:
        program = with_arrays(module, rng, lengths=lengths)
    return program


def require_right(program: FuzzedProgram, backend: str, *, vscale: int | None) -> None:
    schedule = with_native_lanes(unscheduled)
    verdict = verdict_of(program, COMPILERS[backend], native=True, schedule=schedule, vscale=vscale)
    assert verdict == Verdict(), f"{verdict}\n{program!r}"


@pytest.mark.parametrize("backend", COMPILERS)
def test_random_programs_are_right_at_every_vector_length(backend):
    engine, tally = ByRandom(), Programs()
    settings = Settings("emulated", native=1, scheduled=0.5, scalable=backend)
    for number in range(24):
        engine.judge(number, tally, settings=settings)
    assert not tally.failures
    assert tally.scalable >= 6


@pytest.mark.parametrize("backend", COMPILERS)
def test_random_steps_are_right_at_every_vector_length(backend):
    tally = Sequences()
    for number in range(16):
        judge(number, tally, seed="emulated", native=1, scalable=backend)
    assert not tally.failures
    assert tally.scalable >= SCALABLE * tally.judged
    assert tally.forms.keys() >= {*SCALABLE_FORMS} - {"to fixed lanes"}
