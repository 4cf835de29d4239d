"""The names that rules trace with are those that the primitives give."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gossamer_schedule.rules
from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.specialize import specialize
from gossamer_schedule import ScheduleBuilder, fuse, get_loops
from gossamer_schedule.rules.steps.trace_builder import TraceBuilder
from gossamer_schedule.rules.steps.vector_loops import VectorLoops, VectorTiles

PRODUCT = specialize(
    parse_module("""
@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64,
            f: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    A = T.match_buffer(a, (nnz,), "float32")
    B = T.match_buffer(b, (n, f), "float32")
    C = T.match_buffer(c, (m, f), "float32")
    P = T.match_buffer(p, (m + 1,), "int64")
    Q = T.match_buffer(q, (nnz,), "int64")
    T.assume(in_range(P, 0, nnz + 1))
    T.assume(monotone(P))
    T.assume(in_range(Q, 0, n))
    for i in T.serial(m):
        for j in T.serial(P[i + 1] - P[i]):
            for k in T.serial(f):
                with T.block("product"):
                    vi, vj, vk = T.axis.remap("SRS", [i, j, k])
                    with T.init():
                        C[vi, vk] = 0.0
                    C[vi, vk] = C[vi, vk] + A[P[vi] + vj] * B[Q[P[vi] + vj], vk]
