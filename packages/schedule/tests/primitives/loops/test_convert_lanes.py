"""`convert_lanes`: it gives the program that `split` by the other lanes would have given, or refuses."""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import COPY, RAGGED, SUM
from refused import reason_of

from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import print_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply, convert_lanes, vectorize

FORMS = (2, 3, 8, 16, "T.vscale()", "4 * T.vscale()")
PROGRAMS = {"copies": (COPY, "j"), "rows of any length": (RAGGED, "j"), "a sum": (SUM, "j")}
BLOCK = """
for i_0 in T.serial(4):
    for i_1 in T.vectorized(4):
        with T.block("copy"):
            vi = T.axis.spatial(64, {value})
            {more}
            V[vi] = W[vi]
"""


OF_16 = """
for i in T.serial(16):
    with T.block("copy"):
        vi = T.axis.spatial(64, i)
        V[vi] = W[vi]
"""


def nest(value="i_0 * 4 + i_1", *, more="pass"):
    """A loop over vectors, and one over lanes, with an iterator of this value."""
    return BLOCK.format(value=value, more=more)


@pytest.mark.parametrize("after", FORMS)
@pytest.mark.parametrize("before", FORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_that_of_other_lanes_in_the_first_place(program, name, before, after):
    body, loop = PROGRAMS[name]
    module = program(body)
    start = vectorize(
        module, loop, lanes=before, remainder="masked" if name == "a sum" else "scalar"
    )
    result = convert_lanes(start.module, *start.names, lanes=after)
    wanted = vectorize(
        module, loop, lanes=after, remainder="masked" if name == "a sum" else "scalar"
    )
    assert result.names == start.names
    assert verify(result.module) == wanted.module


def test_native_lanes_are_those_of_vectorize(program):
    fixed = vectorize(program(COPY), "j", lanes=16)
    scalable = convert_lanes(fixed.module, *fixed.names, lanes="native").module
    assert scalable == vectorize(program(COPY), "j", lanes="native").module


def test_a_nest_without_a_bound_keeps_all_its_elements(program):
    converted = convert_lanes(program(nest()), "i_0", "i_1", lanes=8).module
    assert converted == vectorize(program(OF_16), "i", lanes=8).module


def test_the_names_stay_those_of_the_loops(program):
    builder = ScheduleBuilder(program(COPY))
    outer, inner = builder.vectorize("j", lanes=8).names
    assert builder.convert_lanes(outer, inner, lanes=4).names == (outer, inner)
    builder.unroll(outer)


def tile(lanes, *, vectors=1):
    """The init and the sums of a tile of `vectors` vectors in each iteration of a loop."""
    count, _, scale = str(lanes).partition(" ")
    size = f"({vectors * int(count)} {scale})"
    nests = []
    for name, body in (("start", "V[vk] = 0.0"), ("sum", "V[vk] = V[vk] + X[0, vj] * W[vk]")):
        numbers = [f"for v_{name} in T.unroll({vectors}):"] if vectors > 1 else []
        at = f"v_{name} * ({lanes}) + " if vectors > 1 else ""
        lines = [
            *numbers,
            f"for l_{name} in T.vectorized({lanes}):",
            f'with T.block("{name}"):',
            f"vk = T.axis.spatial(64, t * {size} + {at}l_{name})",
        ]
        inner = ["vj = T.axis.reduce(8, j)"] if name == "sum" else []
        nested = [f"{'    ' * depth}{line}" for depth, line in enumerate(lines)]
        rest = [*inner, "T.where(vk < n)", body]
        nested += [f"{'    ' * (len(lines) - 1)}{line}" for line in rest]
        nests.append(nested)
    start, update = nests
    return "\n".join(
        [
            f"for t in T.serial(n // {size} + T.min(n % {size}, 1)):",
            *(f"    {line}" for line in start),
            "    for j in T.serial(8):",
            *(f"        {line}" for line in update),
        ]
    )


TILES = [
    (8, "4 * T.vscale()", 1), ("4 * T.vscale()", 8, 1), (4, 16, 1), (8, "4 * T.vscale()", 2),
    ("4 * T.vscale()", "2 * T.vscale()", 2), ("4 * T.vscale()", 8, 4),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "vectors"), TILES)
def test_the_nests_of_a_tile_are_converted_together(program, before, after, vectors):
    start, wanted = (program(tile(lanes, vectors=vectors)) for lanes in (before, after))
    assert convert_lanes(start, "t", "l_sum", lanes=after).module == wanted
    assert convert_lanes(start, "t", "l_start", lanes=after).module == wanted


@pytest.mark.parametrize(("before", "after", "vectors"), TILES)
def test_the_values_of_a_tile_stay_the_same(program, before, after, vectors):
    start = program(tile(before, vectors=vectors))
    converted = convert_lanes(start, "t", "l_sum", lanes=after).module
    for vscale, n in ((1, 13), (2, 64), (4, 37), (16, 1), (1, 0)):
        w = np.arange(64, dtype=np.float32)
        outputs = []
        for module in (start, converted):
            v, matrices = (
                np.full(64, 7, np.float32),
                {name: w.reshape(8, 8).copy() for name in "xyz"},
            )
            run(
                module,
                {**matrices, "v": v, "w": w, "p": np.zeros(9, np.int32), "n": n},
                vscale=vscale,
            )
            outputs.append(v)
        np.testing.assert_array_equal(*outputs)
        np.testing.assert_array_equal(outputs[0], np.where(np.arange(64) < n, 28 * w, 7))


