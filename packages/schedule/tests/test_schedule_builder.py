"""The schedule builder: handles, traces as JSON and as Python, errors that show the program."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import gossamer_schedule
from gossamer_ir.core.build import index
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Schedule, Step
from gossamer_ir.nodes import For
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect
from gossamer_schedule import PRIMITIVES, AmbiguousNameWarning, ScheduleBuilder, split
from gossamer_schedule.cursor.handles import forwarded_names
from gossamer_schedule.definition.foreign_names import ARGUMENTS, METHODS
from gossamer_testkit import examples

GENERATOR = Path(__file__).parents[1] / "generate_registry.py"
FOLDER = Path(gossamer_schedule.__file__).parent / "primitives"


def code_of(primitive, /, *args, **keywords) -> str:
    with pytest.raises(ScheduleError) as caught:
        primitive(*args, **keywords)
    return caught.value.code


def tiled() -> ScheduleBuilder:
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 2, 4))
    return builder.reorder("i", "k_0", "j", "k_1", "k_2").unroll("k_1")


def test_every_primitive_is_a_documented_method():
    for name, primitive in PRIMITIVES.items():
        assert getattr(ScheduleBuilder, name).__doc__ == primitive.__doc__ is not None


def test_the_lists_of_primitives_follow_from_the_folder():
    spec = importlib.util.spec_from_file_location("generate_registry", GENERATOR)
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert len(PRIMITIVES) == len(generator.primitives())
    for path, text in generator.files().items():
        assert path.read_text() == text, "run python packages/schedule/generate_registry.py"


def test_every_module_of_primitives_is_registered():
    for path in FOLDER.rglob("*.py"):
        is_helper = path.stem == "__init__" or path.parent.name == "accumulation"
        assert (path.stem in PRIMITIVES) is not is_helper, path


def test_every_primitive_is_in_the_table_of_the_readme():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    rows = "".join(line for line in readme.splitlines() if line.startswith("| `"))
    assert [name for name in PRIMITIVES if f"`{name}" not in rows] == []


def test_handles_follow_a_loop_that_is_split_twice():
    builder = ScheduleBuilder(examples.SPMM)
    _, _, k = builder.get_loops("csrmm")
    outer, inner = builder.split(k, factors=(None, 8)).names
    builder.split(inner, factors=(2, 4)).parallel("i")
    assert forwarded_names(k, builder.program, builder._results) == ("k_0", "k_1_0", "k_1_1")
    assert builder.unroll("k_1_0").reorder("i", outer, "j").trace[-1].args["loops"] == (
        *("i", "k_0", "j"),
    )


def test_a_handle_of_several_loops_is_refused_and_they_are_listed():
    builder = ScheduleBuilder(examples.SPMM)
    (*_, k) = builder.get_loops()
    builder.split(k, factors=(None, 8))
    assert code_of(builder.unroll, k) == "schedule.handle.several"
    with pytest.raises(ScheduleError, match="'k_0', 'k_1'"):
        builder.unroll(k)


def test_a_handle_of_what_is_gone_is_refused(spmm):
    builder = ScheduleBuilder(spmm(8)).cache_write("csrmm", buffer="C", scope="local")
    row = builder.get_loops("csrmm_C_local")[0]
    builder.reverse_compute_at("csrmm_C_local", loop="i")
    assert code_of(builder.unroll, row) == "schedule.handle.gone"


def test_a_name_that_is_used_anew_is_not_what_the_handle_stood_for(spmm):
    builder = ScheduleBuilder(spmm(8)).split("k", factors=(2, 4))
    first = builder.names[0]
    builder.split("k_0", factors=(1, 2)).split("i", factors=(None, 3))
    assert forwarded_names(first, builder.program, builder._results) == ("k_0_0", "k_0_1")


def test_a_trace_as_json_makes_the_same_module_again():
    builder = tiled()
    again = ScheduleBuilder.from_json(examples.SPMM, builder.to_json())
    assert (again.module, again.trace) == (builder.module, builder.trace)


def test_a_trace_as_python_makes_the_same_module_again():
    builder = tiled()
    names: dict = {}
    exec(builder.to_python(), names)
    assert names["schedule"](ScheduleBuilder(examples.SPMM)).trace == builder.trace


@pytest.mark.parametrize(
    "text",
    ["", "{}", '[{"op": 1, "args": {}}]', '[{"op": "split"}]', "\ud800", b"", b"\xff", None, 7, []],
)
def test_text_that_is_no_trace_is_refused(text):
    assert code_of(ScheduleBuilder.from_json, examples.SPMM, text) == "schedule.trace.json"


@pytest.mark.parametrize(
    ("text", "shown"), [(3, "3"), (None, "a value of type NoneType"), ([], "[]")]
)
def test_a_trace_that_is_neither_text_nor_bytes_is_named(text, shown):
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder.from_json(examples.SPMM, text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == f"The trace is {shown}; expected JSON as text or bytes."


def test_show_prints_the_program_and_the_steps():
    shown = tiled().show()
    assert "for k_1 in T.unroll(2):" in shown
    assert "sch.reorder('i', 'k_0', 'j', 'k_1', 'k_2')" in shown


def test_a_refusal_leaves_the_builder_as_it_was():
    builder = tiled()
    before = builder.module
    assert code_of(builder.parallel, "j") == "schedule.parallel.race"
    assert builder.module is before
    assert len(builder.trace) == 3


def test_a_refusal_shows_the_function_with_the_place_underlined(spmm):
    with pytest.raises(ScheduleError) as caught:
        ScheduleBuilder(spmm(4)).vectorize("i")
    lines = str(caught.value).splitlines()
    at = next(number for number, line in enumerate(lines) if "^^^" in line)
    assert lines[at - 1].strip() == "for i in T.serial(m):"
    assert lines[at] == lines[at - 1][:4] + "^" * len("for i in T.serial(m):")
    assert any("def spmm(" in line for line in lines)


def test_a_race_is_shown_by_two_iterations(program):
    module = program("""
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("diagonals"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vi + vj] = X[vi, vj]
""")
    with pytest.raises(ScheduleError, match=r"\(i = 0, j = 1\) and \(i = 1, j = 0\)") as caught:
        ScheduleBuilder(module).parallel("i")
    assert caught.value.code == "schedule.parallel.race"


def test_what_is_not_proved_shows_the_condition(program):
    module = program("""
