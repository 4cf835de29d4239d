"""Judges random contractions with random schedules for GPUs: staged operands, reductions over threads."""

from __future__ import annotations

from functools import partial
from random import Random

from gossamer_cuda_mma_sp.codegen.ptx import split_module
from gossamer_cuda_mma_sp.target.gpu import gpu_of
from gossamer_ir.interchange.records import Target
from gossamer_ir.nodes import For, Module
from gossamer_ir.traversal.walk import contains
from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.execution.compilers import Compiler, without_instructions
from tests.fuzzing.loop_nests.contractions import draw_contraction
from tests.fuzzing.schedules.staged_schedules import staged_schedule

INTERPRETED = "cuda-mma-sp:driver=interpreter"
"""The target whose kernels the interpreter of PTX runs."""
REFUSED = {
    "llvm.allocate.device",
    "llvm.shared",
    "lower.verify_stores.condition",
    "lower.verify_stores.not_proved",
    "lower.verify_stores.reduction",
    "lower.verify_stores.shared",
    "lower.verify_stores.unordered",
    "lower.insert_sync.barrier",
    "lower.insert_sync.grid",
    "lower.lower_cross_thread_reduction.barrier",
    "lower.split_host_device.extent",
    "lower.split_host_device.host",
    "lower.split_host_device.scope",
}
"""The error codes with which devices may refuse a schedule."""


def staged_verdict(
    seed: str, split_modules: list[Module], *, target: str = INTERPRETED, native: bool
) -> Verdict:
    """Judges the contraction of a seed with its schedule, and adds the split modules to a list."""
    rng = Random(seed)
    program, schedule = draw_contraction(rng), staged_schedule(rng)
    gpu = gpu_of(Target.parse(target))

    def split(module: Module) -> Module:
        split_modules.append(split_module(module, gpu))
        return split_modules[-1]

    compiler = Compiler(
        math=partial(without_instructions, target=target), targets=(target,), split=split
    )
    return verdict_of(program, compiler, native=native, schedule=schedule)


def launches_once(split: Module) -> bool:
    """True if no launch is in a loop. The interpreter of PTX takes milliseconds for each instruction."""
    return not contains(For, *(f for f in split.functions if f.name == split.entry))
