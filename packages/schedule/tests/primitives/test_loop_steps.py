"""Primitives on loops, buffers and annotations keep the result for all sizes."""

from __future__ import annotations

import time

import numpy as np
import pytest
from refused import code_of

from gossamer_ir.analysis.loops_by_name import loops_of
from gossamer_ir.core.build import integer_value
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interpret import run
from gossamer_ir.nodes import Block, For
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics, verify
from gossamer_schedule import ScheduleBuilder, get_loops, replay
from gossamer_testkit import examples


def loop_named(module, name: str) -> For:
    return loops_of(module.functions[0])[name]


@pytest.mark.parametrize("features", [0, 1, 7])
def test_fused_loops_visit_the_same_elements_in_parallel(require_spmm, features):
    builder = ScheduleBuilder(examples.SPMM).reorder("i", "k", "j").fuse("i", "k")
    require_spmm(builder.module, features)
    require_spmm(builder.parallel("i_k").module, features)


def test_three_loops_are_fused_and_split_again(program):
    body = """
for a in T.serial(2):
    for b in T.serial(3):
        for c in T.serial(5):
            with T.block("copy"):
                va, vb, vc = T.axis.remap("SSS", [a, b, c])
                V[va * 15 + vb * 5 + vc] = W[va * 15 + vb * 5 + vc] + X[va, vb]
"""
    module = program(body)
    builder = ScheduleBuilder(module).fuse("a", "b", "c").split("a_b_c", factors=(None, 4))
    assert get_loops(builder.module) == ("a_b_c_0", "a_b_c_1")
    assert outcome(builder.module) == outcome(module)


def test_a_fused_loop_that_swaps_its_parts_is_no_parallel_loop(program):
    module = program("""
for i in T.serial(4):
    for j in T.serial(4):
        with T.block("swap"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi, vj] = X[vj, vi]
""")
    builder = ScheduleBuilder(module).fuse("i", "j")
    assert code_of(builder.parallel, "i_j") == "schedule.parallel.not_proved"


def outcome(module) -> list[list[float]]:
    """All arrays of a `program` after a run."""
    random = np.random.default_rng(5)
    arrays = {name: random.integers(-4, 5, (8, 8)).astype(np.float32) for name in "xyz"}
    arrays |= {name: random.integers(-4, 5, 64).astype(np.float32) for name in "vw"}
    run(verify(module), arrays | {"p": np.arange(9, dtype=np.int32), "n": 7})
    return [array.ravel().tolist() for array in arrays.values()]


@pytest.mark.parametrize("features", [0, 1, 7])
def test_a_reduction_that_has_terms_is_fused_with_what_it_is_for(spmm, require_spmm, features):
    builder = ScheduleBuilder(spmm(features)).decompose_reduction("csrmm", loop="j")
    builder.fuse("j", "k")
    require_spmm(builder.module, features)


def test_an_init_is_not_lost_where_the_reduction_may_be_empty():
    dense = ScheduleBuilder(examples.MATMUL).reorder("i", "l", "j")
    assert code_of(dense.fuse, "l", "j") == "schedule.fuse.not_proved"
    assert dense.decompose_reduction("matmul", loop="l").fuse("l", "j").names == ("l_j",)


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (5, 3), (1, 1)])
@pytest.mark.parametrize("condition", ["", "            T.where(i * 2 < 5)\n"])
def test_a_lifted_loop_does_the_same(sizes, condition):
    text = print_module(examples.NESTED)
    text = text.replace("            for j in", f"{condition}            for j in")
    before = parse_module(text)
    after = ScheduleBuilder(before).lift_loop("j").module
    assert scaled(after, sizes).tolist() == scaled(before, sizes).tolist()


