"""Runs random programs as kernels of one target, such as one of a GPU: `on_target TARGET FIRST COUNT SEED`.

Every second one is a contraction with a random schedule that stages operands in shared memory, pipelines
copies and reduces over threads. For each program it prints a line of JSON with its number and what is wrong,
or the code with which it was refused.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from random import Random

from tests.fuzzing.checks.disagreements import Verdict, verdict_of
from tests.fuzzing.checks.staged_kernels import staged_verdict
from tests.fuzzing.execution.compilers import Compiler, without_instructions
from tests.fuzzing.programs.draw_program import draw_program


def judge(target: str, number: int, seed: str) -> Verdict:
    """Judges the program of a number."""
    if number % 2:
        return staged_verdict(f"{seed}/staged/{number}", [], target=target, native=True)
    compiler = Compiler(math=partial(without_instructions, target=target), targets=(target,))
    program = draw_program(Random(f"{seed}/target/{number}"))
    return verdict_of(program, compiler, native=True, vscale=None)


def main(target: str, first: int, count: int, seed: str) -> None:
    for number in range(first, first + count):
        verdict = judge(target, number, seed)
        name = f"{number} (staged)" if number % 2 else str(number)
        row = {"name": name, "wrong": verdict.disagreement, "skipped": verdict.refusal}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    target, first, count, seed = sys.argv[1:]
    main(target, int(first), int(count), seed)
