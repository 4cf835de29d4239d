"""Blocks with other statements between the loops of their reduction."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_schedule import apply, get_loops

SUM = """
with T.block("sum"):
    vi = T.axis.spatial(8, i)
    vj = T.axis.reduce(8, j)
    with T.init():
        V[vi] = 0.0
    V[vi] = V[vi] + X[vi, vj]
"""
ADDED = SUM.replace("    with T.init():\n        V[vi] = 0.0\n", "")
ROWS, TERMS = "for i in T.serial(8):", "for j in T.serial(8):"
PARTS = ("for j_0 in T.serial(3):", "for j_1 in T.serial(3):", "if j_0 * 3 + j_1 < 8:")


def nest(*heads: str, block: str = SUM) -> str:
    """A block nested below the given heads of statements."""
    for head in reversed(heads):
        block = f"\n{head}" + block.replace("\n", "\n    ")
    return block


def values(module, size):
    """V and W after a run of a module."""
    inputs = np.random.default_rng(0).integers(-3, 4, (3, 8, 8)).astype(np.float32)
    arrays = {"x": inputs[0], "y": inputs[1], "z": inputs[2], "p": np.zeros(9, np.int32)}
    written = {"v": np.full(64, 7, np.float32), "w": np.zeros(64, np.float32)}
    run(module, arrays | written | {"n": size})
    return [*written.values()]


IN_PARTS = nest(ROWS, *PARTS, block=SUM.replace("(8, j)", "(8, j_0 * 3 + j_1)"))
HALVES, QUARTERS = "for j_0 in T.serial(2):", "for j_1 in T.serial(4):"
IN_HALVES = SUM.replace("(8, j)", "(8, j_0 * 4 + j_1)")
CONDITIONED = nest(TERMS, "if j != 3:", ROWS)
BODIES = {
    "a condition on the reduction": (CONDITIONED, "j"),
    "one on what is known outside": (nest(TERMS, "if n > 0 and j != 3:", ROWS), "j"),
    "one on elements": (nest(TERMS, ROWS, "if i != 2:"), "j"),
    "the other side of one": (nest(TERMS, "if j == 3:\n    W[0] = 1.0\nelse:", ROWS), "j"),
    "a loop in parts": (IN_PARTS, "j_0"),
    "a loop in parts, further out": (IN_PARTS, "i"),
    "fewer parts": (nest(ROWS, HALVES, "if j_0 < n:", QUARTERS, block=IN_HALVES), "j_0"),
    "parts of some rows": (nest(HALVES, ROWS, "if i != 2:", QUARTERS, block=IN_HALVES), "j_0"),
    "no init": (nest(TERMS, "if j != 3:", ROWS, block=ADDED), None),
}
CACHE = {"block": "sum", "buffer": "V", "scope": "local"}


CACHES = [(op, name, CACHE) for op in ("cache_write", "reindex_cache_write") for name in BODIES]
DECOMPOSED = [
    ("decompose_reduction", name, {"block": "sum", "loop": loop})
    for name, (_, loop) in BODIES.items()
    if loop
]
FACTORED = [("rfactor", name, {"loop": "j_1"}) for name in ("fewer parts", "parts of some rows")]


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(("op", "name", "args"), [*CACHES, *DECOMPOSED, *FACTORED])
def test_a_reduction_goes_on_around_conditions(program, op, name, args, size):
    module = program(BODIES[name][0])
    changed = verify(apply(module, Step(op, args)).module)
    np.testing.assert_array_equal(values(changed, size), values(module, size))


COUNT = "with T.block('count'):\n    P[0] = 8\nfor i in T.serial(T.int64(P[0])):"
REPEATED = {
    "a loop of both kinds": nest(ROWS, TERMS, block=SUM.replace("(8, j)", "(8, i)")),
    "digits of one loop": nest(
        "for f in T.serial(64):",
        block=SUM.replace("(8, i)", "(8, f // 8)").replace("(8, j)", "(8, f % 8)"),
    ),
    "a loop that says how many elements there are": nest(TERMS, "for i in T.serial(j + 1):"),
    "one in tiles": nest(TERMS, "for i in T.serial(j + 1):", block=SUM.replace(
        "    with T.init", "    T.where(vi <= j)\n    with T.init")),
}  # fmt: skip


@pytest.mark.parametrize("body", REPEATED.values(), ids=REPEATED.keys())
def test_elements_may_be_initialized_several_times_before_a_reduction(program, body):
    module = program(body)
    outer = get_loops(module, "sum")[0]
    step = Step("decompose_reduction", {"block": "sum", "loop": outer})
    np.testing.assert_array_equal(values(apply(module, step).module, 1), values(module, 1))


def test_a_block_initializes_no_more_elements_than_its_block_inside_did(program):
    """A reduction loop selects the rows of a tile."""
    module = program(nest(TERMS, "for i in T.serial(j + 1):"))
    tiled = apply(module, Step("split", {"loop": "i", "factors": (None, 4)})).module
    with pytest.raises(ScheduleError, match="depend on loop 'j'") as caught:
        apply(tiled, Step("blockize", {"loop": "i_1"}))
    assert caught.value.code == "schedule.blockize.dependence"


REFUSED = {
    "an init inside of the reduction": (
        "too_deep", CONDITIONED, "decompose_reduction", {"block": "sum", "loop": "i"},
    ),
    "an init around a condition that sees it": (
        "not_proved", nest(ROWS, "if V[i] > 0.0:", TERMS),
        "decompose_reduction", {"block": "sum", "loop": "i"},
    ),
    "an init around what says how many elements there are": (
        "not_proved", nest("for k in T.serial(1):", COUNT, TERMS),
        "decompose_reduction", {"block": "sum", "loop": "k"},
    ),
    "a cache of what a condition reads": (
        "other_access", nest(TERMS, "if V[0] > 0.0:", ROWS), "cache_write", CACHE,
    ),
    "a cache of what a bound reads": (
        "other_access", nest(TERMS, "for i in T.serial(T.int64(V[9])):"), "cache_write", CACHE,
    ),
    "a cache of what is used between the loops": (
        "other_access", CONDITIONED + "\n    with T.block('use'):\n        W[j] = V[j]\n",
        "cache_write", CACHE,
    ),
    "a cache of elements that are told by parts of an iterator": (
        "predicate",
        nest(TERMS, "for k in T.serial(2):", "for i in T.serial(4):", "if k != 1:",
             block=SUM.replace("(8, i)", "(8, k * 4 + i)")),
        "cache_write", CACHE,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("reason", "body", "op", "args"), REFUSED.values(), ids=REFUSED.keys())
def test_statements_between_the_loops_of_a_nest_are_refused(program, reason, body, op, args):
    with pytest.raises(ScheduleError) as caught:
        apply(program(body), Step(op, args))
    assert caught.value.code == f"schedule.{op}.{reason}"
