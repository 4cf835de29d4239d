"""`transform_layout`: the map is injective, and unused places have the pad value."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from nest_programs import COPY
from refused import reason_of
from refused_programs import LANES, STAGED

from gossamer_ir.arith.simplify import simplify
from gossamer_ir.core.build import index, index_var
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.nodes import IndexMap
from gossamer_ir.script import parse_expr, parse_module, print_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply, cache_read
from gossamer_schedule.regions.iterator_map import layout_of
from gossamer_testkit import examples

SHAPES = [(1, 5), (2, 3), (4, 6), (7, 5), (8, 12)]
MAPS = {
    "i, j -> j, i": True,
    "i, j -> j // 4, i, j % 4": True,
    "i, j -> i // 2, j // 3, i % 2, j % 3": True,
    "i, j -> (i // 2 * 3 + j % 3) * 2 + i % 2, j // 3": True,
    "i, j -> j // 2, (j - j // 2 * 2) + 2 * i": False,
    "i, j -> i, j + 1": False,
    "i, j -> i, j + j": False,
    "i, j -> j // 6, j // 2 % 3, i, j % 2": True,
    "i, j -> j % 6 // 2, i, j // 6 * 2 + j % 2": True,
    "i, j -> i % 4 + 4 * j, i // 4": True,
    "i, j -> i, j // 2": False,
    "i, j -> i + j, j": False,
    "i, j -> i": False,
    "i, j -> i, j, i": False,
    "i, j -> i, j // 4, j % 3": False,
    "i, j -> i, j - 1": False,
    "i, j -> i % 4 + 5 * j, i // 4": False,
}


def map_of(text):
    right = text.partition("->")[2].split(",")
    return IndexMap(("i", "j"), tuple(parse_expr(at, {"i": "int64", "j": "int64"}) for at in right))


def value_of(expr):
    return int(simplify(expr).text)


@pytest.mark.parametrize("text", MAPS)
@pytest.mark.parametrize("shape", SHAPES)
def test_maps_that_are_taken_are_one_to_one(text, shape):
    layout = layout_of(map_of(text), tuple(map(index, shape)))
    if not MAPS[text]:
        assert layout is None
        return
    extents = [value_of(extent) for extent in layout.extents]
    places = {
        tuple(value_of(at) for at in layout.at(tuple(map(index, element))))
        for element in product(*map(range, shape))
    }
    assert len(places) == shape[0] * shape[1]
    assert places <= set(product(*map(range, extents)))
    for place in product(*map(range, extents)):
        unused = layout.unused_condition(tuple(map(index, place)))
        is_unused = unused is not None and simplify(unused).text == "True"
        assert is_unused == (place not in places)


def test_maps_of_symbolic_shapes():
    shape = (index_var("m"), index_var("n"))
    assert layout_of(map_of("i, j -> j, i"), shape).padded == {}
    assert layout_of(map_of("i, j -> j // 4, i, j % 4"), shape).padded == {"j": index_var("n")}
    flat = parse_expr("i * n + j", dict.fromkeys("ijn", "int64"))
    assert layout_of(IndexMap(("i", "j"), (flat,)), shape).padded == {}


STEPS = {
    "tiles": ("i, k -> k // 4, i, k % 4", "0.0"),
    "transposed": ("i, k -> k, i", None),
    "rows apart": ("i, k -> i % 3, i // 3, k", "nan"),
}


@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(("rows", "features"), [(0, 3), (5, 0), (7, 6)])
def test_spmm_with_results_in_another_layout(require_spmm, module, name, rows, features):
    text, pad = STEPS[name]
    builder = ScheduleBuilder(module).cache_write("csrmm", buffer="C", scope="local")
    builder.transform_layout("C_local", index_map=text, pad=pad)
    require_spmm(builder.module, features, rows=rows)


def test_the_padding_is_defined(program):
    text = """
Q = T.decl_buffer((7,), "float32")
for a in T.serial(7):
    with T.block("made"):
        va = T.axis.spatial(7, a)
        Q[va] = V[va]
"""
    builder = ScheduleBuilder(program(text))
    builder.transform_layout("Q", index_map="i -> i // 4, i % 4", pad="9")
    shown = "    for b in T.serial(2):\n        for c in T.serial(4):\n            W[b * 4 + c] = Q[b, c]\n"
    module = parse_module(print_module(builder.module).rstrip() + "\n" + shown)
    arrays = {name: np.zeros((8, 8), np.float32) for name in "xyz"}
    arrays |= {"v": np.arange(64, dtype=np.float32), "w": np.zeros(64, np.float32)}
    run(verify(module), arrays | {"p": np.zeros(9, np.int32), "n": 8})
    np.testing.assert_array_equal(arrays["w"][:8], [0, 1, 2, 3, 4, 5, 6, 9])


VECTOR = """
Q = T.alloc_buffer((16,), "float32")
Q[T.ramp(4, 1, 4)] = V[T.ramp(0, 1, 4)]
W[T.ramp(0, 1, 4)] = Q[T.ramp(4, 1, 4)]
"""
REFUSED = [
    ("transform_layout.parameter", COPY, {"buffer": "Y", "index_map": "i, j -> j, i"}),
    ("transform_layout.kind", LANES, {"buffer": "Q", "index_map": "i, j -> i, j // 2, j % 2"}),
    ("transform_layout.kind", VECTOR, {"buffer": "Q", "index_map": "i -> i // 4, i % 4"}),
    ("transform_layout.map", STAGED, {"buffer": "Q", "index_map": "i -> i"}),
    ("transform_layout.map", STAGED, {"buffer": "Q", "index_map": "i, j"}),
    ("transform_layout.map", STAGED, {"buffer": "Q", "index_map": "i, j -> ,"}),
    ("transform_layout.not_proved", STAGED, {"buffer": "Q", "index_map": "i, j -> i, j // 2"}),
    ("transform_layout.padding", STAGED, {"buffer": "Q", "index_map": "i, j -> i, j // 3, j % 3"}),
    (
        "transform_layout.padding",
        STAGED,
        {"buffer": "Q", "index_map": "i, j -> i, j // 3, j % 3", "pad": "none"},
    ),
    (
        "transform_layout.other_access",
        STAGED.replace('"float32")', '"float32")\nT.assume(monotone(Q))'),
        {"buffer": "Q", "index_map": "i, j -> j, i"},
    ),
]
REFUSED_MODULES = [
    (
        "transform_layout.sparse",
        cache_read(examples.SPMM_POSITION, "csrmm", buffer="A", scope="local").module,
        {"buffer": "A_local", "index_map": "i, j -> j, i"},
    ),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("transform_layout", arguments)) == code


@pytest.mark.parametrize(
    ("code", "module", "arguments"), REFUSED_MODULES, ids=[code for code, *_ in REFUSED_MODULES]
)
def test_refusals_of_modules(code, module, arguments):
    assert reason_of(apply, module, Step("transform_layout", arguments)) == code
