"""`blockize`: nested blocks compute the same, and run their inits once."""

from __future__ import annotations

import numpy as np
import pytest
from before_and_after import require_change
from nest_programs import BACKWARDS, SUM
from refused import reason_of
from refused_programs import BROKEN_NEST, SKEWED_SUM, TWO_COPIES

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, apply
from gossamer_testkit import examples
from gossamer_testkit.show import body_text

ROWS_OF_TILES = (
    ("split", ("k",), {"factors": (None, 4)}),
    ("split", ("i",), {"factors": (None, 2)}),
    ("reorder", ("k_0", "j"), {}),
    ("blockize", ("k_1",), {}),
    ("decompose_reduction", ("csrmm_o",), {"loop": "j"}),
    ("parallel", ("i_0",), {}),
)
ROWS = (
    ("split", ("j",), {"factors": (None, 3)}),
    ("blockize", ("j_1",), {}),
    ("blockize", ("j_0",), {}),
    ("parallel", ("i",), {}),
)
LIFTED = (
    ("split", ("k",), {"factors": (None, 4)}),
    ("reorder", ("k_0", "j"), {}),
    ("blockize", ("j",), {}),
    ("split", ("k_0",), {"factors": (None, 2)}),
    ("blockize", ("k_1",), {}),
)


@pytest.mark.parametrize("features", [0, 1, 4, 9])
@pytest.mark.parametrize("steps", [ROWS_OF_TILES, ROWS, LIFTED])
@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
def test_spmm_keeps_its_result(require_spmm_after_each_step, module, steps, features):
    require_spmm_after_each_step(module, steps, features)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_a_block_whose_domain_is_read_from_data(require_spmv, rows):
    builder = ScheduleBuilder(examples.SPMV).split("j", factors=(None, 2)).blockize("j_1")
    assert 'vi_1, vj_0 = T.axis.remap("SR", [i, j_0])' in body_text(builder.module)
    require_spmv(builder.module, rows=rows)


def test_an_init_stays_where_no_loop_around_feeds_the_reduction(require_spmv):
    builder = ScheduleBuilder(examples.SPMV).blockize("j")
    assert "csrmv_init" not in body_text(builder.module)
    assert builder.names == ("csrmv_o", "vi_1")
    require_spmv(builder.module)


def test_what_the_domain_of_a_block_inside_reads_is_not_cached(program):
    module = program("""
for i in T.serial(8):
    for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
        with T.block("scale"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[T.int64(P[vi]) + vj] = 2.0
""")
    builder = ScheduleBuilder(module).blockize("j")
    with pytest.raises(ScheduleError, match=r"reindex_cache_read\.domain"):
        builder.reindex_cache_read("scale_o", buffer="P", scope="local")


def test_an_init_leaves_conditions_between_loops(program):
    module = program("""
for i in T.serial(8):
    for k in T.serial(2):
        if i < 7:
            for j in T.serial(4):
                with T.block("sum"):
                    vi, vk, vj = T.axis.remap("SRR", [i, k, j])
                    with T.init():
                        V[vi] = 0.0
                    V[vi] = V[vi] + X[vi, vk * 4 + vj]
""")
    outputs = []
    for each in (module, ScheduleBuilder(module).blockize("j").module):
        x, v = np.arange(64, dtype=np.float32).reshape(8, 8), np.full(64, 77, np.float32)
        others = {name: np.zeros((8, 8), np.float32) for name in "yz"}
        arguments = {"x": x, "v": v, "w": v.copy(), "p": np.zeros(9, np.int32), "n": 8}
        run(verify(each), arguments | others)
        outputs.append(v)
    np.testing.assert_array_equal(*outputs)


@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
@pytest.mark.parametrize("op", ["cache_write", "reindex_cache_write"])
@pytest.mark.parametrize("loop", ["j", "k_0", "k_1"])
@pytest.mark.parametrize("factors", [(None, 4), (1, None), (None, 1)])
def test_what_a_block_in_a_block_writes_is_cached_there(require_spmm, module, op, loop, factors):
    builder = ScheduleBuilder(module).split("k", factors=factors).blockize(loop)
    getattr(builder, op)("csrmm", buffer="C", scope="local")
    text = body_text(builder.module)
    assert text.index("csrmm_o") < text.index("csrmm_C_local")
    for features in (0, 1, 9):
        require_spmm(builder.module, features)


@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
@pytest.mark.parametrize("steps", [ROWS, LIFTED[:3], ROWS_OF_TILES[:4]])
@pytest.mark.parametrize("at", [None, "i"])
def test_what_an_outer_block_writes_is_cached_around_it(require_spmm, module, steps, at):
    builder = ScheduleBuilder(module)
    for op, names, options in steps:
        if op != "parallel":
            getattr(builder, op)(*names, **options)
    outer = next(name for name in ("csrmm_o_o", "csrmm_o") if name in builder.get_blocks())
    copy = builder.cache_write(outer, buffer="C", scope="local").names[1]
    text = body_text(builder.module)
    assert text.index("csrmm_o") < text.index(copy)
    if at is not None and at in builder.get_loops(outer) and at in builder.get_loops("csrmm"):
        builder.reverse_compute_at(copy, loop=at)
    for features in (0, 1, 9):
        require_spmm(builder.module, features)


