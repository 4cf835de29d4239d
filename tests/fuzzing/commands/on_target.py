"""Runs random programs as kernels of one target, such as one of a GPU: `on_target TARGET FIRST COUNT SEED`.

For each program it prints a line of JSON with its number and what is wrong, or the code with which it was
refused.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from random import Random

from tests.fuzzing.checks.disagreements import verdict_of
from tests.fuzzing.execution.compilers import Compiler, without_instructions
from tests.fuzzing.programs.draw_program import draw_program


def main(target: str, first: int, count: int, seed: str) -> None:
    compiler = Compiler(math=partial(without_instructions, target=target), targets=(target,))
    for number in range(first, first + count):
        program = draw_program(Random(f"{seed}/target/{number}"))
        verdict = verdict_of(program, compiler, native=True, vscale=None)
        row = {"name": str(number), "wrong": verdict.disagreement, "skipped": verdict.refusal}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    target, first, count, seed = sys.argv[1:]
    main(target, int(first), int(count), seed)