def scaled(module, sizes, **more) -> np.ndarray:
    x = np.arange(sizes[0] * sizes[1], dtype=np.float32).reshape(sizes)
    y = np.full(sizes, 77.0, np.float32)
    names = dict(zip(("m", "n"), sizes, strict=True))
    wanted = {param.name for param in module.functions[0].params}
    arguments = {"x": x, "y": y} | names
    run(verify(module), {name: arguments[name] for name in wanted})
    return y


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("offset", [0, 1])
def test_padded_rows_hold_the_same(rows, offset):
    builder = ScheduleBuilder(examples.STAGED).set_scope("X_shared", scope="global")
    builder.storage_align("X_shared", axis=0, factor=16, offset=offset).pipeline("i")
    builder.split("k", factors=(None, 3)).unroll("k_1")
    expected = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8) * 2
    assert scaled(builder.module, (rows, 8)).tolist() == expected.tolist()


def test_rows_of_unknown_length_are_padded_too(program):
    module = program("L = T.decl_buffer((8, n), 'float32')\nX[0, 0] = L[0, 0]")
    shape = ScheduleBuilder(module).storage_align("L", axis=0, factor=16, offset=3).module
    text = print_module(shape)
    assert "L = T.decl_buffer((8, (n - 3 + 15) // 16 * 16 + 3)," in text


@pytest.mark.parametrize(("factor", "offset"), [(10**8, 0), (10**8, 6), (10**8 + 7, 3)])
def test_a_large_factor_is_found_at_once(program, factor, offset):
    module = program("L = T.decl_buffer((8, 5, 6), 'float32')\nX[0, 0] = L[0, 0, 0]")
    start = time.perf_counter()
    result = ScheduleBuilder(module).storage_align("L", axis=0, factor=factor, offset=offset).module
    (shape,) = (found.shape for found in result.functions[0].buffers if found.name == "L")
    rows = integer_value(shape[1])
    assert 6 * rows % factor == offset
    assert 5 <= rows < 5 + factor
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(("factor", "offset"), [(10**8, 3), (9, 1), (4, 1)])
def test_rows_of_6_elements_have_no_such_offset(program, factor, offset):
    module = program("L = T.decl_buffer((8, 5, 6), 'float32')\nX[0, 0] = L[0, 0, 0]")
    align = ScheduleBuilder(module).storage_align
    code = code_of(align, "L", axis=0, factor=factor, offset=offset)
    assert code == "schedule.storage_align.shape"


def test_rows_of_a_sparse_buffer_are_not_padded():
    module = parse_module("""
@T.prim_func
def copied(x: T.handle, m: T.int64):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(m)
    X = T.sp.match_buffer(x, (I, J), "float32")
    L = T.sp.alloc_buffer((I, J), "float32")
    L[0, 0] = X[0, 0]
""")
    builder = ScheduleBuilder(module)
    found = code_of(builder.storage_align, "L", axis=0, factor=16)
    assert found == "schedule.storage_align.sparse"


@pytest.mark.parametrize("features", [1, 7])
def test_bound_loops_compute_the_same(require_spmm, features):
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 4))
    builder.reorder("i", "k_0", "k_1", "j")
    builder.bind("i", thread="blockIdx.x").bind("k_1", thread="threadIdx.x")
    require_spmm(builder.module, features)
    assert loop_named(builder.module, "k_1").thread == "threadIdx.x"
    assert code_of(builder.bind, "k_0", thread="threadIdx.x") == "schedule.bind.duplicate"


def test_what_is_started_has_as_many_threads_everywhere():
    """The lengths of rows differ between the iterations over rows."""
    builder = ScheduleBuilder(examples.SPMM).bind("i", thread="blockIdx.x")
    assert code_of(builder.bind, "j", thread="blockIdx.y") == "schedule.bind.extent"


def test_threads_of_a_block_combine_the_terms_of_a_reduction(program, require_spmv):
    builder = ScheduleBuilder(examples.SPMV).decompose_reduction("csrmv", loop="j")
    builder.split("j", factors=(None, 4)).bind("j_1", thread="threadIdx.x")
    assert "reassociates" in print_module(builder.module)
    require_spmv(builder.module)


