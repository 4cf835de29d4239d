"""Instructions that kernels in scalable vectors execute, compared with C loops that compilers vectorize.

Kernels have the default schedules of the target. The number of features is known when kernels and loops are
compiled. They are called once in an emulated process of AArch64 or RISC-V, at each vector length, on one
thread. The counts are exact, so they are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from benchmarks.goals import INSTRUCTION_GOALS
from benchmarks.harness.job import Job
from benchmarks.harness.progress import Bar
from benchmarks.instruction_counts.counted_operators import (
    C_COMPILERS,
    COUNTED,
    COUNTED_BLOCK,
    COUNTED_FEATURES,
    KERNEL_TARGETS,
    ON_RISCV,
    RVV_COMPILER,
    CountedProblem,
    name_of_loop,
)
from benchmarks.instruction_counts.emulated_instructions import (
    ARM_SVE,
    RISCV_V,
    EmulatedCpu,
    Executable,
    output_of,
)
from benchmarks.part import PartError, RunPart, Series
from benchmarks.text_tables import Sheet
from gossamer.compilation.pipeline import flat_module
from gossamer.targets.parse_target import parse_target
from gossamer.targets.resolve_target import registry

VECTOR_LENGTHS = (128, 256, 512, 1024, 2048)
EMULATED_LENGTHS = {ARM_SVE: VECTOR_LENGTHS, RISCV_V: VECTOR_LENGTHS[:-1]}
"""The lengths that the emulators have."""
_FOR_SVE = "-march=armv8-a+sve"
_ON_ARM = (
    (f"{ARM_SVE.toolchain}gcc", _FOR_SVE),
    ("clang", "--target=aarch64-linux-gnu", _FOR_SVE),
)
COMPILERS: dict[str, tuple[str, ...]] = {
    **dict(zip(C_COMPILERS, _ON_ARM, strict=True)),
    RVV_COMPILER: (f"{RISCV_V.toolchain}gcc", "-march=rv64gc"),
}
FLAGS = (
    "-O3", "-ffast-math", "-DVALUE=float", f"-DFEATURES={COUNTED_FEATURES}",
    f"-DBLOCK={COUNTED_BLOCK}", "-c",
)  # fmt: skip
LOOPS = Path(__file__).parents[1] / "contenders" / "c_loops"
SECONDS_PER_CALL = 1.5
"""Used only to estimate the duration."""


class InstructionCount(msgspec.Struct, frozen=True):
    """The instructions that a kernel executes per stored nonzero with vectors of a length in bits, and the
    bytes that they load if all lanes are active (None: unknown). `by` is gossamer or the compiler of the C
    loop."""

    op: str
    by: str
    vector_bits: int
    nnz: int
    features: int
    per_nonzero: float
    loaded_bytes: float | None


def estimated_seconds(job: Job) -> float:
    """Return the estimated duration."""
    calls = sum(
        len(EMULATED_LENGTHS[_machine_of(by)])
        for counted in COUNTED.values()
        for by in counted.compiled_by
    )
    return SECONDS_PER_CALL * calls


def measure_instructions(job: Job, bar: Bar) -> Iterator[InstructionCount]:
    """Count the instructions of all operators, compiled by gossamer and by each C compiler, at all vector
    lengths."""
    with TemporaryDirectory() as folder:
        for op, counted in COUNTED.items():
            problem = counted.problem()
            for by in counted.compiled_by:
                bar.describe(f"instructions of {op} by {by}")
                for bits in EMULATED_LENGTHS[_machine_of(by)]:
                    yield measure_count(op, by, problem, vector_bits=bits, folder=Path(folder))
                    bar.advance(SECONDS_PER_CALL)


def measure_count(
    op: str, by: str, problem: CountedProblem, *, vector_bits: int, folder: Path
) -> InstructionCount:
    """Count the instructions of one call, whose result is checked."""
    if by in KERNEL_TARGETS:
        executable, order = _kernel(op, by, folder)
        workspace = np.array([1, 0, -1, 0], np.int64)
        arguments = [*(problem.kernel[name] for name in order), workspace]
        place = order.index(problem.result)
    else:
        executable = _loop(op, by, folder)
        arguments = list(problem.loop)
        place = len(arguments) - 1
    execution = executable.call(arguments, vector_bits=vector_bits)
    result = execution.arrays[place].reshape(problem.expected.shape)
    # Small integers, whose sums are exact.
    if not np.array_equal(result, problem.expected):
        raise PartError(f"{op} by {by} has a wrong result with {vector_bits} bits")
    return InstructionCount(
        op,
        by,
        vector_bits,
        problem.nnz,
        problem.features,
        round(execution.instructions / problem.nnz, 4),
        None if execution.loaded_bytes is None else round(execution.loaded_bytes / problem.nnz, 1),
    )


def _machine_of(by: str) -> EmulatedCpu:
    return RISCV_V if by in ON_RISCV else ARM_SVE


def _kernel(op: str, by: str, folder: Path) -> tuple[Executable, tuple[str, ...]]:
    """Return the kernel of gossamer for a target, and the names of its parameters."""
    target = parse_target(KERNEL_TARGETS[by])
    flat = flat_module(COUNTED[op].program(), target=target)
    artifact = registry.backend(target.backend).compile(flat, target)
    code = folder / f"{op}-{by}.o"
    code.write_bytes(artifact.code)
    executable = Executable(code, name="gossamer_kernel", folder=folder, machine=_machine_of(by))
    return executable, artifact.signature.order


def _loop(op: str, compiler: str, folder: Path) -> Executable:
    """Return the C loop as a compiler vectorizes it."""
    code, name = folder / f"{op}-{compiler}.o", name_of_loop(op)
    output_of(*COMPILERS[compiler], *FLAGS, str(LOOPS / f"{name}.c"), "-o", str(code))
    return Executable(code, name=name, folder=folder, machine=_machine_of(compiler))


def instruction_sheet(counts: Sequence[InstructionCount]) -> Sheet:
    """Tabulate instructions per nonzero, by vector length, and how many times fewer they are than those of
    the better C loop, or with SME than without."""
    title = "instructions per nonzero, by bits of vectors, emulated"
    sheet = Sheet(title, ("operator", "by", *map(str, VECTOR_LENGTHS), ""))
    for op, by_bits in _counts_by_op(counts).items():
        for by, by_length in by_bits.items():
            sheet.rows.append((op, by, *_cells(by_length, digits=1), ""))
        ratios = _ratios(by_bits)
        if ratios:
            sheet.rows.append(
                (op, "times fewer", *_cells(ratios, digits=2), _verdict(op, ratios) or "")
            )
    return sheet


def fewer_sheet(counts: Sequence[InstructionCount]) -> Sheet:
    """Tabulate how many times fewer instructions than those of the better C loop a kernel executes, or with
    SME than without, and how many times are wanted."""
    title = "times fewer instructions than the better C loop, or with SME than without, by bits of vectors"
    sheet = Sheet(title, ("operator", *map(str, VECTOR_LENGTHS), "wanted"))
    for op, by_bits in _counts_by_op(counts).items():
        ratios = _ratios(by_bits)
        if ratios:
            sheet.rows.append((op, *_cells(ratios, digits=2), _verdict(op, ratios) or "-"))
    return sheet


def _counts_by_op(
    counts: Sequence[InstructionCount],
) -> dict[str, dict[str, dict[int, float]]]:
    """Return the instructions per nonzero of each operator, by compiler and vector length."""
    by_op: dict[str, dict[str, dict[int, float]]] = {}
    for one in counts:
        by_op.setdefault(one.op, {}).setdefault(one.by, {})[one.vector_bits] = one.per_nonzero
    return by_op


def _ratios(by_bits: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
    """Return the instructions of the better C loop over ours, or without SME over those with it, where both
    were counted."""
    kernels = [by_bits[by] for by in KERNEL_TARGETS if by in by_bits]
    ours = kernels[-1] if kernels else {}
    loops = kernels[:-1] or [by_bits[by] for by in COMPILERS if by in by_bits]
    return {
        bits: min(loop[bits] for loop in loops) / count
        for bits, count in ours.items()
        if loops and all(bits in loop for loop in loops)
    }


def _cells(by_length: Mapping[int, float], *, digits: int) -> list[str]:
    return [
        f"{by_length[bits]:.{digits}f}" if bits in by_length else "-" for bits in VECTOR_LENGTHS
    ]


def _verdict(op: str, ratios: Mapping[int, float]) -> str | None:
    goal = INSTRUCTION_GOALS.get(op)
    if goal is None:
        return None
    return f"{goal}: {'met' if min(ratios.values()) >= goal else 'MISSED'}"


def loads_sheet(counts: Sequence[InstructionCount]) -> Sheet:
    """Tabulate the bytes that are loaded per nonzero if all lanes are active, by vector length."""
    title = "bytes loaded per nonzero with all lanes active, by bits of vectors"
    sheet = Sheet(title, ("operator", "by", *map(str, VECTOR_LENGTHS)))
    for op, by in dict.fromkeys((count.op, count.by) for count in counts):
        loaded = {
            one.vector_bits: one.loaded_bytes
            for one in counts
            if (one.op, one.by) == (op, by) and one.loaded_bytes is not None
        }
        if loaded:
            sheet.rows.append((op, by, *_cells(loaded, digits=0)))
    return sheet


PART = RunPart(
    "instructions",
    "instructions per nonzero of kernels in scalable vectors, with and without matrix registers, and of C "
    "loops, at every vector length of Arm SVE and of RISC-V, counted under emulation",
    (
        Series(
            "instruction_counts",
            InstructionCount,
            summary=instruction_sheet,
            details=loads_sheet,
            headline=fewer_sheet,
        ),
    ),
    estimated_seconds,
    measure_instructions,
)
