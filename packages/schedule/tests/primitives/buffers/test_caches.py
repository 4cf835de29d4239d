"""`cache_read` and `cache_write`: each step keeps the result, for symbolic sizes that are not multiples of
tiles, empty rows and no rows.
"""

from __future__ import annotations

import numpy as np
import pytest
from nest_programs import SUM

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples
from gossamer_testkit.show import body_text

SPMM_CACHES = {
    "values": ("cache_read", {"buffer": "A"}),
    "gathered rows, over the operand": ("cache_read", {"buffer": "B"}),
    "gathered rows, side by side": ("reindex_cache_read", {"buffer": "B"}),
    "gathered rows, transposed": ("reindex_cache_read", {"buffer": "B", "order": ("vk", "vj")}),
    "values by elements": ("reindex_cache_read", {"buffer": "A"}),
    "results": ("cache_write", {"buffer": "C"}),
    "results, transposed": ("reindex_cache_write", {"buffer": "C", "order": ("vk", "vi")}),
}


@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
@pytest.mark.parametrize("name", SPMM_CACHES)
@pytest.mark.parametrize(("rows", "columns", "features"), [(0, 3, 2), (5, 4, 0), (7, 5, 3)])
def test_spmm_with_a_cache(require_spmm, module, name, rows, columns, features):
    op, options = SPMM_CACHES[name]
    builder = ScheduleBuilder(module).split("k", factors=(None, 2))
    getattr(builder, op)("csrmm", scope="local", **options)
    require_spmm(builder.module, features, rows=rows, columns=columns)


def test_all_caches_together(require_spmm):
    builder = ScheduleBuilder(examples.SPMM)
    for name in ("values", "gathered rows, side by side", "results"):
        op, options = SPMM_CACHES[name]
        getattr(builder, op)("csrmm", scope="local", **options)
    require_spmm(builder.module, 3)


SCATTER = """
@T.prim_func
def scatter(p: T.handle, x: T.handle, y: T.handle, n: T.int64, m: T.int64, k: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    X = T.match_buffer(x, (n, k), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(in_range(P, 0, m))
    for i in T.serial(n):
        for j in T.serial(k):
            with T.block("scatter"):
                vi, vj = T.axis.remap("SR", [i, j])
                Y[T.int64(P[vi])] = T.max(Y[T.int64(P[vi])], X[vi, vj])
"""


@pytest.mark.parametrize(("n", "k"), [(0, 3), (5, 0), (9, 4)])
def test_points_that_meet_in_one_element_are_combined(n, k):
    module = parse_module(SCATTER)
    builder = ScheduleBuilder(module).reindex_cache_write("scatter", buffer="Y", scope="local")
    random = np.random.default_rng(n)
    p = random.integers(0, 4, n).astype(np.int32)
    x = random.integers(-9, 9, (n, k)).astype(np.float32)
    y = random.integers(-9, 0, 4).astype(np.float32)
    expected = y.copy()
    np.maximum.at(expected, np.repeat(p, k), x.ravel())
    run(verify(builder.module), {"p": p, "x": x, "y": y, "n": n, "m": 4, "k": k})
    np.testing.assert_array_equal(y, expected)


GUARDED = """
@T.prim_func
def guarded(p: T.handle, x: T.handle, y: T.handle, n: T.int64, m: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "int32")
    X = T.match_buffer(x, (m,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.serial(n):
        with T.block("look"):
            vi = T.axis.spatial(n, i)
            T.where(vi != 2)
            Y[vi] = T.if_then_else(T.int64(P[vi]) >= 0 and T.int64(P[vi]) < m, X[T.int64(P[vi])], 0.0)
"""


