"""Schedules as users write them: one builder from the program to the kernel."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse

import gossamer as gs
from gossamer_ir.errors import ArgumentError, GossamerError, ScheduleError
from gossamer_ir.interchange.records import Schedule
from gossamer_ir.interchange.serialization import loads
from gossamer_schedule import PRIMITIVES, ScheduleBuilder

SPMM = """
@T.prim_func
def spmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
         m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(32)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""
SDDMM = """
@T.prim_func
def sddmm(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
          m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(32)
    A = T.sp.match_buffer(a, (I, K), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, J), "float32")
    with T.sp.iteration([I, J, K], "SSR", "dots") as [i, j, k]:
        with T.init():
            C[i, j] = 0.0
        C[i, j] = C[i, j] + A[i, k] * B[j, k]
"""


def matrix():
    csr = scipy.sparse.random(40, 30, density=0.2, format="csr", rng=np.random.default_rng(3))
    csr.data = np.arange(1, csr.nnz + 1, dtype=np.float32) % 5
    return csr


def require_spmm(kernel, features=32):
    A, rng = matrix(), np.random.default_rng(4)
    B = rng.integers(-3, 4, (30, features)).astype(np.float32)
    C = np.full((40, features), 7, np.float32)
    kernel(a=A.data, b=B, c=C, indptr=A.indptr, indices=A.indices)
    np.testing.assert_array_equal(C, A @ B)


def require_sddmm(kernel):
    csr, rng = matrix(), np.random.default_rng(5)
    A, B = (rng.integers(-3, 4, (rows, 32)).astype(np.float32) for rows in (40, 30))
    C = np.full(csr.nnz, 7, np.float32)
    kernel(a=A, b=B, c=C, indptr=csr.indptr, indices=csr.indices)
    rows = np.repeat(np.arange(40), np.diff(csr.indptr))
    np.testing.assert_array_equal(C, (A[rows] * B[csr.indices]).sum(axis=1))


def lowered(program, stages):
    builder = gs.schedule(program)
    for _ in range(stages):
        builder.lower()
    return builder


PARTS = {
    "rows in groups of four": lambda sch, B, C: sch.loop_partition(
        "j", points=("(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])) // 4 * 4",)
    ).split("j_0", factors=(None, 4)),
    "inits before all rows": lambda sch, B, C: (
        sch.decompose_reduction("csrmm", loop="j").fission("i").parallel("i_0").parallel("i_1")
    ),
    "a loop of one iteration": lambda sch, B, C: sch.add_unit_loop("csrmm").cache_write(
        "csrmm", buffer=C, scope="local"
    ),
    "gathered operands": lambda sch, B, C: sch.reindex("csrmm", buffer=B),
    "indices that are kept": lambda sch, B, C: sch.cache_index("csrmm", scope="local"),
    "a wider sum": lambda sch, B, C: sch.cache_write(
        "csrmm", buffer=C, scope="local"
    ).unsafe_set_dtype(f"{C}_local", dtype="float64"),
}
"""Steps with the names of the buffers that they make."""


def spanning():
    """A builder with steps of all three stages."""
    builder = gs.schedule(SPMM).sparse_reorder("csrmm", order=("i", "j", "k")).lower()
    i, _, k = builder.get_loops("csrmm")
    _, inner = builder.split(k, factors=(None, 8)).names
    return builder.lower().vectorize(inner).parallel(i, grain=64)


def test_a_builder_of_all_stages_goes_to_a_kernel():
    builder = spanning()
    assert [len(steps) for steps in (builder.schedule.coordinate, builder.schedule.position)] == [
        1,
        1,
    ]
    assert [step.op for step in builder.schedule.loop] == ["vectorize", "parallel"]
    require_spmm(gs.compile(SPMM, schedule=builder))
    assert gs.compile(SPMM, schedule=builder) is gs.compile(SPMM, schedule=builder.schedule)


def test_a_trace_of_all_stages_is_data():
    builder = spanning()
    fresh = gs.schedule(SPMM)
    again = fresh.copy().replay(builder.trace)
    assert (again.module, again.trace) == (builder.module, builder.trace)
    names: dict = {}
    exec(builder.to_python(), names)
    assert names["schedule"](fresh).schedule == builder.schedule
    lower = fresh._lower
    read = ScheduleBuilder.from_json(gs.schedule(SPMM).module, builder.to_json(), lower=lower)
    assert read.schedule == builder.schedule


