"""`tensorize`: the loop nests that an intrinsic matches, and unchanged results."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Intrinsic
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, annotate, replay, tensorize
from gossamer_testkit import examples
from gossamer_testkit.examples import DOT_4
from gossamer_testkit.show import body_text

HEADER = """
@T.prim_func
def outer(a: T.handle, b: T.handle, c: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (n, 2), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    C = T.match_buffer(c, (2, 4), "float32")
"""
OUTER = Intrinsic(
    name="outer",
    semantics=HEADER
    + """
    for p in T.serial(n):
        for i in T.serial(2):
            for j in T.serial(4):
                with T.block("outer_update"):
                    vp, vi, vj = T.axis.remap("RSS", [p, i, j])
                    C[vi, vj] = C[vi, vj] + A[vp, vi] * B[vp, vj]
""",
    implementation=HEADER
    + """
    R = T.alloc_buffer((2, 4), "float32", scope="local")
    for i in T.unroll(2):
        for j in T.vectorized(4):
            R[i, j] = C[i, j]
    for p in T.serial(n):
        for k in T.unroll(2):
            for l in T.vectorized(4):
                R[k, l] = R[k, l] + A[p, k] * B[p, l]
    for x in T.unroll(2):
        for y in T.vectorized(4):
            C[x, y] = R[x, y]
""",
)
ROW_HEADER = HEADER.replace("(n, 2)", "(n,)").replace("(2, 4)", "(4,)")
ROW = Intrinsic(
    name="row",
    semantics=ROW_HEADER
    + """
    for p in T.serial(n):
        for j in T.serial(4):
            with T.block("row_update"):
                vp, vj = T.axis.remap("RS", [p, j])
                C[vj] = C[vj] + A[vp] * B[vp, vj]
""",
    implementation=ROW_HEADER
    + """
    for p in T.serial(n):
        for j in T.vectorized(4):
            C[j] = C[j] + A[p] * B[p, j]
""",
)
BOTH = (DOT_4, OUTER)

BLOCKED = (
    ("split", ("i",), {"factors": (None, 2)}),
    ("split", ("l",), {"factors": (None, 4)}),
    ("split", ("j",), {"factors": (None, 3)}),
    ("reorder", ("i_0", "l_0", "j_0", "i_1", "l_1", "j_1"), {}),
    ("tensorize", ("i_1",), {"intrinsic": "outer"}),
    ("decompose_reduction", ("matmul_o",), {"loop": "j_0"}),
    ("parallel", ("i_0",), {}),
)


@pytest.mark.parametrize(
    "sizes", [(0, 3, 4), (5, 0, 4), (5, 3, 0), (2, 3, 4), (7, 8, 9), (1, 1, 1)]
)
def test_a_product_of_tiles_keeps_its_result_after_each_step(sizes):
    m, n, k = sizes
    random = np.random.default_rng(1)
    a = random.integers(-3, 4, (m, n)).astype(np.float32)
    b = random.integers(-3, 4, (n, k)).astype(np.float32)
    builder = ScheduleBuilder(examples.MATMUL, intrinsics=BOTH)
    for op, names, options in BLOCKED:
        getattr(builder, op)(*names, **options)
        c = np.full((m, k), 77, np.float32)
        run(verify(builder.module), {"a": a, "b": b, "c": c, "m": m, "n": n, "k": k})
        np.testing.assert_array_equal(c, a @ b, err_msg=op)
    assert replay(examples.MATMUL, builder.trace, intrinsics=BOTH) == builder.module
    again = ScheduleBuilder.from_json(examples.MATMUL, builder.to_json(), intrinsics=BOTH)
    assert again.module == builder.module


@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
@pytest.mark.parametrize("features", [0, 1, 4, 9])
def test_gathered_rows_of_spmm_are_an_operand(require_spmm, features, module):
    builder = ScheduleBuilder(module, intrinsics=(ROW,)).split("k", factors=(None, 4))
    tensorized = builder.reorder("k_0", "j", "k_1").sparse_tensorize("j", intrinsic="row")
    assert "for p in T.serial(T.int64(J_indptr[" in body_text(tensorized.module)
    require_spmm(tensorized.module, features)


def test_what_an_emission_announces_and_guards_is_what_it_matches(require_spmm):
    """Prefetches and guards name the buffers of the program, and elements of the matched regions."""
    more = "        T.prefetch(B[p, 0])\n        T.guard(n > 0, B)\n        for j in T.vectorized"
    announcing = replace(
        ROW, implementation=ROW.implementation.replace("        for j in T.vectorized", more)
    )
    builder = ScheduleBuilder(examples.SPMM, intrinsics=(announcing,)).split("k", factors=(None, 4))
    tensorized = builder.reorder("k_0", "j", "k_1").sparse_tensorize("j", intrinsic="row")
    assert "T.prefetch(B, T.int64(J_indices[" in body_text(tensorized.module)
    assert ", B)" in body_text(tensorized.module)
    require_spmm(verify(tensorized.module), 9)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_gathered_elements_of_spmv_are_an_operand(require_spmv, rows):
    builder = ScheduleBuilder(examples.SPMV, intrinsics=BOTH).split("j", factors=(None, 4))
    builder.sparse_tensorize("j_1", intrinsic="dot_4")
    require_spmv(builder.module, rows=rows)


def test_the_module_carries_the_name_and_the_digest():
    fours = (
        ScheduleBuilder(examples.MATMUL).split("j", factors=(None, 4)).reorder("l", "j_0", "j_1")
    )
    texts = [
        body_text(tensorize(fours.module, "j_1", intrinsic="dot_4", intrinsics=(intrinsic,)).module)
        for intrinsic in (DOT_4, replace(DOT_4, implementation=DOT_4.implementation + "\n"))
    ]
    assert '"intrinsic": "dot_4@' in texts[0]
    assert texts[0] != texts[1]
    with pytest.raises(ScheduleError, match=r"annotate\.reserved"):
        annotate(fours.module, "matmul", key="intrinsic", value="dot_4")


DOTS = """
for i in T.serial(8):
    for j in T.serial(4):
        with T.block("dots"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.reduce(4, j)
            V[vi] = V[vi] + X[vi, vj] * Y[vj, vi]
"""
TILE = """
for q in T.serial(8):
    for i in T.serial(2):
        for j in T.serial(4):
            with T.block("tile"):
                vp = T.axis.reduce(8, q)
                vi = T.axis.spatial(2, i)
                vj = T.axis.spatial(4, j)
                Z[vi, vj] = Z[vi, vj] + X[vp, vi] * Y[vp, vj]
"""
INIT = """            with T.init():
                V[vi] = 0.0
            V[vi] ="""
DOT, TILED = {"loop": "j", "intrinsic": "dot_4"}, {"loop": "q", "intrinsic": "outer"}
REFUSED = [
    ("tensorize.no_intrinsic", DOTS, DOT | {"intrinsic": "dot_8"}),
    ("tensorize.match", DOTS.replace("* Y", "- Y"), DOT),
    ("tensorize.match", DOTS.replace("4", "5"), DOT),
    ("tensorize.match", DOTS.replace("V[vi] +", "W[vi] +"), DOT),
    ("tensorize.match", TILE.replace("Z[vi, vj]", "Z[vi, vj + vp]"), TILED),
    ("tensorize.match", TILE.replace("T.serial(4)", "T.serial(i + 3)"), TILED),
    ("tensorize.layout", TILE.replace("Y[vp, vj]", "Y[vj, vp]"), TILED),
    ("tensorize.layout", TILE.replace("Y[vp, vj]", "Y[vp, 2 * vj]"), TILED),
    ("tensorize.indirect", DOTS.replace("Y[vj, vi]", "Y[T.int64(P[vj]), vi]"), DOT),
    ("tensorize.alias", DOTS.replace("X[vi, vj]", "V[vj]"), DOT),
    ("tensorize.not_proved", TILE.replace("Z[vi, vj]", "Z[vi // 2, vj]"), TILED),
    (
        "tensorize.init",
        DOTS.replace("axis.reduce", "axis.spatial").replace("            V[vi] =", INIT),
        DOT,
    ),
    ("tensorize.not_proved", DOTS.replace("V[vi]", "V[T.int64(V[9])]"), DOT),
    ("tensorize.predicate", DOTS.replace("V[vi] =", "T.where(vi < vj)\n            V[vi] ="), DOT),
    ("tensorize.store", DOTS + "            W[vi] = 1.0\n", DOT),
    ("tensorize.body", DOTS + "    W[i] = 1.0\n", DOT | {"loop": "i"}),
    ("tensorize.kind", DOTS.replace("j in T.serial(4)", "j in T.vectorized(4)"), DOT),
    ("tensorize.intrinsic", DOTS, DOT | {"intrinsic": "broken"}),
    ("tensorize.intrinsic", DOTS, DOT | {"intrinsic": "idle"}),
]


def with_idle(text: str) -> str:
    """The program with a buffer that it does not use."""
    declared = '    D = T.match_buffer(a, (4,), "float32")\n    A = '
    return text.replace("    A = ", declared, 1)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED)
def test_refusals(program, code, body, arguments):
    broken = replace(DOT_4, name="broken", implementation=OUTER.implementation)
    idle = replace(
        DOT_4,
        name="idle",
        semantics=with_idle(DOT_4.semantics),
        implementation=with_idle(DOT_4.implementation),
    )
    with pytest.raises(ScheduleError) as caught:
        tensorize(program(body), **arguments, intrinsics=(*BOTH, broken, idle))
    assert caught.value.code == f"schedule.{code}"


def test_what_does_not_match_is_shown_beside_the_intrinsic(program):
    with pytest.raises(ScheduleError) as caught:
        tensorize(program(DOTS.replace("* Y", "- Y")), **DOT, intrinsics=BOTH)
    assert "V[i] = V[i] + X[i, j] - Y[j, i] for j < 4" in str(caught.value)
    assert "C[0] = C[0] + A[p] * B[p] for p < 4" in str(caught.value)


@pytest.mark.parametrize("intrinsic", BOTH)
def test_both_texts_of_an_intrinsic_compute_the_same(intrinsic):
    outputs = []
    for text in (intrinsic.semantics, intrinsic.implementation):
        random = np.random.default_rng(2)
        (function,) = verify(parse_module(text)).functions
        sizes_by_name = {"n": 5} if any(param.name == "n" for param in function.params) else {}
        sizes = {"dot_4": [(4,), (4,), (1,)], "outer": [(5, 2), (5, 4), (2, 4)]}[intrinsic.name]
        arrays = [random.integers(-3, 4, size).astype(np.float32) for size in sizes]
        run(parse_module(text), dict(zip("abc", arrays, strict=True)) | sizes_by_name)
        outputs.append(arrays[2])
    np.testing.assert_array_equal(*outputs)


GROUPS_HEADER = """
@T.prim_func
def groups(a: T.handle, e: T.handle, b: T.handle, y: T.handle, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (m, 2), "float32")
    E = T.match_buffer(e, (m, 2), "uint8")
    B = T.match_buffer(b, (m * 4, 3), "float32")
    Y = T.match_buffer(y, (3,), "float32")
    T.assume(in_range(E, 0, 4))
"""
GROUPS = Intrinsic(
    name="groups",
    semantics=GROUPS_HEADER
    + """
    for q in T.serial(m):
        for s in T.serial(2):
            for j in T.serial(3):
                with T.block("groups"):
                    vq, vs, vj = T.axis.remap("RRS", [q, s, j])
                    Y[vj] = Y[vj] + A[vq, vs] * B[vq * 4 + T.int64(E[vq, vs]), vj]
""",
    implementation=GROUPS_HEADER
    + """
    for q in T.serial(m):
        for s in T.serial(2):
            for p in T.serial(4):
                if T.int64(E[q, s]) == p:
                    for j in T.serial(3):
                        Y[j] = Y[j] + A[q, s] * B[4 * q + p, j]
""",
)
IN_GROUPS = """
@T.prim_func
def f(a: T.handle, e: T.handle, b: T.handle, y: T.handle, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    A_1 = T.match_buffer(a, (2, m), "float32")
    E_1 = T.match_buffer(e, (m, 2), "uint8")
    B_1 = T.match_buffer(b, (m * 4, 3), "float32")
    Y_1 = T.match_buffer(y, (3,), "float32")
    T.assume(in_range(E_1, 0, 4))
    for i in T.serial(m):
        for u in T.serial(2):
            for k in T.serial(3):
                with T.block("f"):
                    vi, vu, vk = T.axis.remap("RRS", [i, u, k])
                    Y_1[vk] = Y_1[vk] + B_1[vi * 4 + T.int64(E_1[vi, vu]), vk] * A_1[vu, vi]
"""
TRANSPOSED = IN_GROUPS.replace("(m * 4, 3)", "(3, m * 4)").replace(
    "B_1[vi * 4 + T.int64(E_1[vi, vu]), vk]", "B_1[vk, vi * 4 + T.int64(E_1[vi, vu])]"
)


@pytest.mark.parametrize("text", [IN_GROUPS, TRANSPOSED])
def test_an_implementation_has_all_elements_of_a_dimension_whose_index_is_computed(text):
    module = parse_module(text)
    changed = tensorize(module, "i", intrinsic="groups", intrinsics=(GROUPS,)).module
    verify(changed)
    rng = np.random.default_rng(0)
    arguments = {
        "a": rng.integers(-4, 5, (2, 5)).astype(np.float32),
        "e": rng.integers(0, 4, (5, 2)).astype(np.uint8),
        "b": rng.integers(-4, 5, (20, 3) if text is IN_GROUPS else (3, 20)).astype(np.float32),
        "m": 5,
    }
    results = []
    for each in (module, changed):
        y = np.ones(3, np.float32)
        run(each, {**arguments, "y": y})
        results.append(y)
    np.testing.assert_array_equal(*results)
    assert "== p" in body_text(changed)


def test_facts_of_a_description_are_conditions():
    module = parse_module(IN_GROUPS.replace("    T.assume(in_range(E_1, 0, 4))\n", ""))
    with pytest.raises(ScheduleError, match="the fact 'InRange' about 'E_1'") as caught:
        tensorize(module, "i", intrinsic="groups", intrinsics=(GROUPS,))
    assert caught.value.code == "schedule.tensorize.facts"


def test_a_computed_index_must_be_equal():
    module = parse_module(IN_GROUPS.replace("vi * 4 + T.int64", "vi * 4 + 1 - T.int64"))
    with pytest.raises(ScheduleError) as caught:
        tensorize(module, "i", intrinsic="groups", intrinsics=(GROUPS,))
    assert caught.value.code == "schedule.tensorize.match"
