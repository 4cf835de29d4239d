"""What a block mentions is bound where the block goes: loops that are removed, lets and buffers that stand
between where it was and where it is."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.contracts import Step
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_schedule import apply

CHAIN = """
Q = T.decl_buffer((8,), "float32")
for a in T.serial(8):
    with T.block("made"):
        va = T.axis.spatial(8, a)
        {made}
{between}
for i in T.serial(8):
    with T.block("used"):
        vi = T.axis.spatial(8, i)
        {used}
for k in T.serial(8):
    with T.block("last"):
        vk = T.axis.spatial(8, k)
        Y[0, vk] = {last}
"""
MADE, USED = "Q[va] = V[va]", "W[vi] = Q[vi]"


def chain(made=MADE, used=USED, between="", last="V[vk]"):
    return CHAIN.format(made=made, used=used, between=between, last=last)


OWN_LOOP = chain(made="Q[va] = V[va] + T.float32(a)", used="W[vi] = Q[vi] + T.float32(i)")
LET = chain(used="W[vi] = Q[vi] + f", between="f: T.float32 = V[3]")
ALLOCATED = chain(used="R[vi] = Q[vi]", between='R = T.alloc_buffer((8,), "float32")', last="R[vk]")
STEPS = {
    "compute_at": {"block": "made", "loop": "i"},
    "compute_inline": {"block": "made"},
    "reverse_compute_at": {"block": "used", "loop": "a"},
    "reverse_compute_inline": {"block": "used"},
}
CASES = [
    (OWN_LOOP, "compute_at", None),
    (OWN_LOOP, "compute_inline", "predicate"),
    (OWN_LOOP, "reverse_compute_at", None),
    (OWN_LOOP, "reverse_compute_inline", "predicate"),
    (LET, "compute_at", None),
    (LET, "compute_inline", None),
    (LET, "reverse_compute_at", "scope"),
    (LET, "reverse_compute_inline", "scope"),
    (ALLOCATED, "compute_at", None),
    (ALLOCATED, "compute_inline", None),
    (ALLOCATED, "reverse_compute_at", "scope"),
    (ALLOCATED, "reverse_compute_inline", "scope"),
]


def outcome(module):
    random = np.random.default_rng(5)
    arrays = {name: random.integers(-4, 5, (8, 8)).astype(np.float32) for name in "xyz"}
    arrays |= {name: random.integers(-4, 5, 64).astype(np.float32) for name in "vw"}
    run(verify(module), arrays | {"p": np.arange(9, dtype=np.int32), "n": 8})
    return arrays


@pytest.mark.parametrize(("text", "op", "code"), CASES)
def test_what_moves_finds_all_that_it_mentions(program, text, op, code):
    module = program(text)
    before = outcome(module)
    if code is None:
        after = outcome(apply(module, Step(op, STEPS[op])).module)
        for name in before:
            np.testing.assert_array_equal(after[name], before[name])
    else:
        with pytest.raises(ScheduleError) as caught:
            apply(module, Step(op, STEPS[op]))
        assert caught.value.code == f"schedule.{op}.{code}"