def test_the_command_line_applies_the_trace_of_a_builder(tmp_path, capfd):
    from gossamer.cli.app import app

    builder = spanning()
    (tmp_path / "program.py").write_text(SPMM)
    (tmp_path / "trace.json").write_text(builder.to_json())
    words = ["opt", str(tmp_path / "program.py"), "--trace", str(tmp_path / "trace.json")]
    with pytest.raises(SystemExit) as caught:
        app([*words, "--json"])
    assert caught.value.code in (None, 0)
    assert loads(capfd.readouterr().out) == builder.module


def test_what_is_compiled_is_what_the_builder_shows():
    builder = spanning()
    kernel = gs.compile(builder.module)
    require_spmm(kernel)


def test_an_iteration_is_its_block_and_a_variable_its_loop_after_lowering():
    builder = gs.schedule(SPMM)
    (csrmm,) = builder.get_iterations()
    i, _, _ = builder.sparse_reorder(csrmm, order=("i", "j", "k")).names
    builder.annotate(csrmm, key="note", value=1).lower().lower()
    assert builder.get_loops(csrmm)[0] == builder.parallel(i).names[0] == "i"


def test_a_variable_of_fused_axes_is_the_loop_over_their_elements():
    builder = gs.schedule(SDDMM).sparse_fuse("dots", axes=("I", "J"))
    i, j = builder.names
    builder.lower().lower()
    assert builder.get_loops("dots") == ("i_j", "k")
    assert builder.split(i, factors=(None, 4)).names == ("i_j_0", "i_j_1")
    builder.undo().split(j, factors=(None, 4))
    A, rng = matrix(), np.random.default_rng(4)
    x, y = (rng.integers(-3, 4, (size, 32)).astype(np.float32) for size in (40, 30))
    result = np.empty_like(A.data)
    gs.compile(SDDMM, schedule=builder)(a=x, b=y, c=result, indptr=A.indptr, indices=A.indices)
    rows = np.repeat(np.arange(40), np.diff(A.indptr))
    np.testing.assert_array_equal(result, (x[rows] * y[A.indices]).sum(axis=1))


def test_lowering_is_undone():
    builder = gs.schedule(SPMM).lower()
    (i, *_) = builder.get_loops()
    assert builder.undo().module.stage == "coordinate"
    with pytest.raises(ScheduleError) as caught:
        builder.lower().unroll(i)
    assert caught.value.code == "schedule.handle.foreign"


def test_the_last_stage_is_not_lowered():
    with pytest.raises(ScheduleError, match=r"gossamer\.compile") as caught:
        gs.schedule(SPMM).lower().lower().lower()
    assert caught.value.code == "schedule.lower.last"


def test_a_builder_has_the_intrinsics_of_the_target():
    assert gs.schedule(SPMM)._intrinsics


def test_a_builder_of_a_specialized_program():
    program = SPMM.replace("dense_fixed(32)", "dense_fixed(feat)").replace(
        "nnz: T.int64", "nnz: T.int64, feat: T.int64"
    )
    sizes = {"feat": 32}
    builder = gs.schedule(program, specialize=sizes).lower().lower().vectorize("k")
    require_spmm(gs.compile(program, specialize=sizes, schedule=builder))


def test_wrong_intrinsics_are_refused():
    builder = ScheduleBuilder(gs.schedule(SPMM).lower().lower().module, intrinsics=7)
    with pytest.raises(ScheduleError) as caught:
        builder.tensorize("k", intrinsic="dot")
    assert caught.value.code == "schedule.replay.arguments"


@pytest.mark.parametrize("schedule", ["sch", 7, (), {}, ScheduleBuilder])
def test_what_is_not_a_schedule_is_refused(schedule):
    with pytest.raises(ArgumentError) as caught:
        gs.compile(SPMM, schedule=schedule)
    assert caught.value.code == "compile.schedule"


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("stages", [0, 2])
def test_a_builder_of_another_program_is_refused(steps, stages, tmp_path):
    wider = SPMM.replace("dense_fixed(32)", "dense_fixed(64)")
    builder = lowered(SPMM, stages)
    if steps:
        builder.annotate("csrmm", key="note", value=1)
    for use in (gs.compile, partial(gs.export, directory=tmp_path)):
        with pytest.raises(ScheduleError, match=r"schedule=builder\.schedule") as caught:
            use(wider, schedule=builder)
        assert caught.value.code == "schedule.other_program"
    gs.compile(wider, schedule=builder.schedule)