for i in T.serial(8):
    with T.block("scatter"):
        vi = T.axis.spatial(8, i)
        V[T.int64(P[vi])] = W[vi]
""")
    needed = r"Needed: T.int64\(P\[i\]\) != T.int64\(P\[i_other\]\) wherever i != i_other\."
    with pytest.raises(ScheduleError, match=needed) as caught:
        ScheduleBuilder(module).parallel("i")
    assert caught.value.code == "schedule.parallel.not_proved"


def test_look_ups_follow_the_data():
    builder = ScheduleBuilder(examples.STAGED)
    assert builder.get_producers("scale") == builder.get_child_blocks("j") == ("fetch",)
    assert builder.get_consumers("fetch") == builder.get_child_blocks("k") == ("scale",)
    assert builder.get_producers("fetch") == builder.get_consumers("scale") == ()
    (fetch,) = builder.get_producers("scale")
    assert builder.get_loops(fetch) == ("i", "j")
    assert code_of(builder.get_producers, "nowhere") == "schedule.get_producers.no_block"
    assert code_of(builder.get_child_blocks, "nowhere") == "schedule.get_child_blocks.no_name"


def test_a_trace_is_read_from_bytes_too():
    builder = tiled()
    again = ScheduleBuilder.from_json(examples.SPMM, builder.to_json().encode())
    assert again.module == builder.module


@pytest.mark.parametrize("module", ["def f(): pass", None, 7, b"", Step("split", {})])
def test_what_is_not_a_module_is_refused(module):
    assert code_of(ScheduleBuilder, module) == "schedule.module"
    assert code_of(split, module, "i", factors=(2,)) == "schedule.module"


@pytest.mark.parametrize("trace", ["[]", None, 7, [{"op": "unroll"}], ("unroll",)])
def test_what_is_not_a_trace_is_refused(trace):
    assert code_of(ScheduleBuilder(examples.SPMM).replay, trace) == "schedule.trace.steps"


WRONG = [
    ("split", ("k",), {"factors": 8}),
    ("split", ("k",), {"factors": "8"}),
    ("split", ("k",), {"factors": (None, 2.5)}),
    ("split", ("k",), {"factors": (None, True)}),
    ("split", ("k",), {"factors": {8}}),
    ("split", (7,), {"factors": (None, 8)}),
    ("split", ("k",), {}),
    ("split", ("k", (None, 8)), {}),
    ("split", ("k",), {"loop": "k", "factors": (None, 8)}),
    ("split", ("k",), {"factors": (None, 8), "function": 7}),
    ("split", ("k",), {"factors": np.array([2.0, 4.0])}),
    ("reorder", ("k", 7), {}),
    ("reorder", (["k", "j"],), {}),
    ("unroll", (None,), {}),
    ("unroll", ("k",), {"intrinsics": ()}),
    ("unroll", ("k",), {"module": 7}),
    ("bind", ("k",), {"thread": b"threadIdx.x"}),
    ("annotate", ("k",), {"key": "note", "value": object()}),
]


@pytest.mark.parametrize(("op", "args", "keywords"), WRONG)
def test_arguments_of_wrong_kinds_are_refused(op, args, keywords):
    builder = ScheduleBuilder(examples.SPMM)
    assert code_of(getattr(builder, op), *args, **keywords) == "schedule.replay.arguments"
    assert builder.trace == ()


@pytest.mark.parametrize("factors", [[None, 8], (None, np.int64(8)), [None, np.uint8(8)]])
def test_lists_and_integers_of_numpy_are_taken(factors):
    plain = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 8))
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=factors)
    assert (builder.module, builder.trace) == (plain.module, plain.trace)
    assert split(examples.SPMM, "k", factors=factors).module == plain.module
    assert ScheduleBuilder.from_json(examples.SPMM, builder.to_json()).module == plain.module


def test_a_copy_goes_on_by_itself():
    builder = tiled()
    other = builder.copy().parallel("i")
    assert len(other.trace) == len(builder.trace) + 1
    assert builder.parallel("i").module == other.module


def test_a_handle_is_followed_in_a_copy_too():
    builder = ScheduleBuilder(examples.SPMM)
    (*_, k) = builder.get_loops()
    inner = builder.split(k, factors=(None, 8)).names[1]
    other = builder.copy().split(inner, factors=(2, 4))
    assert other.unroll(other.names[0]).trace[-1].args == {"loop": "k_1_0"}
    assert builder.unroll(inner).trace[-1].args == {"loop": "k_1"}
    assert code_of(builder.unroll, other.names[0]) == "schedule.handle.foreign"


def test_steps_are_undone():
    builder = tiled()
    before, trace = builder.module, builder.trace
    assert builder.parallel("i").undo().module is before
    assert builder.trace == trace
    assert builder.undo(3).module is examples.SPMM
    assert builder.undo(0).trace == ()
    assert builder.split("k", factors=(None, 8)).names == ("k_0", "k_1")


@pytest.mark.parametrize("steps", [4, -1, None, "1", 1.0, True])
def test_steps_that_were_not_taken_are_not_undone(steps):
    builder = tiled()
    assert code_of(builder.undo, steps) == "schedule.undo.steps"
    assert len(builder.trace) == 3


def test_a_handle_of_a_step_that_was_undone_is_refused():
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 8))
    inner = builder.names[1]
    builder.undo().split("k", factors=(2, None, 8))
    assert builder.names[1] == inner
    assert code_of(builder.unroll, inner) == "schedule.handle.foreign"


def test_a_handle_of_another_program_is_refused():
    (i, *_) = ScheduleBuilder(examples.ROW_SUM).get_loops()
    assert code_of(ScheduleBuilder(examples.SPMM).parallel, i) == "schedule.handle.foreign"


def test_a_handle_is_copied_as_text():
    (i, *_) = ScheduleBuilder(examples.SPMM).get_loops()
    assert pickle.loads(pickle.dumps(i)) == copy.deepcopy(i) == "i"


TWO_NESTS = """
@T.prim_func
def two(x: T.handle, y: T.handle, m: T.int64) -> None:
    X = T.match_buffer(x, (m, 64), "float32")
    Y = T.match_buffer(y, (m, 64), "float32")
    for i in T.serial(m):
        for k in T.serial(64):
            with T.block("double"):
                vi, vk = T.axis.remap("SS", [i, k])
                Y[vi, vk] = X[vi, vk] * 2.0
    for i_1 in T.serial(m):
        for k_1 in T.serial(64):
            with T.block("add"):
                wi, wk = T.axis.remap("SS", [i_1, k_1])
                Y[wi, wk] = Y[wi, wk] + 1.0