def test_a_loop_over_vectors_is_made_before_if_there_is_none(program):
    builder = ScheduleBuilder(program(OF_16.replace("serial", "vectorized"))).add_unit_loop("i")
    builder.convert_lanes("i_unit", "i", lanes="native")
    wanted = vectorize(program(OF_16), "i", lanes="native")
    texts = print_module(wanted.module).replace("i_0", "i_unit").replace("i_1", "i")
    assert print_module(builder.module) == texts


def test_vectors_of_a_tile_are_scalable_and_fixed_again(program):
    builder = ScheduleBuilder(program(COPY)).split("j", factors=(None, 3, 4)).vectorize("j_2")
    before = builder.module
    builder.convert_lanes("j_1", "j_2", lanes="native")
    assert "j_1 * (4 * T.vscale()) + j_2 < 12" in print_module(builder.module)
    again = print_module(builder.convert_lanes("j_1", "j_2", lanes=4).module)
    assert again.replace("(j_1 * 4 + j_2)", "j_1 * 4 + j_2") == print_module(before)


def test_an_unrolled_loop_over_scalable_vectors_is_serial(program):
    unrolled = program(nest().replace("serial", "unroll"))
    assert "i_0 in T.unroll(2)" in text_after(unrolled, lanes=8)
    assert "i_0 in T.serial((16 + (4 * T.vscale()" in text_after(unrolled, lanes="native")


def test_vectors_stay_parallel(program):
    assert "i_0 in T.parallel(2" in text_after(
        program(nest().replace("serial", "parallel")), lanes=8
    )


def text_after(module, *, lanes):
    return print_module(convert_lanes(module, "i_0", "i_1", lanes=lanes).module)


RACE = nest().replace("V[vi]", "V[0]")
UNPROVED = nest().replace("V[vi]", "V[T.int64(P[vi])]")
SERIAL = nest().replace("T.vectorized", "T.serial")
BESIDE = nest().replace("    for i_1", "    V[0] = 1.0\n    for i_1")
BOUND = nest().replace("serial(4", 'thread_binding(4, thread="threadIdx.x"')
WEIGHTED = nest().replace("T.serial(4", "T.parallel(4, weight=i_0")
INNER_DEPENDS = """
for i_0 in T.serial(4):
    for j in T.serial(i_0 + 1):
        for i_1 in T.vectorized(4):
            with T.block("copy"):
                vi = T.axis.spatial(16, i_0 * 4 + i_1)
                vj = T.axis.spatial(4, j)
                V[vi] = W[vi]
"""
PAIR = """
for i_0 in T.serial(4):
    for i_1 in T.vectorized(4):
        with T.block("copy"):
            vi = T.axis.spatial(16, i_0 * 4 + i_1)
            V[vi] = W[vi]
    for k in T.vectorized({lanes}):
        with T.block("more"):
            vi = T.axis.spatial(64, i_0 * {lanes} + k)
            {more}
"""
SEPARATE = OF_16.replace("copy", "separate").replace("vi", "vz")
TWO_SIZES = PAIR.format(lanes=8, more="W[vi] = 1.0")
CHAINED = PAIR.format(lanes=4, more="W[vi + 1] = V[vi]")
REFUSED = [
    ("convert_lanes.not_vectorized", SERIAL, {"lanes": 8}),
    ("convert_lanes.not_nested", BESIDE, {"lanes": 8}),
    ("convert_lanes.index", nest("i_0 * 5 + i_1"), {"lanes": 8}),
    ("convert_lanes.index", nest("i_0 * 4 + i_1 % 2"), {"lanes": 8}),
    ("convert_lanes.index", nest("i_1"), {"lanes": 8}),
    ("convert_lanes.index", nest(more="T.where(i_1 < 3)"), {"lanes": 8}),
    ("convert_lanes.start", nest().replace("vectorized(4)", "vectorized(4, 8)"), {"lanes": 8}),
    ("convert_lanes.lanes", nest(), {"lanes": 1}),
    ("convert_lanes.text", nest(), {"lanes": "many"}),
    ("convert_lanes.race", RACE, {"lanes": 8}),
    ("convert_lanes.not_proved", UNPROVED, {"lanes": 8}),
    ("convert_lanes.kind", WEIGHTED, {"lanes": 8}),
    ("convert_lanes.kind", BOUND, {"lanes": 8}),
    ("convert_lanes.not_nested", nest() + SEPARATE, {"lanes": 8, "outer": "i"}),
    ("convert_lanes.index", INNER_DEPENDS, {"lanes": 8}),
    ("convert_lanes.lanes", TWO_SIZES, {"lanes": 8}),
    ("convert_lanes.race", CHAINED, {"lanes": 8}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    step = Step("convert_lanes", {"outer": "i_0", "loop": "i_1"} | arguments)
    assert reason_of(apply, program(body), step) == code