@pytest.mark.parametrize("stages", [1, 2])
def test_a_builder_of_the_lowered_program_is_taken(stages):
    module = lowered(SPMM, stages).module
    require_spmm(gs.compile(SPMM, schedule=ScheduleBuilder(module).split("k", factors=(None, 8))))
    builder = lowered(SPMM, stages).split("k", factors=(None, 8))
    require_spmm(gs.compile(module, schedule=lowered(SPMM, stages)))
    require_spmm(gs.compile(SPMM, schedule=builder))


def test_the_schedule_of_another_program_is_refused():
    with pytest.raises(ScheduleError) as caught:
        gs.compile(SDDMM, schedule=spanning().schedule)
    assert caught.value.code == "schedule.sparse_reorder.no_iteration"
    require_spmm(gs.compile(SPMM, schedule=Schedule()))


@pytest.mark.parametrize("program", [None, 7, b"x", "no script", [SPMM]])
def test_what_is_not_a_program_is_refused(program):
    with pytest.raises(GossamerError):
        gs.schedule(program)


JUNK = [
    None,
    True,
    7,
    -1,
    2**70,
    1.5,
    "",
    "i",
    "\ud800",
    b"i",
    (),
    ("i",),
    [None],
    {"i": 1},
    object(),
    len,
]


@pytest.mark.parametrize("op", PRIMITIVES)
def test_junk_arguments_give_a_result_or_a_gossamer_error(op):
    """Each argument is replaced in turn, then all at once; a rejected step leaves the builder unchanged."""
    base = gs.schedule(SPMM).lower().lower()
    names = [name for name in PRIMITIVES[op].__annotations__ if name not in ("module", "return")]
    for junk in JUNK:
        tries = [{name: junk} for name in names] + [dict.fromkeys(names, junk)]
        tries += [{"loop": "k", "block": "csrmm", "buffer": "B_data", name: junk} for name in names]
        for keywords in tries:
            builder = base.copy()
            try:
                getattr(builder, op)(**{key: keywords[key] for key in keywords if key in names})
            except GossamerError:
                assert builder.trace == base.trace
        with pytest.raises(GossamerError):
            getattr(base.copy(), op)(junk, junk, junk, junk, junk)


LENGTH = "T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])"


@pytest.mark.parametrize("stages", [1, 2])
def test_rows_of_a_length_that_is_asked_for_are_unrolled(stages):
    builder = lowered(SPMM, stages).loop_version("j", condition=f"{LENGTH} == 6")
    builder.unroll("j_0").parallel("i")
    require_spmm(gs.compile(SPMM, schedule=builder))


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("condition", ["i > 3", f"{LENGTH} < 6"])
@pytest.mark.parametrize("loop", ["j", "k"])
def test_versions_of_a_sampled_product_initialize_rows_of_their_own(stages, condition, loop):
    builder = lowered(SDDMM, stages).loop_version(loop, condition=condition)
    require_sddmm(gs.compile(SDDMM, schedule=builder))


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("name", PARTS)
def test_steps_of_other_compilers_on_a_sparse_product(stages, name):
    buffers = {"B": "B_data", "C": "C_data"} if stages == 2 else {"B": "B", "C": "C"}
    builder = lowered(SPMM, stages)
    PARTS[name](builder, **buffers)
    require_spmm(gs.compile(SPMM, schedule=builder))


PARTS_OF_ROWS = [((None, 8), "j_0"), ((2, None, 4), "j_1")]


@pytest.mark.parametrize("is_decomposed", [False, True])
@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize(("factors", "again"), PARTS_OF_ROWS)
def test_masked_lanes_in_rows_that_are_split_twice(factors, again, stages, is_decomposed):
    """A value that all lanes read is proved in bounds by the condition on the parts of the row, so that it
    needs no mask."""
    program = SPMM.replace("dense_fixed(32)", "dense_fixed(30)")
    builder = lowered(program, stages)
    if is_decomposed:
        (*_, k) = builder.decompose_reduction("csrmm", loop="j").get_loops("csrmm_init")
        builder.split(k, factors=(None, 8)).vectorize(builder.names[1])
    builder.split("j", factors=factors).split(again, factors=(2, None, 4))
    builder.split("k", factors=(None, 8)).vectorize(builder.names[1])
    require_spmm(gs.compile(program, schedule=builder), features=30)


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize(("factors", "again"), PARTS_OF_ROWS)
def test_lanes_of_rows_that_are_split_twice(factors, again, stages):
    builder = lowered(SPMM, stages).reorder("i", "k", "j").split("j", factors=factors)
    lanes = builder.names[-1]
    builder.split(again, factors=(2, None, 4)).vectorize(lanes)
    require_spmm(gs.compile(SPMM, schedule=builder))
