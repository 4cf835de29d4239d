"""`cache_read`, `cache_write` and their variants keep the result: symbolic sizes that are not multiples of
tiles, empty rows and no rows; tests of one of them are in the file of its name.
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