@pytest.mark.parametrize("op", ["cache_read", "reindex_cache_read"])
def test_elements_are_cached_under_the_condition_under_which_they_are_read(op):
    builder = ScheduleBuilder(parse_module(GUARDED))
    getattr(builder, op)("look", buffer="X", scope="local")
    p = np.array([0, -1, 99, 2, 7], np.int32)
    y = np.full(5, 77, np.float32)
    run(verify(builder.module), {"p": p, "x": np.float32([5, 6, 7]), "y": y, "n": 5, "m": 3})
    np.testing.assert_array_equal(y, [5, 0, 77, 7, 0])


def test_iterators_of_one_loop_visit_no_product_of_domains(program):
    diagonal = """
for i in T.serial(8):
    with T.block("diagonal"):
        vi, vj = T.axis.remap("SS", [i, i])
        Y[vi, vj] = X[vi, vj]
"""
    with pytest.raises(Exception, match="whatever the other iterators are"):
        ScheduleBuilder(program(diagonal)).cache_write("diagonal", buffer="Y", scope="local")


def test_a_stencil_is_cached_once_for_each_of_its_reads(program):
    stencil = """
for i in T.serial(7):
    with T.block("stencil"):
        vi = T.axis.spatial(7, i)
        V[vi] = W[vi] + W[vi + 1]
"""
    builder = ScheduleBuilder(program(stencil)).cache_read("stencil", buffer="W", scope="local")
    text = body_text(builder.module)
    assert "W_local[vi_c] = W[vi_c]\n" in text
    assert "W_local[vi_c + 1] = W[vi_c + 1]\n" in text


def test_an_element_is_read_into_a_cache_under_each_of_its_conditions_once(program):
    chosen = """
for i in T.serial(7):
    with T.block("chosen"):
        vi = T.axis.spatial(7, i)
        V[vi] = T.if_then_else(
            vi > 2, T.if_then_else(vi > 3, W[vi], 0.0) + W[vi] * W[vi], T.if_then_else(vi < 1, W[vi], 0.0))
"""
    builder = ScheduleBuilder(program(chosen)).cache_read("chosen", buffer="W", scope="local")
    condition = "vi_c > 2, True, T.if_then_else(not vi_c > 2, vi_c < 1, False)"
    assert f"if T.if_then_else({condition}):" in body_text(builder.module)


def test_what_only_a_loop_reads_is_read_into_a_cache_where_the_loop_runs(program):
    inside = """
for i in T.serial(8):
    with T.block("outer"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(n):
            with T.block("inner"):
                uj = T.axis.spatial(n, j)
                Y[vi, uj] = W[vi + 60]
"""
    builder = ScheduleBuilder(program(inside)).cache_read("outer", buffer="W", scope="local")
    result = np.zeros((8, 8), np.float32)
    zeros = {"x": result, "z": result.copy(), "v": np.zeros(64, np.float32)}
    given = zeros | {"y": result.copy(), "w": np.zeros(64, np.float32), "p": np.zeros(9, np.int32)}
    run(builder.module, given | {"n": 0})
    assert "if n > 0:" in body_text(builder.module)


SELECTED = """
for i in T.serial(8):
    with T.block("outer"):
        vi = T.axis.spatial(8, i)
        for j in T.serial(n):
            CONDITION
            with T.block("inner"):
                vj = T.axis.reduce(n, j)
                with T.init():
                    V[T.int64(P[vi])] = 5.0
                V[T.int64(P[vi])] = V[T.int64(P[vi])] + 1.0
"""


@pytest.mark.parametrize(
    ("condition", "held"),
    [("", ()), ("if vi < 3:", ("if vi_c < 3:",))],
    ids=["an empty reduction", "a condition"],
)
def test_what_an_init_reads_is_read_into_a_cache_also_where_its_reduction_is_empty(
    program, condition, held
):
    lines = SELECTED.split("            CONDITION\n")
    inner = lines[1].replace("\n    ", "\n        ") if condition else lines[1]
    text = f"{lines[0]}            {condition}\n{'    ' if condition else ''}{inner}"
    module = program(text)
    after = ScheduleBuilder(module).cache_read("outer", buffer="P", scope="local").module
    found = tuple(line.strip() for line in body_text(after).splitlines() if "if " in line)
    assert found[: len(held)] == held
    for n in (0, 1, 3):
        results = []
        for version in (module, after):
            v, p = np.full(64, 7, np.float32), np.arange(9, dtype=np.int32)[::-1].copy()
            given = {name: np.zeros((8, 8), np.float32) for name in "xyz"}
            run(version, given | {"v": v, "w": np.zeros(64, np.float32), "p": p, "n": n})
            results.append(v)
        np.testing.assert_array_equal(*results)


