"""Extreme integer arguments of primitives, indices that wrap around, and indices that are out of bounds."""

from __future__ import annotations

import time

import numpy as np
import pytest

from gossamer_ir.core.limits import MAX_SIZE
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import InterpreterError, run
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import verify
from gossamer_schedule import apply

HEAD = """
@T.prim_func
def program(v: T.handle, w: T.handle, p: T.handle, n: T.int64, m: T.int64, k: T.int64, x: T.handle,
            q: T.int64, z: T.handle):
    T.func_attr({"sparse_tir_level": 0})
    V = T.match_buffer(v, (64,), "int32")
    W = T.match_buffer(w, (64,), "int32")
    P = T.match_buffer(p, (8,), "int64")
    X = T.match_buffer(x, (m, k), "int32")
"""


def program(body: str) -> Module:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return verify(parse_module(HEAD + lines))


def results(module, positions=range(8)):
    arrays = {
        "v": np.arange(64, dtype=np.int32) * 3,
        "w": np.arange(64, dtype=np.int32),
        "p": np.array(positions),
        "x": np.zeros((4, 4), np.int32),
        "z": np.zeros(4, np.int32),
    }
    run(module, {**arrays, "n": 8, "m": 4, "k": 4, "q": 4}, chunks=2)
    return np.concatenate([arrays["v"], arrays["x"].ravel()])


STEPS = """
for i in T.serial(8):
    with T.block("b"):
        vi = T.axis.spatial(8, i)
        V[vi] = V[vi] + W[P[vi]]
"""
SUMS = STEPS.replace("spatial", "reduce").replace("W[P[vi]]", "W[vi]")
LOCAL = """
B = T.alloc_buffer((8, 8), "int32")
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("fill"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = W[vi * 8 + vj]
for h in T.serial(8):
    with T.block("read"):
        vh = T.axis.spatial(8, h)
        V[vh] = {read}
"""
HUGE = (2**63 - 1, 2**63, 2**62, MAX_SIZE + 1, 10**30, 0, -1, -(2**63), -(10**30))


def split_step(number):
    return Step("split", {"loop": "i", "factors": (None, number)})