"""),
    {"f": 40},
)


def applied(trace, *, module=PRODUCT):
    """Return the names that the primitive of each step gives."""
    builder = ScheduleBuilder(module)
    names = []
    for step in trace.steps:
        builder.replay((step,))
        names.append(tuple(map(str, builder.names)))
    return names


def test_split_returns_the_loops_of_the_primitive():
    trace = TraceBuilder()
    loops = trace.split("k", factors=(None, 2, 8))
    assert applied(trace) == [loops]


def test_caches_and_inits_return_the_nests_of_the_primitives():
    trace = TraceBuilder()
    copy = trace.cache_write("product", buffer="C", scope="local", elements=("i", "k"))
    init = trace.decompose_reduction("product", loop="j", elements=("k",))
    cached, decomposed = applied(trace)
    assert cached == (copy.buffer, copy.block, *copy.loops.values())
    assert decomposed == (init.block, *init.loops.values())


def test_a_cache_whose_name_is_taken_is_numbered_as_the_primitive_numbers_it():
    text = print_module(PRODUCT).replace("m: T.int64", "C_local: T.int64, m: T.int64", 1)
    trace = TraceBuilder(["C_local"])
    copy = trace.cache_write("product", buffer="C", scope="local", elements=("i", "k"))
    ((made, *_),) = applied(trace, module=parse_module(text))
    assert copy.buffer == made == "C_local_1"


def test_partial_results_and_copied_regions_return_the_names_of_the_primitives():
    trace = TraceBuilder()
    _, position = trace.split("j", factors=(None, 4))
    partial = trace.rfactor("product", buffer="C", loop=position, elements=("i", "k"))
    copy = trace.cache_region("product_rf", buffer="B", loop="i", scope="local", ndim=2)
    _, factored, cached = applied(trace)
    assert {partial.block, partial.buffer, *partial.combining.loops.values()} <= {*factored}
    assert cached == ("B_local", copy.block, *copy.loops)


@pytest.mark.parametrize("number", ["", "_1"])
def test_names_that_are_taken_are_numbered_as_primitives_number_them(number):
    """The second of two iterations that have a copy of one operand, and partial results of one output."""
    taken = [f"{name}{number}" for name in ("C_rf", "B_local", "B_0_c", "k_0", "j_1_c")]
    declared = ", ".join(f"{name}: T.int64" for name in taken)
    text = print_module(PRODUCT).replace("m: T.int64", f"{declared}, m: T.int64")
    trace = TraceBuilder(taken)
    _, position = trace.split("j", factors=(None, 4))
    partial = trace.rfactor("product", buffer="C", loop=position, elements=("i", "k"))
    copy = trace.cache_region("product_rf", buffer="B", loop="i", scope="local", ndim=2)
    loops = trace.split("k", factors=(5, 8))
    _, factored, cached, split = applied(trace, module=parse_module(text))
    assert {partial.block, partial.buffer, *partial.combining.loops.values()} <= {*factored}
    assert (cached[1:], split) == ((copy.block, *copy.loops), loops)
    assert (partial.buffer == "C_rf_1", loops[0] == "k_0_1") == (not number, not number)


def test_accumulators_return_the_loops_that_initialize_and_copy_a_tile():
    trace = TraceBuilder()
    loops = trace.split_in_vectors("k", VectorTiles(1, 3, 16, is_exact=False))
    accumulator = trace.accumulate_locally(
        "product",
        buffer="C",
        holder="i",
        reduction="j",
        inside=(loops.vector, loops.lane),
        elements=("k",),
    )
    module = ScheduleBuilder(PRODUCT).replay(trace.steps).module
    init = accumulator.init.vectors(loops)
    assert get_loops(module, "product_init") == ("i", init.vector, init.lane)
    assert get_loops(module, "product_C_local") == ("i", accumulator.copy.loops["k"])


def test_loops_of_one_iteration_are_not_made():
    trace = TraceBuilder()
    assert trace.split_in_vectors("k", VectorTiles(1, 1, 8, is_exact=True)).lane == "k"
    assert trace.steps == ()
    loops = trace.split_in_vectors("k", VectorTiles(2, 1, 20, is_exact=True))
    assert loops == VectorLoops("k_0", None, "k_1")
    assert applied(trace) == [(loops.tile, loops.lane)]


def test_fused_variables_have_the_name_of_fused_loops():
    trace = TraceBuilder()
    module = ScheduleBuilder(PRODUCT).split("k", factors=(5, 8)).module
    loop = trace.sparse_fuse("it", axes=("K", "L"), vars=("k_0", "k_1"))
    assert trace.steps == (Step("sparse_fuse", {"iteration": "it", "axes": ("K", "L")}),)
    assert fuse(module, "k_0", "k_1").names == (loop,)


def test_an_adopted_split_frees_the_name_of_its_loop():
    trace = TraceBuilder(["j_1", "j"])
    planned = TraceBuilder(trace.names)
    assert planned.split("j_1", factors=(None, 8)) == ("j_1_0", "j_1_1")
    planned.decide("vectors", "they are contiguous")
    trace.adopt(planned.decisions, names=planned.names)
    assert trace.split("j", factors=(None, 8)) == ("j_0", "j_1")


def test_fused_loops_and_caches_have_the_names_of_the_primitives():
    trace, builder = TraceBuilder("ijk"), ScheduleBuilder(PRODUCT)
    made = builder.cache_read("product", buffer="B", scope="local").names
    cached = trace.cache_read("product", buffer="B", scope="local", elements="ijk")
    assert {cached.buffer, cached.block, *cached.loops.values()} == {*made}
    assert builder.fuse(loops=("j_c", "k_c")).names == (trace.fuse("j_c", "k_c"),)


NAMELESS = {"align", "annotate", "bind", "parallel", "prefetch", "reverse_compute_at", "set_scope"}
NAMELESS |= {"compute_at", "pipeline", "store_nontemporal"}
"""Primitives that make no names, for which a `TraceBuilder` has no method."""


def test_rules_record_no_step_that_makes_names():
    """These have a method, which knows the names, so that schedules of later iterations get others."""
    (folder,) = gossamer_schedule.rules.__path__
    recorded = set()
    for path in {*Path(folder).rglob("*.py")} - {*Path(folder).rglob("trace_builder.py")}:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and getattr(node.value, "attr", "") == "record":
                recorded.add(node.attr)
    assert recorded == NAMELESS


def test_a_step_is_recorded_by_the_arguments_that_are_given():
    trace = TraceBuilder()
    trace.record.parallel("i", grain=8)
    trace.record.fuse("i", "j")
    trace.record.split("k", factors=(None, 4))
    assert trace.steps == (
        Step("parallel", {"loop": "i", "grain": 8}),
        Step("fuse", {"loops": ("i", "j")}),
        Step("split", {"loop": "k", "factors": (None, 4)}),
    )


def test_only_the_trace_builder_asks_how_primitives_name_what_they_make():
    (folder,) = gossamer_schedule.rules.__path__
    asking = {path.name for path in Path(folder).rglob("*.py") if "made_names" in path.read_text()}
    assert asking == {"trace_builder.py"}


def test_rules_append_no_suffixes_to_names():
    """A name that a primitive or lowering makes comes from a `TraceBuilder` or from the function that makes
    it."""
    (folder,) = gossamer_schedule.rules.__path__
    paths = [*Path(folder).rglob("*.py")]
    assert len(paths) > 20
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                texts = [part.value for part in node.values if isinstance(part, ast.Constant)]
                assert not any(text.startswith("_") for text in texts), (path.name, texts)
