"""Random schedules that stage operands in shared memory, pipeline the copies and bind reductions to threads.
The interpreter of the language runs the kernels with their barriers, and the interpreter of PTX what LLVM
makes of them.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random

import pytest

from gossamer_cuda_mma_sp.codegen.ptx import split_module
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import AsyncCopy, Barrier, For, Module, Shuffle
from gossamer_ir.traversal.walk import contains
from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.execution.compilers import Compiler, without_instructions
from tests.fuzzing.loop_nests.contractions import draw_contraction
from tests.fuzzing.schedules.staged_schedules import staged_schedule

pytestmark = [pytest.mark.unserialized, pytest.mark.no_error_examples]

TARGET = "cuda-mma-sp:driver=interpreter"
KINDS = (Barrier, Shuffle, AsyncCopy)
REFUSED = {
    "llvm.allocate.device",
    "llvm.shared",
    "lower.check_stores.reduction",
    "lower.check_stores.shared",
    "lower.insert_sync.barrier",
    "lower.insert_sync.grid",
    "lower.lower_cross_thread_reduction.barrier",
    "lower.split_host_device.extent",
    "lower.split_host_device.host",
    "lower.split_host_device.scope",
}
"""The error codes with which devices may refuse a schedule."""
MOST_NATIVE = 6
"""The number of programs that the interpreter of PTX runs, which takes a second for each."""


def compiler_of(split_modules: list[Module]) -> Compiler:
    """A compiler for the interpreter of PTX, which adds the split modules to a list."""
    gpu = gpu_of(Target.parse(TARGET))

    def split(module: Module) -> Module:
        split_modules.append(split_module(module, gpu))
        return split_modules[-1]

    return Compiler(
        math=partial(without_instructions, target=TARGET), targets=(TARGET,), split=split
    )


def verdict_of_number(number: int, split_modules: list[Module], *, native: bool) -> Verdict:
    rng = Random(f"staged/{number}")
    program, schedule = draw_contraction(rng), staged_schedule(rng)
    compiler = compiler_of(split_modules)
    return verdict_of(program, compiler, native=native, schedule=schedule)


def launches_once(split: Module) -> bool:
    """True if no launch is in a loop. The interpreter of PTX takes milliseconds for each instruction."""
    return not contains(For, *(f for f in split.functions if f.name == split.entry))


def test_staged_schedules_change_no_meaning():
    modules, refused, native = list[Module](), Counter[str | None](), 0
    for number in range(36):
        verdict = verdict_of_number(number, modules, native=False)
        assert verdict.disagreement is None, f"{number}: {verdict}"
        if verdict == Verdict() and launches_once(modules[-1]) and native < MOST_NATIVE:
            verdict = verdict_of_number(number, modules, native=True)
            assert verdict.disagreement is None, f"{number}: {verdict}"
            native += verdict == Verdict()
        refused[verdict.refusal] += 1
    assert refused.keys() <= {None, *REFUSED}
    assert native >= 2
    met = Counter(kind for module in modules for kind in KINDS if contains(kind, *module.functions))
    assert met[Barrier] >= 3, met
    assert met[AsyncCopy] >= 2, met
    assert met[Shuffle] >= 1, met