UNKNOWN_INIT = """
for j in T.serial(4):
    with T.block("sum_o"):
        vj_0 = T.axis.reduce(4, j)
        with T.init():
            for i_init in T.serial({extent}):
                with T.block("sum_init"):
                    vi_init = T.axis.spatial(8, i_init)
                    V[vi_init] = 0.0
        for i in T.serial(8):
            with T.block("sum"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.reduce(4, vj_0)
                V[vi] = V[vi] + X[vi, vj]
"""


def test_an_outer_block_that_initializes_fewer_elements_is_not_cached(program):
    whole = ScheduleBuilder(program(UNKNOWN_INIT.format(extent=8)))
    whole.cache_write("sum_o", buffer="V", scope="local")
    part = ScheduleBuilder(program(UNKNOWN_INIT.format(extent=7)))
    with pytest.raises(ScheduleError, match=r"cache_write\."):
        part.cache_write("sum_o", buffer="V", scope="local")


def test_an_outer_block_that_goes_on_from_old_values_has_a_hint(program):
    module = program(UNKNOWN_INIT.format(extent=8))
    summed = ScheduleBuilder(module).decompose_reduction("sum_o", loop="j")
    with pytest.raises(ScheduleError, match=r"reindex_cache_write.*cache_write\.element"):
        summed.cache_write("sum_o", buffer="V", scope="local")


def test_a_part_of_a_domain_is_cached(program):
    """Loops that visit the values of an iterator in parts, one after the other."""
    module = program("""
for i in T.serial(4):
    if n > 2:
        for j_0 in T.serial(2):
            for j_1 in T.serial(3):
                with T.block("copy"):
                    vi = T.axis.spatial(64, i + 2)
                    vj = T.axis.spatial(8, j_0 * 3 + j_1 + T.int64(P[i]))
                    Y[vi, vj] = X[vi, vj]
""")
    cached = ScheduleBuilder(module).cache_write("copy", buffer="Y", scope="local")
    assert "for j_c in T.serial(6)" in body_text(cached.module)
    outputs = []
    for each in (module, cached.module):
        y = np.full((8, 8), 77, np.float32)
        arguments = {name: np.zeros((8, 8), np.float32) for name in "z"}
        arguments |= {name: np.zeros(64, np.float32) for name in "vw"} | {"n": 8, "y": y}
        arguments["x"], arguments["p"] = (
            np.arange(64, dtype=np.float32).reshape(8, 8),
            np.full(9, 2, "i4"),
        )
        run(verify(each), arguments)
        outputs.append(y)
    np.testing.assert_array_equal(*outputs)


ROWS_BEYOND = """
T.assume(monotone(P))
T.assume(in_range(P, 0, 9))
for i_0 in T.serial(3):
    for i_1 in T.serial(3):
        for k in T.serial(4):
            for j in T.serial(T.if_then_else(i_0 * 3 + i_1 < 8, T.int64(P[i_0 * 3 + i_1 + 1]) - T.int64(P[i_0 * 3 + i_1]), 0)):
                with T.block("rows"):
                    vi = T.axis.spatial(8, i_0 * 3 + i_1)
                    vj = T.axis.spatial(T.int64(P[vi + 1]) - T.int64(P[vi]), j)
                    vk = T.axis.reduce(4, k)
                    T.where(vi < 8)
                    with T.init():
                        V[T.int64(P[vi]) + vj] = 0.0
                    V[T.int64(P[vi]) + vj] = V[T.int64(P[vi]) + vj] + X[vi, vk]
"""  # noqa: E501


def test_parts_of_a_row_that_is_not_there_are_none(program):
    module = program(ROWS_BEYOND)
    builder = ScheduleBuilder(module).blockize("k").rfactor("k", axis=1)
    arrays = {"x": np.arange(64, dtype="float32").reshape(8, 8), "p": np.arange(9, dtype="int32")}
    for version in (module, builder.module):
        v = np.full(64, -1, "float32")
        run(
            version,
            {name: np.zeros((8, 8), "float32") for name in "yz"}
            | arrays
            | {"v": v, "w": v.copy(), "n": 4},
        )
        np.testing.assert_array_equal(v[:8], arrays["x"][:, :4].sum(axis=1))


WIDE = BACKWARDS.replace(
    'vi, vj = T.axis.remap("RS", [i, j])',
    "vi = T.axis.reduce(8, i)\n            vj = T.axis.spatial(8, j)",
)
BEFORE_AND_AFTER = {
    "a block around a reduction": (
        SUM, {"loop": "j"}, ("sum_o", "vi_1"),
        """
for i in T.serial(8):
    with T.block("sum_o"):
        vi_1 = T.axis.spatial(8, i)
        for j in T.serial(8):
            with T.block("sum"):
                vi = T.axis.spatial(8, vi_1)
                vj = T.axis.reduce(8, j)
                with T.init():
                    V[vi] = 0.0
                V[vi] = V[vi] + X[vi, vj]
""",
    ),
}  # fmt: skip
REFUSED = [
    ("blockize.body", TWO_COPIES, {"loop": "i"}),
    ("blockize.dependence", BROKEN_NEST.replace("SRR", "RRR"), {"loop": "j"}),
    ("blockize.mixed", SKEWED_SUM, {"loop": "j"}),
    ("blockize.dependence", BACKWARDS, {"loop": "j"}),
    ("blockize.dependence", WIDE, {"loop": "j"}),
]


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_before_and_after(program, name):
    before, arguments, names, after = BEFORE_AND_AFTER[name]
    require_change(program(before), Step("blockize", arguments), names=names, after=after)


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("blockize", arguments)) == code
