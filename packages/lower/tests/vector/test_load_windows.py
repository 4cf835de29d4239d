"""`load_windows`: loops with the annotation read windows where all lanes fit, with the same results."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Allocate, If
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import verify
from gossamer_lower import load_windows

HEADER = """
@T.prim_func
def main(a: T.handle, b: T.handle, p: T.handle, y: T.handle, n: T.int64, m: T.int64, r: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "int32")
    P = T.match_buffer(p, (r,), "int32")
    Y = T.match_buffer(y, (8,), "float32")
"""
FACTS = "    T.assume(in_range(P, 0, n + 1))\n    T.assume(monotone(P))\n"
OFFSETS = "T.ramp(0, 1, 4)"
MASK = f"{OFFSETS} < T.broadcast(r, 4)"
LESS = f"P[{OFFSETS}] < T.broadcast(T.int32(9), 4)"
ZEROS = "T.broadcast(T.int32(0), 4)"
BELOW = f"T.load(P, {OFFSETS}, predicate={MASK}, passthrough={ZEROS})"
STARTS = f'T.cast({BELOW}, "int64x4")'
ELEMENT = f"{STARTS} + T.broadcast(j, 4)"
OUT = "T.ramp(0, 1, 4)"


def load_of(name, zero="0.0", index=ELEMENT):
    return f"T.load({name}, {index}, predicate={MASK}, passthrough=T.broadcast({zero}, 4))"


def sums(value, *, window=16, loop="T.serial(m, annotations=ANNOTATIONS)"):
    loop = loop.replace("ANNOTATIONS", f'{{"window": {window}}}')
    return f"for j in {loop}: Y[{OUT}] = Y[{OUT}] + {value}"


BOTH = f'{load_of("A")} * T.cast({load_of("B", "T.int32(0)")}, "float32x4")'
READ = {
    "one array": sums(load_of("A")),
    "two arrays": sums(BOTH),
    "a larger window": sums(BOTH, window=32),
    "offsets without a mask": f"if r > 3:\n    {sums(load_of('A').replace(BELOW, f'P[{OFFSETS}]'))}",
    "offsets with the mask of the elements": "if r > 3:\n    "
    + sums(load_of("A").replace(BELOW, BELOW.replace(MASK, LESS)).replace(MASK, LESS)),
    "an inner loop": f"for k in T.serial(2):\n    {sums(load_of('A'))}",
}
LEFT = {
    "another stride": sums(load_of("A").replace(ELEMENT, ELEMENT + " + T.broadcast(j, 4)")),
    "an array that is written": f"A[0] = T.float32(0)\n{sums(load_of('A'))}",
    "a window of no whole lines": sums(load_of("A"), window=12),
    "a window that is not a number": sums(load_of("A"), window='"16"'),
    "a loop that starts later": sums(load_of("A"), loop="T.serial(1, m, annotations=ANNOTATIONS)"),
    "offsets that may not exist": sums(load_of("A").replace(BELOW, f"P[{OFFSETS}]")),
    "a mask of other lanes": sums(load_of("A").replace(BELOW, BELOW.replace("<", ">="))),
}


def module_of(body, *, facts=FACTS):
    lines = "\n".join("    " + line for line in body.splitlines())
    return parse_module(HEADER + facts + lines + "\n")


def windows(module):
    return [node.buffer for node in walk(module) if isinstance(node, Allocate)]


def results(module, starts, *, m, n):
    random = np.random.default_rng(n)
    y = np.zeros(8, np.float32)
    a, b = random.integers(-9, 9, (2, n))
    arrays = {"a": a.astype(np.float32), "b": b.astype(np.int32), "p": np.array(starts, np.int32)}
    run(module, {**arrays, "y": y, "n": n, "m": m, "r": len(starts)})
    return y.tolist()


@pytest.mark.parametrize("name", READ)
def test_windows_have_the_elements_of_all_lanes(name):
    before = module_of(READ[name])
    after = verify(load_windows(before))
    assert windows(after)
    assert "annotations" not in repr(after).replace("annotations=()", "")
    # Windows of 16 and 32: elements fit, just fit and do not; arrays end before the window does; few lanes.
    for starts in (
        (0, 2, 2, 5),
        (0, 0, 0, 14),
        (0, 0, 0, 15),
        (3, 9, 20, 33),
        (1, 1, 29, 29),
        (0, 4),
    ):
        for m in (0, 1, 2):
            for n in (36, 64):
                sizes = {"m": m, "n": n}
                assert results(after, starts, **sizes) == results(before, starts, **sizes)


@pytest.mark.parametrize("name", LEFT)
def test_other_loops_only_lose_the_annotation(name):
    after = verify(load_windows(module_of(LEFT[name])))
    assert not windows(after)
    assert not [node for node in walk(after) if isinstance(node, If)]


@pytest.mark.parametrize("fact", FACTS.splitlines(keepends=True))
def test_without_a_fact_nothing_is_read_from_windows(fact):
    assert not windows(load_windows(module_of(READ["one array"], facts=FACTS.replace(fact, ""))))


def test_loops_without_the_annotation_stay():
    module = module_of(sums(load_of("A"), loop="T.serial(m)"))
    assert load_windows(module) == module
