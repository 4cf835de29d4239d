"""Flat modules for the code generators: of the corpus and at random, many of them with scalable vectors."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from msgspec.structs import replace

from gossamer.targets.resolve_target import registry
from gossamer_ir.core.dtypes import DType
from gossamer_ir.errors import GossamerError
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import Lanes, Module
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.verify import diagnostics
from gossamer_lower import lower_math, lower_to_flat
from gossamer_testkit.corpus.program import corpus_names, corpus_program
from tests.fuzzing.execution.compilers import COMPILER, has_too_many_nodes
from tests.fuzzing.lowered.programs.draw_lowered import draw_lowered
from tests.fuzzing.programs.draw_program import draw_program
from tests.fuzzing.schedules.draw_schedule import random_schedule
from tests.fuzzing.schedules.native_lanes import with_native_lanes

TARGETS = (
    "generic-cpu",
    "generic-cpu:vector_bits=128",
    "llvm-sve",
    "llvm-sve:cpu=neoverse-v2",
    "llvm-sve:cpu=a64fx,min_vector_bits=512",
    "llvm-sve:features=sve2+sme",
    "llvm-rvv",
    "llvm-rvv:features=zvfh",
    "llvm-rvv:cpu=sifive-x280",
)
COMPILED = "compiled"


class Compilation(NamedTuple):
    """A flat module, and the target that it is compiled for."""

    module: Module
    target: str

    def outcome(self) -> str:
        """`COMPILED`, or the code of the error."""
        target = Target.parse(self.target)
        backend = registry.backend(target.backend)
        try:
            backend.compile(self.module, target)
        except GossamerError as error:
            return error.code
        return COMPILED


def draw_compilation(rng: Random) -> Compilation:
    """A flat module, half of the time with all its vectors made scalable, and a target."""
    draw = rng.choice((_of_corpus, _of_corpus, _lowered, _scheduled))
    module = None
    while module is None or has_too_many_nodes(module):
        module = _or_none(draw, rng)
    target = rng.choice(TARGETS)
    if rng.random() < 0.7:
        parsed = Target.parse(target)
        module = lower_math(
            module, instructions=registry.backend(parsed.backend).instructions(parsed)
        )
    return Compilation(made_scalable(module) if rng.random() < 0.5 else module, target)


def _or_none(draw: Callable[[Random], Module], rng: Random) -> Module | None:
    """A module; None if it cannot be lowered."""
    try:
        return draw(rng)
    except GossamerError:
        return None


def _of_corpus(rng: Random) -> Module:
    return corpus_program(rng.choice(corpus_names())).module


def _lowered(rng: Random) -> Module:
    return lower_to_flat(draw_lowered(rng).module)


def _scheduled(rng: Random) -> Module:
    program = draw_program(rng)
    schedule = with_native_lanes(random_schedule(rng, program.module))
    *_, flat = COMPILER.stages(program.module, schedule)
    return flat


def made_scalable(module: Module) -> Module:
    """The module with multiples of vscale for all numbers of lanes; as it is if that is not valid."""
    functions = tuple(rewrite(function, _scalable) for function in module.functions)
    changed = replace(module, functions=functions)
    return module if diagnostics(changed) else changed


def _scalable(node: Any) -> Any | None:
    if isinstance(node, Lanes):
        return Lanes(node.count, scalable=True)
    text = getattr(node, "dtype", None)
    dtype = None if text is None else DType.parse(text)
    if dtype is None or dtype.lanes == 1:
        return None
    return replace(node, dtype=DType(dtype.scalar, dtype.lanes, scalable=True).text)