def test_annotations_come_and_go():
    builder = ScheduleBuilder(examples.SPMM).annotate("csrmm", key="origin", value="paper")
    builder.annotate("i", key="unroll", value=4).annotate("i", key="unroll", value=2)
    assert loop_named(builder.module, "i").annotations == (("unroll", 2),)
    builder.unannotate("csrmm", key="origin").unannotate("i", key="unroll")
    assert builder.module == examples.SPMM


def test_annotations_of_iterations_reach_their_block(require_spmm):
    builder = ScheduleBuilder(examples.SPMM_COORDINATE).annotate("csrmm", key="a", value=True)
    require_spmm(builder.module, 3)


# --- unsafe


UNSAFE_STEPS = {
    "unsafe_parallel": (("i",), "parallel(i)"),
    "unsafe_reorder": (("k", "j"), "reorder(k, j)"),
}


@pytest.mark.parametrize("op", UNSAFE_STEPS)
def test_an_unsafe_step_leaves_a_mark_in_module_text_and_trace(op, require_spmm):
    names, mark = UNSAFE_STEPS[op]
    builder = getattr(ScheduleBuilder(examples.SPMM), op)(*names)
    assert ("unsafe", mark) in builder.module.functions[0].annotations
    assert f'"unsafe": "{mark}"' in print_module(builder.module)
    assert builder.trace[-1].op == op
    assert parse_module(print_module(builder.module)) == builder.module
    assert replay(examples.SPMM, builder.trace) == builder.module
    require_spmm(builder.module, 3)


def test_marks_of_several_unsafe_steps_are_kept_in_order(program):
    module = program("""
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("scatter"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[T.int64(P[vi])] = X[vi, vj]
""")
    builder = ScheduleBuilder(module)
    assert code_of(builder.parallel, "i") == "schedule.parallel.not_proved"
    assert code_of(builder.reorder, "j", "i") == "schedule.reorder.not_proved"
    builder.unsafe_reorder("j", "i").unsafe_vectorize("i").unsafe_parallel("j")
    marks = dict(builder.module.functions[0].annotations)
    assert marks == {"unsafe": "reorder(j, i); vectorize(i); parallel(j)"}
    assert diagnostics(builder.module) == ()


# --- sampling


def test_a_replay_repeats_what_was_drawn():
    builder = ScheduleBuilder(examples.SPMM)
    builder.sample_perfect_tile("k", name="t", parts=3, largest=8, seed=5)
    builder.split("k", factors=("$t_0", "$t_1", "$t_2"))
    builder.sample_categorical("grain", candidates=(16, 64, 256), weights=(1, 2, 1), seed=5)
    builder.parallel("i", grain="$grain")
    assert replay(examples.SPMM, builder.trace) == builder.module
    again = ScheduleBuilder.from_json(examples.SPMM, builder.to_json())
    assert (again.module, again.trace) == (builder.module, builder.trace)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("features", [None, 1, 7, 60, 128])
def test_drawn_tiles_are_legal_factors(spmm, require_spmm, features, seed):
    builder = ScheduleBuilder(spmm(features))
    builder.sample_perfect_tile("k", name="t", parts=2, largest=16, seed=seed)
    first, inner = builder.trace[-1].args["decision"]
    assert 1 <= inner <= 16
    assert (first is None) if features is None else (first * inner == features)
    builder.split("k", factors=("$t_0", "$t_1"))
    if features in (None, 7):
        require_spmm(builder.module, 7)


def test_tiles_of_scalable_loops_divide_their_constant_part(spmm):
    builder = ScheduleBuilder(spmm()).split("k", factors=(None, "12 * T.vscale()"))
    builder.sample_perfect_tile("k_1", name="t", parts=2, largest=5, seed=2)
    first, inner = builder.trace[-1].args["decision"]
    assert (first, 12 % inner) == (None, 0)
    builder.split("k_1", factors=("$t_0", "$t_1"))


