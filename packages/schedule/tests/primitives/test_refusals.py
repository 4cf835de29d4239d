"""Every error code of the primitives, with a smallest program that raises it."""

from __future__ import annotations

import ast
import fnmatch
import re
from pathlib import Path

import cases_of_blocks
import cases_of_buffers
import cases_of_caches
import cases_of_loops
import pytest
from docstring_calls import example_of
from nest_programs import COPY

import gossamer_schedule
from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.script import parse_module
from gossamer_schedule import (
    PRIMITIVES,
    apply,
    cache_read,
    get_blocks,
    get_iterations,
    get_loops,
    replay,
)
from gossamer_testkit import examples

CASES = [
    *cases_of_caches.CASES,
    *cases_of_blocks.CASES,
    *cases_of_buffers.CASES,
    *cases_of_loops.CASES,
    ("annotate.reserved", COPY, "annotate", {"name": "i", "key": "reassociates", "value": True}),
    ("annotate.refused", COPY, "annotate", {"name": "i", "key": "horizontal_fuse", "value": True}),
    ("annotate.no_name", COPY, "annotate", {"name": "nowhere", "key": "a", "value": 1}),
    ("unannotate.no_key", COPY, "unannotate", {"name": "i", "key": "a"}),
    ("sample_categorical.name", COPY, "sample_categorical", {"name": "a b", "candidates": (1,)}),
    ("sample_categorical.candidates", COPY, "sample_categorical", {"name": "a", "candidates": ()}),
    ("sample_categorical.candidates", COPY, "sample_categorical",
     {"name": "a", "candidates": (1, 2), "weights": (0, 0)}),
    ("sample_categorical.decision", COPY, "sample_categorical",
     {"name": "a", "candidates": (1, 2), "decision": 2}),
    ("sample_perfect_tile.name", COPY, "sample_perfect_tile", {"loop": "i", "name": "", "parts": 2}),
    ("sample_perfect_tile.parts", COPY, "sample_perfect_tile", {"loop": "i", "name": "t", "parts": 1}),
    ("sample_perfect_tile.largest", COPY, "sample_perfect_tile",
     {"loop": "i", "name": "t", "parts": 2, "largest": 0}),
    ("sample_perfect_tile.decision", COPY, "sample_perfect_tile",
     {"loop": "i", "name": "t", "parts": 2, "decision": (8,)}),
    ("sample_perfect_tile.decision", COPY, "sample_perfect_tile",
     {"loop": "i", "name": "t", "parts": 2, "decision": (2, None)}),
]  # fmt: skip
NESTED_ITERATION = parse_module("""
@T.prim_func
def shift(x: T.handle, n: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_fixed(n)
    X = T.sp.match_buffer(x, (I, J), "float32")
    with T.sp.iteration([I, J], "SS", "shift") as [i, j]:
        X[i, j] = X[j, i] + 1.0
""")
FUSED_ITERATION = parse_module("""
@T.prim_func
def scale(indptr: T.handle, indices: T.handle, a: T.handle, m: T.int64, n: T.int64, z: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, z), (indptr, indices))
    A = T.sp.match_buffer(a, (I, J), "float32")
    with T.sp.iteration([T.sp.fuse(I, J)], "SS", "scale") as [i, j]:
        A[i, j] = A[i, j] * 2.0
""")
SHARES = """
@T.prim_func
def shares(p: T.handle, q: T.handle, a: T.handle, y: T.handle, m: T.int64, n: T.int64, z: T.int64):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, z), (p, q))
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    S = T.sp.alloc_buffer((I,), "float32")
    with T.sp.iteration([I, J], "SR", "sum") as [i, j]:
        with T.init():
            S[i] = 0.0
        S[i] = S[i] + A[i, j]
    with T.sp.iteration([I, J], "SS", "share") as [k, l]:
        A[k, l] = A[k, l] / S[k]
"""
BETWEEN = (
    '    with T.sp.iteration([I, J], "SS",',
    """    with T.sp.iteration([I], "S", "between") as [h]:
        S[h] = S[h] + Y[h]
    with T.sp.iteration([I, J], "SS",""",
)
INTO = {"iteration": "sum", "into": "share", "var": "k"}
COORDINATE_CASES = [
    *cases_of_caches.MODULE_CASES,
    ("sparse_compute_at.variable", parse_module(SHARES), INTO | {"var": "i"}),
    ("sparse_compute_at.axes", parse_module(SHARES), INTO | {"var": "l"}),
    ("sparse_compute_at.scope", parse_module(SHARES),
     {"iteration": "share", "into": "sum", "var": "i"}),
    ("sparse_compute_at.other_access", parse_module(SHARES.replace(*BETWEEN)), INTO),
    ("sparse_compute_at.init", parse_module(SHARES.replace("S[i] = 0.0", "S[0] = 0.0").replace(
        "S[i] = S[i] +", "S[0] = S[0] +")), INTO),
    ("sparse_compute_at.dependence", parse_module(SHARES.replace("/ S[k]", "/ S[0]")), INTO),
    ("sparse_reorder.order", examples.SPMM_COORDINATE, {"iteration": "csrmm", "order": ("i", "j")}),
    ("sparse_reorder.dependence", examples.SPMM_COORDINATE,
     {"iteration": "csrmm", "order": ("j", "i", "k")}),
    ("sparse_reorder.not_proved", NESTED_ITERATION, {"iteration": "shift", "order": ("j", "i")}),
    ("sparse_reorder.fused", FUSED_ITERATION, {"iteration": "scale", "order": ("j", "i")}),
    ("sparse_fuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("I",)}),
    ("sparse_fuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("I", "K")}),
    ("sparse_fuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("J", "I")}),
    ("sparse_fuse.axes", FUSED_ITERATION, {"iteration": "scale", "axes": ("I", "J")}),
    ("sparse_unfuse.axes", FUSED_ITERATION, {"iteration": "scale", "axes": ("J", "I")}),
    ("sparse_unfuse.axes", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("I", "J")}),
    ("sparse_fuse.chain", examples.SPMM_COORDINATE, {"iteration": "csrmm", "axes": ("J", "K")}),
    ("transform_layout.sparse",
     cache_read(examples.SPMM_POSITION, "csrmm", buffer="A", scope="local").module,
     {"buffer": "A_local", "index_map": "i, j -> j, i"}),
]  # fmt: skip
REPLAY_CASES = [
    ("replay.no_primitive", Step("tile", {})),
    ("replay.arguments", Step("unroll", {})),
    ("replay.arguments", Step("unroll", {"loop": "i", "times": 2})),
    ("replay.arguments", Step("unroll", {"loop": 3})),
    ("replay.arguments", Step("split", {"loop": "i", "factors": "16"})),
]
ANY_STAGE = ("annotate", "sample_categorical", "unannotate")


def code_of(primitive, /, *args, **keywords) -> str:
    with pytest.raises(ScheduleError) as caught:
        primitive(*args, **keywords)
    return caught.value.code.removeprefix("schedule.")


@pytest.mark.parametrize(
    ("code", "body", "op", "arguments"), CASES, ids=[code for code, *_ in CASES]
)
def test_refusals(program, code, body, op, arguments):
    assert code_of(apply, program(body), Step(op, arguments)) == code


@pytest.mark.parametrize(("code", "module", "arguments"), COORDINATE_CASES)
def test_refusals_at_the_coordinate_stage(code, module, arguments):
    op = code.partition(".")[0]
    assert code_of(apply, module, Step(op, arguments)) == code


@pytest.mark.parametrize(("code", "step"), REPLAY_CASES)
def test_refusals_of_traces(code, step):
    assert code_of(replay, examples.SCALE, (step,)) == code


@pytest.mark.parametrize("op", sorted(PRIMITIVES.keys() - set(ANY_STAGE)))
def test_the_wrong_stage_is_refused(program, op):
    module, arguments = example_of(op)
    wrong = program(COPY) if module.stage == "coordinate" else examples.SPMM_COORDINATE
    assert code_of(apply, wrong, Step(op, arguments)) == f"{op}.stage"


@pytest.mark.parametrize("op", sorted(PRIMITIVES))
def test_an_unknown_function_is_refused(op):
    module, arguments = example_of(op)
    found = code_of(apply, module, Step(op, arguments | {"function": "other"}))
    assert found == f"{op}.no_function"


@pytest.mark.parametrize("op", sorted(PRIMITIVES))
@pytest.mark.parametrize("what", ["loop", "loops", "block", "iteration"])
def test_an_unknown_name_is_refused_and_what_exists_is_listed(op, what):
    module, arguments = example_of(op)
    if what not in arguments:
        return
    unknown = (arguments[what][0], "nowhere") if what == "loops" else "nowhere"
    with pytest.raises(ScheduleError, match="'nowhere'") as caught:
        apply(module, Step(op, arguments | {what: unknown}))
    assert caught.value.code == f"schedule.{op}.no_{what.removesuffix('s')}"
    existing = {"block": get_blocks, "iteration": get_iterations}.get(what, get_loops)(module)
    assert ", ".join(f"'{name}'" for name in existing) in str(caught.value)


def test_look_ups_name_what_exists(program):
    module = program(COPY)
    assert get_loops(module) == get_loops(module, "copy") == ("i", "j")
    assert get_blocks(module) == ("copy",)
    assert get_iterations(examples.SPMM_COORDINATE) == ("csrmm",)
    assert code_of(get_loops, module, "nowhere") == "get_loops.no_block"


PINNED_ELSEWHERE = {
    "add_unit_loop.no_name",
    "decompose_padding.not_enclosing",
    "decompose_padding.not_proved",
    "decompose_padding.other_access",
    "decompose_padding.pattern",
    "fission.dependence",
    "fission.not_proved",
    "fission.parts",
    "fission.scope",
    "handle.foreign",
    "handle.invalidated",
    "handle.ambiguous",
    "loop_partition.not_proved",
    "loop_partition.points",
    "loop_partition.text",
    "lower.last",
    "lower.no_passes",
    "lower.stage",
    "parallel.accumulate",
    "parallel.no_reduction",
    "parallel.not_atomic",
    "parallel.parts",
    "reindex_cache_write.shared",
    "sample.no_value",
    "specialize.condition",
    "specialize.init",
    "specialize.no_name",
    "specialize.not_proved",
    "specialize.text",
    "split.depth",
    "storage_align.sparse",
    "tensorize.alias",
    "tensorize.indirect",
    "tensorize.init",
    "tensorize.intrinsic",
    "tensorize.layout",
    "tensorize.match",
    "tensorize.no_intrinsic",
    "tensorize.not_proved",
    "tensorize.predicate",
    "tensorize.store",
    "trace.json",
    "trace.steps",
    "unannotate.needed",
    "undo.steps",
    "unsafe_set_dtype.dtype",
    "unsafe_set_dtype.other_access",
    "unsafe_set_dtype.parameter",
    "vectorize.accumulate",
}
"""These are tested in the files of their primitives and in those of `loops/test_refused_partitions.py`."""
COMMON = {"no_function", "no_loop", "no_block", "no_iteration", "no_buffer", "stage", "kind"}


def refusals_of_source():
    """The code of each error in the source (`*` stands for parts that are only known at run time), and its
    keywords."""
    root = Path(gossamer_schedule.__file__).parent
    for path in root.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "schedule_error":
                text = ast.unparse(call.args[0]).removeprefix("f").strip("'\"")
                code = re.sub(r"{[^}]+}", "*", text.replace("{_NAME}", path.stem))
                yield code, {keyword.arg for keyword in call.keywords}


def test_every_code_has_a_case():
    reasons = {code for code, _ in refusals_of_source() if "." in code}
    codes = {code for code in reasons if code.split(".")[1] not in COMMON}
    cases = {case[0] for case in (*CASES, *COORDINATE_CASES, *REPLAY_CASES)} | PINNED_ELSEWHERE
    pinned = {code for code in cases if code.split(".")[1] not in COMMON}
    assert [code for code in sorted(codes) if not fnmatch.filter(pinned, code)] == []
    assert [code for code in pinned if not any(fnmatch.fnmatch(code, each) for each in codes)] == []
    assert len(pinned) > 30


def test_what_is_not_proved_shows_what_it_needs():
    missing = [
        code
        for code, keywords in refusals_of_source()
        if code.endswith("not_proved") and "needs" not in keywords
    ]
    assert missing == []
