"""Random dense contractions at the loop stage, whose results NumPy computes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from random import Random

import numpy as np

from gossamer_ir.script import parse_module
from tests.fuzzing.oracle.evaluation import Meaning
from tests.fuzzing.programs.program import Program

SCRIPT = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, m: T.int64, n: T.int64, k: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    A = T.match_buffer(a, ({m}, {k}), "{dtype}")
    B = T.match_buffer(b, ({k}, {n}), "{dtype}")
    C = T.match_buffer(c, ({m}, {n}), "{dtype}")
    for i in T.serial({m}):
        for j in T.serial({n}):
            for p in T.serial({k}):
                with T.block("contraction"):
                    vi, vj, vp = T.axis.remap("SSR", [i, j, p])
                    with T.init():
                        C[vi, vj] = {start}
                    C[vi, vj] = {term}
"""
TERMS = {
    "sum": "C[vi, vj] + A[vi, vp] * B[vp, vj]",
    "difference": "C[vi, vj] - A[vi, vp] * B[vp, vj]",
    "min": "T.min(C[vi, vj], A[vi, vp] + B[vp, vj])",
    "max": "T.max(C[vi, vj], A[vi, vp] + B[vp, vj])",
}
SIZES = (1, 2, 3, 4, 5, 8, 8)


@dataclass(frozen=True)
class Contraction(Program):
    """A contraction by the name of its terms, which begin with the number `start`."""

    terms: str = "sum"
    start: int = 0

    @cached_property
    def meaning(self) -> Meaning:
        a, b = (self.arrays[name].astype(np.float64) for name in "ab")
        pairs = a[:, :, None], b[None]
        begun = np.full((a.shape[0], b.shape[1]), float(self.start))
        match self.terms:
            case "sum":
                result = begun + a @ b
            case "difference":
                result = begun - a @ b
            case "min":
                result = np.minimum(begun, np.min(pairs[0] + pairs[1], axis=1, initial=np.inf))
            case _:
                result = np.maximum(begun, np.max(pairs[0] + pairs[1], axis=1, initial=-np.inf))
        return Meaning({"c": result.astype(self.arrays["c"].dtype)}, Counter())


def draw_contraction(rng: Random) -> Contraction:
    """A contraction of arrays of small integers, whose sizes are constants or arguments."""
    sizes = {name: rng.choice((*SIZES, 0) if name == "k" else SIZES) for name in "mnk"}
    dtype, terms = rng.choice(("float32", "float32", "int32", "float64")), rng.choice([*TERMS])
    start = rng.choice((0, 0, 1))
    texts = {name: str(size) if rng.random() < 0.6 else name for name, size in sizes.items()}
    text = SCRIPT.format(**texts, dtype=dtype, start=f"T.{dtype}({start})", term=TERMS[terms])
    shapes = {"a": "mk", "b": "kn", "c": "mn"}
    arrays = {
        name: np.array(
            [rng.randint(-3, 3) for _ in range(sizes[first] * sizes[second])], dtype
        ).reshape(sizes[first], sizes[second])
        for name, (first, second) in shapes.items()
    }
    return Contraction(parse_module(text), arrays, sizes, terms=terms, start=start)