"""


def test_a_text_that_may_mean_two_loops_is_warned_about():
    builder = ScheduleBuilder(parse_module(TWO_NESTS)).split("k", factors=(None, 8))
    assert builder.names == ("k_0", "k_1_1")
    with pytest.warns(
        AmbiguousNameWarning, match=r"'k_1' is .* before split made 'k_1_1'"
    ) as caught:
        builder.vectorize("k_1")
    assert caught[0].filename == __file__
    assert builder.trace[-1].args == {"loop": "k_1"}


def test_a_handle_and_a_trace_mean_one_loop():
    program = parse_module(TWO_NESTS)
    builder = ScheduleBuilder(program).split("k", factors=(None, 8))
    _, k = builder.get_loops("add")
    builder.split(k, factors=(None, 4)).vectorize(builder.names[1])
    assert builder.trace[-1].args == {"loop": "k_1_1_1"}
    assert ScheduleBuilder.from_json(program, builder.to_json()).module == builder.module


def test_a_loop_that_is_gone_is_not_warned_about():
    builder = ScheduleBuilder(examples.SPMM).split("k", factors=(None, 8))
    builder.split("k_1", factors=(None, 4)).unroll("k_1_1")
    assert builder.trace[-1].args == {"loop": "k_1_1"}


FUSED = """
@T.prim_func
def scale(a: T.handle, indptr: T.handle, indices: T.handle, m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "scale") as [i, j]:
        A[i, j] = A[i, j] * 2.0