NUMBERS = {
    "split": (STEPS, split_step, "split.factors"),
    "split and rows": (
        STEPS,
        lambda number: Step("split", {"loop": "i", "factors": (4, number)}),
        "split.factors",
    ),
    "align": (
        STEPS,
        lambda number: Step("align", {"loop": "i", "buffer": "V", "lanes": number}),
        "align.lanes",
    ),
    "prefetch": (
        STEPS,
        lambda number: Step(
            "prefetch", {"block": "b", "buffer": "W", "loop": "i", "distance": number}
        ),
        "prefetch.distance",
    ),
    "grain": (STEPS, lambda number: Step("parallel", {"loop": "i", "grain": number}), "parallel.grain"),
    "parts": (
        SUMS,
        lambda number: Step("parallel_reduction", {"loop": "i", "parts": number}),
        "parallel_reduction.parts",
    ),
    "storage_align": (
        LOCAL.replace("{read}", "B[vh, 0]"),
        lambda number: Step("storage_align", {"buffer": "B", "axis": 0, "factor": number}),
        "storage_align.factor",
    ),
    "dimension of storage_align": (
        LOCAL.replace("{read}", "B[vh, 0]"),
        lambda number: Step("storage_align", {"buffer": "B", "axis": number or 9, "factor": 8}),
        "storage_align.axis",
    ),
    "pipeline": (STEPS, lambda number: Step("pipeline", {"loop": "i", "stages": number}), "pipeline.stages"),
    "largest factor": (
        STEPS,
        lambda number: Step(
            "sample_perfect_tile", {"loop": "i", "name": "t", "parts": 2, "largest": number}
        ),
        "sample_perfect_tile.largest",
    ),
    "parts of a tile": (
        STEPS,
        lambda number: Step("sample_perfect_tile", {"loop": "i", "name": "t", "parts": number}),
        "sample_perfect_tile.parts",
    ),
    "decision of a tile": (
        STEPS,
        lambda number: Step(
            "sample_perfect_tile",
            {"loop": "i", "name": "t", "parts": 2, "decision": (None, number)},
        ),
        "sample_perfect_tile.decision",
    ),
    "weight of a candidate": (
        STEPS,
        lambda number: Step(
            "sample_categorical", {"name": "t", "candidates": (1,), "weights": (number,)}
        ),
        "sample_categorical.candidates",
    ),
    "index map": (
        LOCAL.replace("{read}", "B[vh, 0]"),
        lambda number: Step(
            "transform_layout", {"buffer": "B", "index_map": f"i, j -> i // {number}, i % {number}, j"}
        ),
        "transform_layout.*",
    ),
}  # fmt: skip


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize(("body", "step", "code"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_that_count_nothing_are_refused(body, step, code, number):
    with pytest.raises(ScheduleError, match=rf"\[schedule.{code.replace('*', '[a-z_]+')}\]"):
        apply(program(body), step(number))


WRAPPED = {
    "a multiple of 2^64": "vi * 4611686018427387904 * 4",
    "multiples that meet": "vi * 4611686018427387904 + 1",
}
AT_ONCE = {
    "parallel": Step("parallel", {"loop": "i"}),
    "bind": Step("bind", {"loop": "i", "thread": "blockIdx.x"}),
}


@pytest.mark.parametrize("step", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize("index", WRAPPED.values(), ids=WRAPPED)
def test_indices_that_wrap_around_are_no_elements_of_their_own(index, step):
    body = STEPS.replace("V[vi] = V[vi]", f"V[{index}] = V[{index}]")
    with pytest.raises(ScheduleError, match=rf"\[schedule.{step.op}.not_proved\]"):
        apply(program(body), step)


def test_a_loop_of_any_length_may_wrap_around():
    body = STEPS.replace("T.serial(8)", "T.serial(n)").replace(
        "V[vi] = V[vi]", "V[vi * 8] = V[vi * 8]"
    )
    with pytest.raises(ScheduleError, match=r"\[schedule.parallel.not_proved\]"):
        apply(program(body), Step("parallel", {"loop": "i"}))


FLAT = """
for i in T.serial(m):
    for j in T.serial(k):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vi * k + vj] = W[vi * k + vj]
"""
APART = {
    "a number as large as an array": (FLAT, ()),
    "a loop of any length that is split": (
        STEPS.replace("T.serial(8)", "T.serial(n)").replace("spatial(8", "spatial(n"),
        (split_step(8), Step("split", {"loop": "i_1", "factors": (None, 2)})),
    ),
    "a fused loop that is split": (
        FLAT.replace("V[vi * k + vj]", "X[vi, vj]"),
        (Step("fuse", {"loops": ("i", "j")}), Step("split", {"loop": "i_j", "factors": (None, 4)})),
    ),
}


@pytest.mark.parametrize(("body", "steps"), APART.values(), ids=APART)
def test_indices_of_all_sizes_that_arrays_have_do_not_wrap_around(body, steps):
    module = program(body)
    before = results(module)
    for step in steps:
        module = apply(module, step).module
    top = next(loop for loop in ("i_j_0", "i_0", "i") if f" {loop} in " in print_module(module))
    made = apply(module, Step("parallel", {"loop": top})).module
    np.testing.assert_array_equal(results(verify(made)), before)


NEST = """
for i in T.serial({i}):
    for j in T.serial({j}):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(vi < 4 and vj < 4)
            V[vi] = 1
"""
COUNTS = {
    "sizes of one array": ("m", "k", True),
    "tiles of one array": ("(m + 7) // 8", "k // 16 + T.min(k % 16, 1)", True),
    "a size and a small number": ("m", "1024", True),
    "a size and a large number": ("m", "1099511627776", False),
    "sizes of two arrays": ("m", "q", False),
    "a number and any integer": ("n", "8", False),
    "a size that is rounded up twice": ("(m + 8) // 8 + 1", "k", False),
}


@pytest.mark.parametrize(("outer", "inner", "is_fused"), COUNTS.values(), ids=COUNTS)
def test_the_number_of_iterations_of_a_fused_loop_does_not_wrap_around(outer, inner, is_fused):
    body = NEST.format(i=outer, j=inner)
    module = program('Q = T.match_buffer(z, (q,), "int32")\n' + body)
    step = Step("fuse", {"loops": ("i", "j")})
    if not is_fused:
        with pytest.raises(ScheduleError, match=r"\[schedule.fuse.not_proved\]"):
            apply(module, step)
        return
    verify(apply(module, step).module)


@pytest.mark.parametrize(("factor", "is_checked"), [(8, False), (3, True)])
def test_a_split_loop_does_not_go_on_beyond_the_largest_integer(factor, is_checked):
    body = STEPS.replace("T.serial(8)", "T.serial(n)").replace("spatial(8", "spatial(n")
    made = verify(apply(program(body), split_step(factor)).module)
    assert (f"if i_0 * {factor} + i_1 >= 0" in print_module(made)) == is_checked
    np.testing.assert_array_equal(results(made), results(program(body)))


@pytest.mark.parametrize("factors", [(None, 3), (3, None)])
def test_a_number_of_iterations_that_wraps_around_is_no_multiple(factors):
    """A third of 2^64 + 2 iterations, times three, wraps around to two."""
    module = parse_module(
        """
@T.prim_func
def main(y: T.handle, n: T.int64, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (m,), "int32")
    for i in T.serial(n * 3):
        with T.block("b"):
            vi = T.axis.spatial(n * 3, i)
            Y[vi] = 1
"""
    )
    made = apply(module, Step("split", {"loop": "i", "factors": factors})).module
    y = np.zeros(2, np.int32)
    run(verify(made), {"y": y, "n": (2**64 + 2) // 3, "m": 2})
    assert y.tolist() == [1, 1]


def test_a_weight_of_what_an_array_holds_does_not_wrap_around():
    module = program("for i in T.serial(m):\n    for j in T.serial(k):\n        X[i, j] = 1")
    made = apply(module, Step("parallel", {"loop": "i", "weight": "k * i + 4 * i"}))
    assert "weight=k * i + 4 * i" in print_module(made.module)
    with pytest.raises(ScheduleError, match=r"\[schedule.parallel.weight\]"):
        apply(module, Step("parallel", {"loop": "i", "weight": "q * i"}))


def test_a_weight_does_not_wrap_around():
    for weight in ("i * 4611686018427387904", "i + 9223372036854775807"):
        step = Step("parallel", {"loop": "i", "weight": weight})
        with pytest.raises(ScheduleError, match=r"\[schedule.parallel.weight\]"):
            apply(program(STEPS), step)


def test_a_weight_may_be_a_product_of_sizes():
    body = STEPS.replace("T.serial(8)", "T.serial(m)").replace("spatial(8", "spatial(m")
    made = apply(program(body), Step("parallel", {"loop": "i", "weight": "k * i + 4 * i"})).module
    assert "k * i + 4 * i" in print_module(made)


READS = {
    "beyond a row": ("B[0, 8]", range(8)),
    "before a row": ("B[1, vh - 1]", range(8)),
    "through an index array": ("B[0, P[vh]]", [0, 1, 2, 3, 8, 5, 6, 7]),
    "through an index array, before": ("B[1, P[vh]]", [0, 1, 2, 3, -1, 5, 6, 7]),
    "through itself": ("B[0, T.int64(B[1, vh])]", range(8)),
}
MOVED = {
    "one dimension": Step("transform_layout", {"buffer": "B", "index_map": "i, j -> i * 8 + j"}),
    "tiles": Step("transform_layout", {"buffer": "B", "index_map": "i, j -> j // 4, i, j % 4"}),
    "padding": Step(
        "transform_layout", {"buffer": "B", "index_map": "i, j -> i, j // 5, j % 5", "pad": "0"}
    ),
    "columns": Step("transform_layout", {"buffer": "B", "index_map": "i, j -> j, i"}),
    "aligned rows": Step("storage_align", {"buffer": "B", "axis": 0, "factor": 16}),
}


@pytest.mark.parametrize("step", MOVED.values(), ids=MOVED)
@pytest.mark.parametrize(("read", "positions"), READS.values(), ids=READS)
def test_an_access_out_of_bounds_stays_out_of_bounds(read, positions, step):
    module = program(LOCAL.replace("{read}", read))
    made = verify(apply(module, step).module)
    for version in (module, made):
        with pytest.raises(InterpreterError, match="out of bounds"):
            results(version, positions)


@pytest.mark.parametrize("step", MOVED.values(), ids=MOVED)
@pytest.mark.parametrize("read", ["B[vh, 7 - vh]", "B[vh, P[vh]]", "B[P[vh], P[P[vh]]]"])
def test_elements_are_read_where_they_were_put(read, step):
    module = program(LOCAL.replace("{read}", read))
    made = verify(apply(module, step).module)
    np.testing.assert_array_equal(results(made), results(module))
    if "P" not in read:
        assert "T.if_then_else" not in print_module(made)


def test_padding_is_found_without_a_search():
    step = Step("storage_align", {"buffer": "B", "axis": 0, "factor": 10**8, "offset": 3})
    begin = time.process_time()
    made = apply(program(LOCAL.replace("{read}", "B[vh, 0]")), step).module
    assert time.process_time() - begin < 1
    assert f"T.alloc_buffer((8, {10**8 + 3})" in print_module(made)
