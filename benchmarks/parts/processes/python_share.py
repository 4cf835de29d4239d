"""Compiles a subject of `parts/python_share.py` in this process, and prints the times of Python and LLVM."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple, TypeAlias

from gossamer.compilation.pipeline import lower_by_stage, schedule_for_target
from gossamer.operator_calls.operator_program import Variant, module_of
from gossamer.operators import NAMES, operator_named
from gossamer.targets.resolve_target import registry, resolve_target
from gossamer_backend.registry.validating import ValidatingBackend
from gossamer_ir.interchange.records import Schedule, Stats, Step, Target, Trace
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_lower import lower_buffers, lower_iterations
from gossamer_schedule import replay

FEATURES = 64
LAYERS = 5
STATS = Stats(rows=170_000, columns=170_000, nnz=1_200_000, longest_row=9_000, empty_rows=0)
PythonAndLlvm: TypeAlias = tuple[float, float]
"""Milliseconds of Python, and of LLVM."""


def whole_kernel(op: str) -> PythonAndLlvm:
    """Return an operator's kernel from its script to object code."""
    start = time.perf_counter()
    module = default_module(op)
    llvm = llvm_ms(flat_of(module, schedule_for_target(module, machine()[1], STATS)))
    return since(start) - llvm, llvm


def lowering_of_layers() -> PythonAndLlvm:
    """Return a program of about 200 nodes from its module to the flat stage."""
    module = parse_module(layers_script(LAYERS))
    start = time.perf_counter()
    flat = flat_of(module, schedule_for_target(module, machine()[1], None))
    return since(start), llvm_ms(flat)


def replaying_steps() -> PythonAndLlvm:
    """Return a long trace on the loop stage of SpMM."""
    module = default_module("spmm")
    loops = lower_buffers(lower_iterations(module))
    start = time.perf_counter()
    replay(loops, STEPS)
    return since(start), llvm_ms(flat_of(module, Schedule(loop=STEPS)))


@cache
def machine() -> tuple[ValidatingBackend, Target]:
    return resolve_target("generic-cpu")


def default_module(op: str) -> Module:
    program = operator_named(op).program
    return module_of(program, Variant(features=FEATURES if program.features else None))


def flat_of(module: Module, schedule: Schedule) -> Module:
    backend, target = machine()
    *_, flat = lower_by_stage(module, schedule, plugin=registry.plugin(backend.name), target=target)
    return flat


def llvm_ms(flat: Module) -> float:
    """Return the time that LLVM reports for parsing, optimization and code generation."""
    backend, target = machine()
    artifact = backend.compile(flat, target)
    return sum(float(artifact.metadatum(f"{step}_ms")) for step in ("parse", "optimize", "codegen"))


def since(start: float) -> float:
    """Return the milliseconds since a time."""
    return 1e3 * (time.perf_counter() - start)


def layers_script(layers: int) -> str:
    """Return a graph network: each layer sums the features of neighbors and applies ReLU."""
    handles = ", ".join(f"x{layer}: T.handle" for layer in range(layers + 1))
    lines = [
        "@T.prim_func",
        f"def layers(a: T.handle, p: T.handle, q: T.handle, {handles},",
        "           n: T.int64, nnz: T.int64, features: T.int64) -> None:",
        "    I = T.sp.dense_fixed(n)",
        "    J = T.sp.compressed_varied(I, (n, nnz), (p, q))",
        "    V = T.sp.dense_fixed(n)",
        "    K = T.sp.dense_fixed(features)",
        '    A = T.sp.match_buffer(a, (I, J), "float32")',
    ]
    for layer in range(layers + 1):
        lines.append(f'    X{layer} = T.sp.match_buffer(x{layer}, (V, K), "float32")')
    for layer in range(layers):
        old, new = f"X{layer}", f"X{layer + 1}"
        lines += [
            f'    with T.sp.iteration([I, J, K], "SRS", "sums_{layer}") as [i, j, k]:',
            "        with T.init():",
            f"            {new}[i, k] = 0.0",
            f"        {new}[i, k] = {new}[i, k] + A[i, j] * {old}[j, k]",
            f'    with T.sp.iteration([V, K], "SS", "cut_{layer}") as [v, k]:',
            f"        {new}[v, k] = T.max({new}[v, k], 0.0)",
        ]
    return "\n".join(lines)


def two_level_tiles(outer: str, inner: str) -> Trace:
    """Return loops over 4 tiles of 16 features as 2 times 2 tiles of 2 vectors of 8."""
    return (
        Step("split", {"loop": outer, "factors": (2, 2)}),
        Step("split", {"loop": inner, "factors": (2, 8)}),
        Step("reorder", {"loops": (f"{outer}_1", f"{outer}_0")}),
        Step("vectorize", {"loop": f"{inner}_1"}),
        Step("unroll", {"loop": f"{inner}_0"}),
        Step("unroll", {"loop": f"{outer}_0"}),
        Step("unroll", {"loop": f"{outer}_1"}),
    )


STEPS: Trace = (
    Step("split", {"loop": "k", "factors": (4, 16)}),
    Step("cache_write", {"block": "csrmm", "buffer": "C_data", "scope": "local"}),
    Step("reverse_compute_at", {"block": "csrmm_C_data_local", "loop": "i"}),
    Step("decompose_reduction", {"block": "csrmm", "loop": "j"}),
    Step("split", {"loop": "k_c", "factors": (4, 16)}),
    *two_level_tiles("k_0", "k_1"),
    *two_level_tiles("k_c_0", "k_c_1"),
    *two_level_tiles("k_0_init", "k_1_init"),
    Step("prefetch", {"block": "csrmm", "buffer": "B_data", "loop": "j", "distance": 8}),
    Step("split", {"loop": "i", "factors": (None, 16)}),
    Step("split", {"loop": "i_1", "factors": (4, 4)}),
    Step("parallel", {"loop": "i_0", "grain": 64}),
)


class Subject(NamedTuple):
    """A measurement, and the operator whose kernel is compiled `before`."""

    measure: Callable[[], PythonAndLlvm]
    before: str = "spmv"


SUBJECTS = {
    "spmm, all but LLVM": Subject(partial(whole_kernel, "spmm")),
    "spmv, all but LLVM": Subject(partial(whole_kernel, "spmv"), before="spmm"),
    "sddmm, all but LLVM": Subject(partial(whole_kernel, "sddmm")),
    "200 nodes, lowering": Subject(lowering_of_layers),
    "spmm, replaying 30 steps": Subject(replaying_steps),
}


def main(what: str) -> None:
    """Measure a subject after another kernel and print its times."""
    for op in NAMES:
        operator_named(op)
    subject = SUBJECTS[what]
    whole_kernel(subject.before)
    print(json.dumps(subject.measure()))


if __name__ == "__main__":
    main(sys.argv[1])