"""


def test_a_builder_without_passes_does_not_lower():
    assert code_of(ScheduleBuilder(parse_module(FUSED)).lower) == "schedule.lower.no_passes"
    assert code_of(ScheduleBuilder(examples.SPMM).lower) == "schedule.lower.last"
    trace = '[{"op": "lower_buffers", "args": {}}]'
    assert code_of(ScheduleBuilder.from_json, examples.SPMM, trace) == "schedule.lower.stage"


NAMES_ELSEWHERE = """
mod state trace func_working_on work_on copy seed fork_seed show get get_sref remove_rv
sample_categorical sample_perfect_tile sample_partitioned_tile sample_compute_location get_block
get_sblock get_loops get_child_blocks get_producers get_consumers get_output_blocks merge fuse split
loop_partition reorder reorder_block_iter_var add_unit_loop parallel vectorize bind unroll cache_read
cache_write reindex_cache_read reindex_cache_write cache_inplace cache_index reindex read_at write_at
compute_at reverse_compute_at compute_inline reverse_compute_inline fuse_reduction_epilogue
decompose_reduction rfactor storage_align set_scope unsafe_set_dtype blockize tensorize annotate
unannotate transform_layout transform_block_layout transform_sblock_layout set_axis_separator
decompose_padding can_decompose_padding pad_einsum rolling_buffer enter_postproc
unsafe_hide_buffer_access annotate_buffer_access annotate_block_access func script
set_block_filter unset_block_filter lift_loop reverse_cache_read reverse_cache_write match_to_alloc
get_sparse_iteration get_sp_iters sparse_reorder sparse_fuse hide_buffer_access
simplify rename make_instr insert_pass insert_noop_call delete_pass reorder_stmts parallelize_loop
commute_expr left_reassociate_expr rewrite_expr bind_expr extract_subproc inline replace replace_all
call_eqv set_precision set_window set_memory bind_config delete_config write_config resize_dim
expand_dim rearrange_dim divide_dim mult_dim unroll_buffer lift_alloc sink_alloc autolift_alloc
bound_alloc delete_buffer reuse_buffer inline_window stage_window stage_mem divide_with_recompute
divide_loop mult_loops join_loops cut_loop shift_loop reorder_loops merge_writes split_write
fold_into_reduce inline_assign lift_reduce_constant fission fission_after autofission remove_loop
add_loop unroll_loop lift_scope lift_if eliminate_dead_code specialize add_unsafe_guard proc
tile serial atomic allow_race_conditions compute_root compute_with store_at store_root hoist_storage
hoist_storage_root store_in fold_storage ring_buffer align_storage align_bounds reorder_storage bound
bound_extent set_estimate set_estimates partition prefetch gpu gpu_blocks gpu_threads gpu_lanes
gpu_tile in_ clone_in update memoize print_loop_nest realize divide pos precompute parallelize
"""
"""All public names of TVM's schedule and of SparseTIR's (their `tir/schedule/schedule.py`), of Exo's
operators (`API_scheduling.py`), and most of Halide's and TACO's."""


@pytest.mark.parametrize("name", NAMES_ELSEWHERE.split())
def test_each_name_of_another_compiler_is_there_or_has_a_hint(name):
    builder = ScheduleBuilder(examples.SPMM)
    assert hasattr(builder, name) != (name in METHODS)
    if name in METHODS:
        with pytest.raises(ScheduleError) as caught:
            getattr(builder, name)
        assert caught.value.diagnostics[0].hint == METHODS[name]
        assert caught.value.code == "schedule.builder.unknown"


def test_a_primitive_is_shown_with_the_module_that_it_takes():
    shown = inspect.signature(PRIMITIVES["unroll"])
    assert list(shown.parameters) == ["module", "loop", "function"]
    assert (shown.parameters["module"].annotation, shown.return_annotation) == ("Module", "Result")


def test_a_step_records_the_decision_and_no_defaults():
    drawn = PRIMITIVES["sample_categorical"](
        examples.SCALE, "t", candidates=[2, 4], seed=5, function=None
    )
    assert list(drawn.step.args) == ["name", "candidates", "decision"]
    assert drawn.step.args["candidates"] == (2, 4)


STEP = re.compile(r"(?<![\w.])(\w+)\(([^()]*)")


@pytest.mark.parametrize("name", METHODS)
def test_a_hint_names_steps_and_arguments_that_exist(name):
    for step, arguments in STEP.findall(METHODS[name]):
        assert hasattr(ScheduleBuilder, step) or step == "ScheduleBuilder"
        known = inspect.signature(getattr(ScheduleBuilder, step, ScheduleBuilder)).parameters
        assert {*re.findall(r"(\w+)=", arguments)} <= {*known}


def test_what_has_a_hint_does_not_exist():
    builder = ScheduleBuilder(examples.SPMM)
    assert [name for name in METHODS if hasattr(builder, name)] == []
    assert [op for op, _ in ARGUMENTS if op not in PRIMITIVES] == []


def test_a_misspelled_name_has_a_hint():
    builder = ScheduleBuilder(examples.SPMM)
    with pytest.raises(ScheduleError, match=r"Did you mean vectorize\?"):
        _ = builder.vectorise
    with pytest.raises(ScheduleError, match=r"Primitives are .*, align, annotate"):
        _ = builder.quux


AS_IN_TVM = [
    ("bind", ("k", "threadIdx.x"), {}, r"Write bind\('k', thread='threadIdx.x'\)\."),
    ("bind", ("k",), {"thread_axis": "threadIdx.x"}, "It is called thread."),
    ("split", ("k", [None, 8]), {}, r"Write split\('k', factors=\[None, 8\]\)\."),
    ("compute_at", ("csrmm", "i"), {"preserve_unit_loops": True}, "compute_at takes 1 argument by"),
    ("compute_at", ("csrmm",), {"loop": "i", "preserve_unit_loops": True}, "are always kept"),
    ("cache_read", ("csrmm", 0, "shared"), {}, "addressed by its name, not by its place"),
    (
        "cache_read",
        ("csrmm",),
        {"buffer": 0, "scope": "shared"},
        "addressed by its name: buffer='B'",
    ),
    ("storage_align", ("csrmm", 0, 0, 32, 8), {}, "addressed by its name, without a block"),
    ("rfactor", ("j",), {"factor_axis": 1}, "Did you mean|It is called axis"),
    ("sample_perfect_tile", ("k",), {"n": 2}, "It is called parts"),
    ("transform_layout", ("C",), {"index_map": lambda i, j: (j, i)}, "It is a text such as"),
    ("vectorize", ("k",), {"accumlate": "atomic"}, "Did you mean 'accumulate'"),
]


@pytest.mark.parametrize(("op", "args", "keywords", "hint"), AS_IN_TVM)
def test_calls_as_in_tvm_have_a_hint(op, args, keywords, hint):
    with pytest.raises(ScheduleError, match=hint) as caught:
        getattr(ScheduleBuilder(examples.SPMM), op)(*args, **keywords)
    assert caught.value.code == "schedule.replay.arguments"


SCATTERED = """
@T.prim_func
def scatter(p: T.handle, x: T.handle, y: T.handle, n: T.int64, m: T.int64) -> None:
    P = T.match_buffer(p, (n,), "int32")
    X = T.match_buffer(x, (n, 8), "float32")
    Y = T.match_buffer(y, (m,), "float32")
    T.assume(in_range(P, 0, m))
    for i in T.serial(n):
        for j in T.serial(8):
            with T.block("sum"):
                vi, vj = T.axis.remap("SR", [i, j])
                Y[T.int64(P[vi])] = Y[T.int64(P[vi])] + X[vi, vj]
"""


def test_what_has_no_init_is_hinted_to_be_cached_by_iterators():
    module = parse_module(SCATTERED)
    with pytest.raises(ScheduleError, match="or apply reindex_cache_write") as caught:
        ScheduleBuilder(module).cache_write("sum", buffer="Y", scope="local")
    assert caught.value.code == "schedule.cache_write.element"
    ScheduleBuilder(module).reindex_cache_write("sum", buffer="Y", scope="local")


def test_parts_of_a_sum_are_lanes_as_rows_and_as_columns():
    for axis in (0, 1):
        builder = ScheduleBuilder(examples.ROW_SUM).split("j", factors=(None, 4))
        builder.rfactor("j_1", axis=axis).vectorize("j_1")
        kinds = [(loop.var, loop.kind) for loop in collect(For, builder.module)]
        assert ("j_1", "vectorized") in kinds
        buffers = {found.name: found for found in builder.module.functions[0].buffers}
        assert buffers["Y_rf"].shape[axis] == index(4)


def test_a_builder_gives_its_schedule():
    assert tiled().schedule == Schedule(loop=tiled().trace)
    assert ScheduleBuilder(examples.SPMM).schedule == Schedule()