ROWS = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, m: T.int64, n: T.int64, k: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (m, n), "float64")
    B = T.match_buffer(b, (n, k), "float64")
    C = T.match_buffer(c, (m, k), "float64")
    for i in T.serial(m):
        with T.block("row"):
            vi = T.axis.spatial(m, i)
            for j in T.serial(n):
                for l in T.serial(k):
                    with T.block("product"):
                        vj, vl = T.axis.remap("RS", [j, l])
                        with T.init():
                            C[vi, vl] = 0.0
                        C[vi, vl] = C[vi, vl] + A[vi, vj] * B[vj, vl]
"""


@pytest.mark.parametrize("op", ["cache_write", "cache_read"])
@pytest.mark.parametrize("m", [0, 1, 5])
def test_what_an_outer_block_selects_is_cached_within_it(op, m):
    buffer = {"cache_write": "C", "cache_read": "A"}[op]
    before = parse_module(ROWS)
    after = getattr(ScheduleBuilder(before), op)("product", buffer=buffer, scope="local").module
    verify(after)
    (loop,) = after.functions[0].body
    assert len(loop.body[0].body) == 2
    random = np.random.default_rng(1)
    a, b = (
        random.integers(-3, 4, (m, 3)).astype(float),
        random.integers(-3, 4, (3, 4)).astype(float),
    )
    for module in (before, after):
        c = np.full((m, 4), np.nan)
        run(module, {"a": a, "b": b, "c": c, "m": m, "n": 3, "k": 4})
        np.testing.assert_array_equal(c, a @ b)


FROM_THE_OLD_VALUE = SUM.replace("V[vi] = 0.0", "V[vi] = V[vi] * 0.5")
WHILE_SMALL = SUM.replace(
    "        with T.init", "        T.where(V[vi] < 5.0)\n            with T.init"
)


@pytest.mark.parametrize("op", ["cache_write", "reindex_cache_write"])
@pytest.mark.parametrize("body", [FROM_THE_OLD_VALUE, WHILE_SMALL], ids=["init", "predicate"])
def test_what_an_element_held_before_is_not_in_its_cache(program, op, body):
    step = Step(op, {"block": "sum", "buffer": "V", "scope": "local"})
    with pytest.raises(ScheduleError, match=r"\.(element|initialized|domain)\]"):
        apply(program(body), step)
    assert apply(program(SUM), step).names[0] == "V_local"


def test_loops_of_a_copy_have_names_where_an_iterator_is_a_number(program):
    module = program(SUM.replace("vi", "v4"))
    result = apply(module, Step("cache_write", {"block": "sum", "buffer": "V", "scope": "local"}))
    verify(result.module)
    assert result.names[-1].isidentifier()


UNTIL_SEEN = """
@T.prim_func
def mark(y: T.handle, z: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 0})
    Y = T.match_buffer(y, (n,), "int32")
    Z = T.match_buffer(z, (n,), "int32")
    for i in T.serial(n):
        with T.block("mark"):
            vi = T.axis.spatial(n, i)
            T.where(Z[vi] > 0)
            Y[vi] = 1
            Z[vi] = 0
