"""`vectorize`: programs before and after, and programs that it refuses."""

from __future__ import annotations

import pytest
from before_and_after import require_change
from nest_programs import COPY, SUM
from refused import reason_of
from refused_programs import LAST_WINS, PARALLEL, SCATTER, SYMBOLIC, TRIANGLE

from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module, print_expr
from gossamer_schedule import apply, vectorize

ONE_ELEMENT = SCATTER.replace("V[T.int64(P[vi])]", "V[0]")
LANES_MEET = """
for i in T.serial(8):
    with T.block("shared"):
        vi = T.axis.reduce(8, i)
        V[T.int64(P[vi])] = V[T.int64(P[vi])] + W[vi]
"""
SATURATING = """
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.where(V[vi] < 5.0)
            V[vi] = V[vi] + X[vi, vj]
"""
SHIFT = """
for i in T.serial(n):
    with T.block("shift"):
        vi = T.axis.spatial(n, i)
        V[vi] = W[vi + 1]
"""
LATE = SHIFT.replace("T.serial(n)", "T.serial(1, n)")
BEFORE_AND_AFTER = {
    "lanes of a reduction": (
        SUM, {"loop": "j"}, ("j",),
        """
for i in T.serial(8):
    for j in T.vectorized(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.block_attr({"reassociates": True})
            with T.init():
                V[vi] = 0.0
            V[vi] = V[vi] + X[vi, vj]
""",
    ),
    "a loop of another extent": (
        SHIFT, {"loop": "i", "lanes": 8}, ("i_0", "i_1"),
        """
for i_0 in T.serial(n // 8 + T.min(n % 8, 1)):
    for i_1 in T.vectorized(8):
        with T.block("shift"):
            vi = T.axis.spatial(n, i_0 * 8 + i_1)
            T.where(vi < n)
            V[vi] = W[vi + 1]
""",
    ),
    "scalable lanes": (
        COPY, {"loop": "j", "lanes": "2 * T.vscale()"}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial((8 + (2 * T.vscale() - 1)) // (2 * T.vscale())):
        for j_1 in T.vectorized(2 * T.vscale()):
            with T.block("copy"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(8, j_0 * (2 * T.vscale()) + j_1)
                T.where(vj < 8)
                Y[vi, vj] = X[vi, vj]
""",
    ),
    "lanes of a whole extent": (
        SUM, {"loop": "j", "lanes": 4, "remainder": "masked"}, ("j_0", "j_1"),
        """
for i in T.serial(8):
    for j_0 in T.serial(2):
        for j_1 in T.vectorized(4, annotations={"remainder": "masked"}):
            with T.block("sum"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.reduce(8, j_0 * 4 + j_1)
                T.block_attr({"reassociates": True})
                with T.init():
                    V[vi] = 0.0
                V[vi] = V[vi] + X[vi, vj]
""",
    ),
    "terms of an accumulation": (
        LANES_MEET.replace("P[vi])]", "P[vi]) % 8]"), {"loop": "i", "lanes": 4, "accumulate": "atomic"},
        ("i_0", "i_1", "i_1_turn", "shared_terms_1", "shared_terms"),
        """
for i_0 in T.serial(2):
    shared_terms_1 = T.alloc_buffer((4,), "float32", scope="local")
    for i_1 in T.vectorized(4):
        with T.block("shared_terms"):
            vi_term = T.axis.spatial(8, i_0 * 4 + i_1)
            vi_1_term = T.axis.spatial(4, i_1)
            shared_terms_1[vi_1_term] = W[vi_term]
    for i_1_turn in T.serial(4):
        with T.block("shared"):
            vi = T.axis.reduce(8, i_0 * 4 + i_1_turn)
            vi_1 = T.axis.spatial(4, i_1_turn)
            V[T.int64(P[vi]) % 8] = V[T.int64(P[vi]) % 8] + shared_terms_1[vi_1]
""",
    ),
}  # fmt: skip
REFUSED = [
    ("vectorize.kind", PARALLEL, {"loop": "i"}),
    ("vectorize.remainder", COPY, {"loop": "i", "remainder": "skipped"}),
    ("vectorize.innermost", COPY, {"loop": "i"}),
    ("vectorize.extent", TRIANGLE, {"loop": "j"}),
    ("vectorize.innermost", SYMBOLIC, {"loop": "i"}),
    ("vectorize.race", ONE_ELEMENT, {"loop": "i"}),
    ("vectorize.not_proved", SCATTER, {"loop": "i"}),
    ("vectorize.not_proved", LANES_MEET, {"loop": "i"}),
    ("vectorize.not_reducer", LAST_WINS, {"loop": "j"}),
    ("vectorize.not_reducer", SATURATING, {"loop": "j"}),
    *(
        ("vectorize.lanes", SHIFT, {"loop": "i", "lanes": lanes})
        for lanes in (0, 1, -4, 1025, "n", "T.vscale() * T.vscale()", "0 * T.vscale()")
    ),
    ("vectorize.text", SHIFT, {"loop": "i", "lanes": "all"}),
    ("vectorize.start", LATE, {"loop": "i", "lanes": "native"}),
    ("vectorize.innermost", SUM, {"loop": "i", "lanes": "native"}),
    ("vectorize.kind", PARALLEL, {"loop": "i", "lanes": "native"}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("vectorize", arguments), names=names, after=after)


NATIVE_LANES = {
    "float64": 2,
    "float32": 4,
    "bfloat16": 8,
    "int8": 16,
    "bool": 16,
}


@pytest.mark.parametrize(("dtype", "factor"), NATIVE_LANES.items())
def test_native_lanes_fill_a_register_with_what_is_stored(dtype, factor):
    module = parse_module(f"""
@T.prim_func
def copy(p: T.handle, x: T.handle, y: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    P = T.match_buffer(p, (n,), "int64")
    X = T.match_buffer(x, (n,), "{dtype}")
    Y = T.match_buffer(y, (n,), "{dtype}")
    T.assume(in_range(P, 0, n))
    for i in T.serial(n):
        with T.block("copy"):
            vi = T.axis.spatial(n, i)
            Y[vi] = X[P[vi]]
""")
    (loop,) = vectorize(module, "i", lanes="native").module.functions[0].body
    assert print_expr(loop.body[0].extent) == f"{factor} * T.vscale()"


def test_native_lanes_hold_the_widest_elements():
    module = parse_module("""
@T.prim_func
def copies(x: T.handle, y: T.handle, z: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    Z = T.match_buffer(z, (n,), "float64")
    for i in T.serial(n):
        Y[i] = X[i]
        Z[i] = T.float64(X[i])
""")
    (loop,) = vectorize(module, "i", lanes="native").module.functions[0].body
    assert print_expr(loop.body[0].extent) == "2 * T.vscale()"


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("vectorize", arguments)) == code
