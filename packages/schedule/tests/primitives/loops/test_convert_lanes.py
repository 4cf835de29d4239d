"""`convert_lanes`: it gives the program that `split` by the other lanes would have given, or refuses."""

from __future__ import annotations

import pytest
from nest_programs import COPY, RAGGED, SUM
from refused import reason_of

from gossamer_ir.interchange.records import Step
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
    start = vectorize(module, loop, lanes=before, rest="masked" if name == "a sum" else "scalar")
    result = convert_lanes(start.module, *start.names, lanes=after)
    wanted = vectorize(module, loop, lanes=after, rest="masked" if name == "a sum" else "scalar")
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


RACE = nest().replace("V[vi]", "V[0]")
UNPROVED = nest().replace("V[vi]", "V[T.int64(P[vi])]")
SERIAL = nest().replace("T.vectorized", "T.serial")
BESIDE = nest().replace("    for i_1", "    V[0] = 1.0\n    for i_1")
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
    ("convert_lanes.kind", nest().replace("serial", "parallel"), {"lanes": 8}),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    step = Step("convert_lanes", {"outer": "i_0", "loop": "i_1", **arguments})
    assert reason_of(apply, program(body), step) == code