"""


@pytest.mark.parametrize("op", ["cache_write", "reindex_cache_write"])
def test_elements_under_a_condition_that_their_nest_changes_are_not_cached(op):
    step = Step(op, {"block": "mark", "buffer": "Y", "scope": "local"})
    with pytest.raises(ScheduleError, match=r"\.domain\]"):
        apply(parse_module(UNTIL_SEEN), step)
    kept = apply(parse_module(UNTIL_SEEN.replace("            Z[vi] = 0\n", "")), step)
    y = np.full(3, 7, np.int32)
    run(kept.module, {"y": y, "z": np.array([1, 0, 2], np.int32), "n": 3})
    np.testing.assert_array_equal(y, [1, 7, 1])


def test_elements_that_a_loop_decides_on_are_not_cached(program):
    body = SUM.replace("        with T.init", "        T.where(i < 5)\n            with T.init")
    step = Step("reindex_cache_write", {"block": "sum", "buffer": "V", "scope": "local"})
    with pytest.raises(ScheduleError, match=r"\.predicate\]"):
        apply(program(body), step)


GOING_ON = {
    "a sum": "V[vi] = V[vi] + X[vi, vj]",
    "a difference": "V[vi] = V[vi] - X[vi, vj]",
    "a recurrence": "V[vi] = V[vi] * 0.5 + X[vi, vj]",
    "the last": "V[vi] = X[vi, vj]",
    "those that are positive": "if X[vi, vj] > 0.0:\n                V[vi] = V[vi] + X[vi, vj]",
    "by a let": "t: T.float32 = X[vi, vj]\n            V[vi] = T.min(V[vi], t)",
}


@pytest.mark.parametrize("body", GOING_ON.values(), ids=GOING_ON)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_what_goes_on_from_old_values_loads_them(body, n):
    text = f"""
@T.prim_func
def f(x: T.handle, v: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    X = T.match_buffer(x, (m, n), "float32")
    V = T.match_buffer(v, (m,), "float32")
    for i in T.serial(m):
        for j in T.serial(n):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                {body.replace("            ", "                ")}
"""
    before = parse_module(text)
    builder = ScheduleBuilder(before).cache_write("sum", buffer="V", scope="local")
    builder.reverse_compute_at("sum_V_local", loop="i").decompose_reduction("sum", loop="j")
    found = []
    for module in (before, verify(builder.module)):
        x = np.random.default_rng(2).integers(-8, 9, (4, n)).astype(np.float32)
        v = np.float32([3, -1, 7, 0])
        run(module, {"x": x, "v": v, "m": 4, "n": n})
        found.append(v)
    np.testing.assert_array_equal(*found)


BEYOND_FIBERS = """
@T.prim_func
def shifted(a: T.handle, indptr: T.handle, n: T.int64, nnz: T.int64):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_varied(I, (3, nnz), indptr)
    J_indptr = T.match_buffer(indptr, (n + 1,), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    for i in T.serial(n):
        with T.block("shifted"):
            vi = T.axis.spatial(n, i)
            T.where(J_indptr[vi] < J_indptr[vi + 1])
            A[vi, 0] = A[vi, 0] + A[vi, 2]
"""


@pytest.mark.parametrize("op", ["cache_read", "cache_inplace"])
def test_what_lies_beyond_a_fiber_has_no_place_in_a_cache(op):
    """A read there gives the fill value, and a store would stop the program."""
    module = verify(parse_module(BEYOND_FIBERS))
    if op == "cache_read":
        module = verify(
            parse_module(
                BEYOND_FIBERS.replace("A[vi, 0] = A[vi, 0] +", "B[vi] =")
                .replace("a: T.handle,", "a: T.handle, b: T.handle,")
                .replace("    for i", '    B = T.sp.match_buffer(b, (I,), "float32")\n    for i', 1)
            )
        )
    with pytest.raises(ScheduleError) as raised:
        apply(module, Step(op, {"block": "shifted", "buffer": "A", "scope": "local"}))
    assert raised.value.code == f"schedule.{op}.not_proved"
    assert "beyond their fibers" in str(raised.value)