def test_a_decision_that_does_not_fit_a_loop_leaves_the_first_factor_open(spmm):
    builder = ScheduleBuilder(spmm(8)).sample_perfect_tile("k", name="t", parts=2, decision=(2, 4))
    assert builder.split("k", factors=("$t_0", "$t_1")).trace[0].args["decision"] == (2, 4)
    other = ScheduleBuilder(spmm(10)).replay(builder.trace)
    assert loop_named(other.module, "k_1").extent == loop_named(builder.module, "k_1").extent


def test_different_seeds_draw_different_values():
    drawn = set()
    for seed in range(30):
        builder = ScheduleBuilder(examples.SCALE)
        builder.sample_categorical("t", candidates=(2, 4, 8), weights=(1, 0, 1), seed=seed)
        drawn.add(builder.trace[0].args["decision"])
    assert drawn == {0, 2}


def test_a_value_that_nobody_drew_is_refused():
    builder = ScheduleBuilder(examples.SCALE)
    assert code_of(builder.split, "i", factors=(None, "$t")) == "schedule.sample.no_value"


def test_the_mark_of_a_sum_in_another_order_stays(spmm):
    builder = ScheduleBuilder(spmm()).reorder("j", "k")
    reordered = (
        ScheduleBuilder(examples.ROW_SUM).split("j", factors=(None, 4)).reorder("j_1", "j_0")
    )
    assert ("reassociates", True) not in marks_of(builder.module)
    assert ("reassociates", True) in marks_of(reordered.module)
    with pytest.raises(ScheduleError) as caught:
        reordered.unannotate("row_sum", key="reassociates")
    assert caught.value.code == "schedule.unannotate.needed"


def marks_of(module):
    return {
        mark
        for found in walk(module.functions[0])
        if isinstance(found, Block)
        for mark in found.annotations
    }


EIGHT = """
@T.prim_func
def f(v: T.handle, y: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    V = T.match_buffer(v, (8,), "int64")
    Y = T.match_buffer(y, (8,), "int64")"""
TRIANGLE = """
for j in T.serial(8):
    for k in T.serial(HEADER):
        with T.block("count"):
            BLOCK
            Y[vk] = Y[vk] + 1
"""
READ_BEYOND = {
    "by the value of an iterator": ("j + 1", "vk = T.axis.spatial(8, V[k])"),
    "by a predicate": ("j + 1", "vk = T.axis.spatial(8, k)", "T.where(V[vk] > 1)"),
    "from a start": ("j, j + 1", "vk = T.axis.spatial(8, V[k])"),
    "by a start": ("V[j], V[j] + 1", "vk = T.axis.spatial(8, k)"),
    "by an extent": ("V[j] + 1", "vk = T.axis.spatial(8, k)"),
}


@pytest.mark.parametrize("case", READ_BEYOND)
def test_iterations_beyond_a_split_loop_read_nothing(case):
    header, *lines = READ_BEYOND[case]
    block = ("\n" + " " * 12).join(("vj = T.axis.reduce(8, j)", *lines))
    body = TRIANGLE.replace("HEADER", header).replace("BLOCK", block).replace("\n", "\n    ")
    module = verify(parse_module(EIGHT + body))
    found = []
    for each in (module, ScheduleBuilder(module).split("j", factors=(None, 3)).module):
        arrays = {"v": np.arange(8), "y": np.zeros(8, int)}
        run(each, arrays)
        found.append(arrays["y"].tolist())
    assert found[0] == found[1] != [0] * 8


@pytest.mark.parametrize("init", ["", "with T.init():\n                Y[0] = 0"])
def test_a_loop_that_never_runs_reads_nothing_when_it_is_split(init):
    body = f"""
    for j in T.serial(0):
        with T.block("count"):
            vj = T.axis.reduce(8, V[0] + j)
            {init}
            Y[0] = Y[0] + vj"""
    module = verify(parse_module(EIGHT.replace("(v, (8,)", "(v, (0,)") + body))
    for each in (module, ScheduleBuilder(module).split("j", factors=(2, 3)).module):
        arrays = {"v": np.zeros(0, int), "y": np.ones(8, int)}
        run(each, arrays)
        assert arrays["y"].tolist() == [0 if init else 1] + [1] * 7
