"""Values that are defined only in some executions of a statement: under conditions, in loops that may be
empty, or in an earlier iteration. No primitive loses them or reads undefined ones.
"""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.errors import ScheduleError
from gossamer_ir.interchange.records import Step
from gossamer_ir.interpret import run
from gossamer_ir.script import parse_module
from gossamer_ir.verify import verify
from gossamer_schedule import apply

LOCAL = {"buffer": "V", "scope": "local"}


def outcome(module, size):
    random = np.random.default_rng(5)
    arrays = {name: random.integers(-4, 5, (8, 8)).astype(np.float32) for name in "xyz"}
    arrays |= {name: random.integers(-4, 5, 64).astype(np.float32) for name in "vw"}
    indices = {"p": np.array([5, 0, 7, 5, 3, 1, 0, 6, 2], np.int32)}
    run(verify(module), arrays | indices | {"n": size})
    return arrays


def require_same(module, step):
    changed = apply(module, step).module
    for size in (0, 4):
        before, after = outcome(module, size), outcome(changed, size)
        for name in before:
            assert not np.isnan(before[name]).any()
            np.testing.assert_array_equal(after[name], before[name])


def require_refused(module, step, code):
    outcome(module, 4)
    with pytest.raises(ScheduleError) as caught:
        apply(module, step)
    assert caught.value.code == f"schedule.{step.op}.{code}"


STORED_SOMETIMES = {
    "under a condition on a value": """
if W[vi] > T.float32(0):
    V[vi] = W[vi]
""",
    "in one branch of two": """
if W[vi] > T.float32(0):
    V[vi] = W[vi]
else:
    Y[vi, 0] = 1.0
""",
    "in a loop that ends at once": """
c[0] = P[vi]
while c[0] > 4:
    V[vi] = W[vi]
    c[0] = c[0] - 1
""",
    "in a loop without iterations": """
for k in T.serial(T.int64(P[vi]) - 4):
    V[vi] = W[vi + k]
""",
    "in a block under a condition": """
for k in T.serial(4):
    with T.block("inner"):
        uk = T.axis.spatial(4, k)
        T.where(W[vi + uk] > T.float32(0))
        V[vi] = W[vi + uk]
""",
    "where lanes are on": """
T.store(V, vi, value=W[vi], predicate=W[vi] > T.float32(0))
""",
}


def block_of(body):
    lines = "\n".join("        " + line for line in body.strip("\n").splitlines())
    head = 'for i in T.serial(8):\n    with T.block("step"):\n        vi = T.axis.spatial(8, i)\n'
    return 'c = T.alloc_buffer((1,), "int32")\n' + head + lines + "\n"


@pytest.mark.parametrize("name", STORED_SOMETIMES)
def test_a_cache_holds_the_old_value_where_a_block_may_store_nothing(program, name):
    module = program(block_of(STORED_SOMETIMES[name]))
    require_same(module, Step("cache_write", {"block": "step", **LOCAL}))
    step = Step("reindex_cache_write", {"block": "step", **LOCAL})
    require_refused(module, step, "initialized")


@pytest.mark.parametrize("loop", ["T.serial(2)", "T.unroll(3)"])
@pytest.mark.parametrize("op", ["cache_write", "reindex_cache_write"])
def test_a_value_stored_in_a_loop_with_iterations_needs_no_old_one(program, loop, op):
    body = f"for k in {loop}:\n    V[vi] = W[vi + k]\n"
    require_same(program(block_of(body)), Step(op, {"block": "step", **LOCAL}))
    changed = apply(program(block_of(body)), Step(op, {"block": "step", **LOCAL})).module
    assert not changed.functions[0].body[1].body[0].init


def test_an_old_value_that_may_not_exist_is_not_loaded(program):
    module = program(block_of("if vi < 4:\n    V[vi * 16] = W[vi]\n"))
    require_refused(module, Step("cache_write", {"block": "step", **LOCAL}), "not_proved")


INITIALIZED_SOMETIMES = """
for i in T.serial(8):
    for j in T.serial(n):
        with T.block("step"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                {init}
            V[vi] = V[vi] + W[vj]
"""


@pytest.mark.parametrize(
    "init", ["if W[vi] > T.float32(0): V[vi] = T.float32(0)", "for k in T.serial(n): V[vi] = 0.0"]
)
def test_an_init_that_may_do_nothing_initializes_no_cache(program, init):
    head, body = init.split(": ")
    text = INITIALIZED_SOMETIMES.format(init=f"{head}:\n                    {body}")
    module = program(text)
    require_refused(module, Step("cache_write", {"block": "step", **LOCAL}), "element")
    step = Step("reindex_cache_write", {"block": "step", **LOCAL})
    require_refused(module, step, "initialized")


def test_a_buffer_that_is_searched_gets_no_cache(program):
    text = """
R = T.alloc_buffer((8,), "int32")
for i in T.serial(8):
    with T.block("filled"):
        vi = T.axis.spatial(8, i)
        R[vi] = 2 * P[vi]
for i_1 in T.serial(8):
    with T.block("step"):
        ui = T.axis.spatial(8, i_1)
        R[ui] = T.int32(T.search("lower", R, begin=0, end=8, value=ui))
for i_2 in T.serial(8):
    with T.block("out"):
        ti = T.axis.spatial(8, i_2)
        V[ti] = T.float32(R[ti])
"""
    step = Step("cache_write", {"block": "step", "buffer": "R", "scope": "local"})
    require_refused(program(text), step, "reads")


LEFT = """
Q = T.decl_buffer((8,), "float32")
for t in T.serial(4):
    for a in T.serial({extent}):
        with T.block("made"):
            va = T.axis.spatial({extent}, a)
{made}
    for i in T.serial({read}):
        with T.block("used"):
            vt, vi = T.axis.remap("SS", [t, i])
            Y[vt, vi] = Q[vi]
"""


def left(made, extent="8", read="8"):
    lines = "\n".join("            " + line for line in made.splitlines())
    return LEFT.format(extent=extent, made=lines, read=read)


LEFT_BEHIND = {
    "in the first iteration": left("T.where(t == 0)\nQ[va] = V[va]"),
    "where a triangle is wide": left("Q[va] = V[va] + T.float32(t)", extent="4 - t", read="4"),
    "where a value says so": left("if V[va] > T.float32(4 * t - 5):\n    Q[va] = V[va]"),
    "in a loop that may be empty": left("for b in T.serial(5 - 4 * t):\n    Q[va] = V[va]"),
    "through an index array": """
Q = T.decl_buffer((8,), "float32")
for t in T.serial(2):
    for a in T.serial(8):
        with T.block("made"):
            va = T.axis.spatial(8, a)
            T.where(t == 0 or va < 3)
            Q[T.int64(P[va])] = V[va] + T.float32(t)
    for i in T.serial(8):
        with T.block("used"):
            vt, vi = T.axis.remap("SS", [t, i])
            Y[vt, vi] = Q[T.int64(P[vi])]
""",
}


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_a_value_from_an_earlier_iteration_is_not_lost(program, name):
    module = program(LEFT_BEHIND[name])
    require_refused(module, Step("compute_at", {"block": "made", "loop": "i"}), "not_proved")
    with pytest.raises(ScheduleError):
        apply(module, Step("compute_inline", {"block": "made"}))


@pytest.mark.parametrize("name", ["in the first iteration", "where a triangle is wide"])
def test_an_element_that_is_not_made_again_is_not_inlined(program, name):
    step = Step("compute_inline", {"block": "made"})
    require_refused(program(LEFT_BEHIND[name]), step, "not_proved")


MADE_AGAIN = {
    "all": left("Q[va] = V[va] + T.float32(t)"),
    "those of a triangle": left("Q[va] = V[va] + T.float32(t)", extent="8 - t", read="8 - t"),
    "those under a condition": left("T.where(va < 7 - t)\nQ[va] = V[va]", read="7 - t"),
    "in one branch or the other": left(
        "if V[va] > T.float32(0):\n    Q[va] = V[va]\nelse:\n    Q[va] = T.float32(t)"
    ),
}


@pytest.mark.parametrize("name", MADE_AGAIN)
def test_what_is_made_in_each_iteration_moves_into_its_user(program, name):
    require_same(program(MADE_AGAIN[name]), Step("compute_at", {"block": "made", "loop": "i"}))


@pytest.mark.parametrize("name", ["all", "those of a triangle", "those under a condition"])
def test_what_is_made_in_each_iteration_is_inlined(program, name):
    require_same(program(MADE_AGAIN[name]), Step("compute_inline", {"block": "made"}))


def test_a_buffer_of_one_iteration_keeps_nothing(program):
    declared = LEFT_BEHIND["where a triangle is wide"]
    line = 'Q = T.decl_buffer((8,), "float32")\n'
    loop = "for t in T.serial(4):\n"
    inside = declared.replace(line, "").replace(loop, f"{loop}    {line.replace('decl', 'alloc')}")
    module = program(inside.replace("i in T.serial(4)", "i in T.serial(1)"))
    require_same(module, Step("compute_at", {"block": "made", "loop": "i"}))
    require_same(module, Step("compute_inline", {"block": "made"}))


READ_BACK = """
Q = T.decl_buffer((8,), "float32")
for t in T.serial(4):
    with T.block("step"):
        vt = T.axis.spatial(4, t)
        for a in T.serial(8):
            with T.block("made"):
                va = T.axis.spatial(8, a)
                T.where({where})
                Q[va] = V[va] + T.float32(vt)
        for h in T.serial(8):
            with T.block("used"):
                wh = T.axis.spatial(8, h)
                Y[vt, wh] = Q[wh]
"""


def test_a_value_from_an_earlier_iteration_is_stored_again(program):
    step = Step("reverse_compute_inline", {"block": "used"})
    left_behind = program(READ_BACK.format(where="vt == 0 or va < 3"))
    require_refused(left_behind, step, "not_proved")
    require_same(program(READ_BACK.format(where="va < 8")), step)


ADDED = """
Q = T.decl_buffer((2,), "float32")
for a in T.serial(2):
    with T.block("made"):
        va = T.axis.spatial(2, a)
        Q[va] = 1.0
for i in T.serial(8):
    with T.block("added"):
        vi = T.axis.spatial(8, i)
        Q[{at}] = Q[{at}] + V[vi]
        W[vi] = Q[{at}]
"""


def test_what_other_iterations_added_is_not_lost(program):
    step = Step("compute_at", {"block": "made", "loop": "i"})
    require_refused(program(ADDED.format(at="0")), step, "other_access")
    eight_elements = ADDED.replace("(2", "(8").replace("serial(2)", "serial(8)").format(at="vi")
    require_same(program(eight_elements), step)


SIZED = """
R = T.alloc_buffer((1,), "int32")
R[0] = 8
for o in T.serial(1):
    Q = T.alloc_buffer((T.int64(R[0]),), "float32")
    for a in T.serial(8):
        with T.block("made"):
            va = T.axis.spatial(8, a)
            Q[va] = V[va]
    R[0] = 1
    for i in T.serial(8):
        with T.block("used"):
            vi = T.axis.spatial(8, i)
            W[vi] = Q[vi] + Q[7]
"""


def test_a_buffer_keeps_its_size(program):
    step = Step("compute_at", {"block": "made", "loop": "i"})
    require_refused(program(SIZED), step, "other_access")


REPLACED = """
Q = T.decl_buffer((8,), "float32")
for t in T.serial(4):
    for a in T.serial(8):
        with T.block("made"):
            vt, va = T.axis.remap("SS", [t, a])
            Q[{at}] = X[vt, va]
for h in T.serial(8):
    with T.block("used"):
        wh = T.axis.spatial(8, h)
        {used}
"""
ASKED = {
    "a condition": "T.where(Q[wh] > T.float32(0))\n        V[wh] = Q[wh]",
    "what else is read": "V[wh] = X[T.int64(T.max(Q[wh], 0.0)), wh]",
    "only its value": "V[wh] = Q[wh] + W[wh]",
}


@pytest.mark.parametrize("name", ["a condition", "what else is read"])
def test_a_value_that_is_replaced_decides_nothing(program, name):
    module = program(REPLACED.format(at="va", used=ASKED[name]))
    step = Step("reverse_compute_inline", {"block": "used"})
    require_refused(module, step, "not_proved")


def test_a_value_that_is_replaced_may_be_stored_and_replaced(program):
    module = program(REPLACED.format(at="va", used=ASKED["only its value"]))
    require_same(module, Step("reverse_compute_inline", {"block": "used"}))


@pytest.mark.parametrize("name", ["a condition", "what else is read"])
def test_a_value_that_stays_decides(program, name):
    text = REPLACED.replace("for t in T.serial(4)", "for t in T.serial(1)")
    module = program(text.format(at="va", used=ASKED[name]))
    require_same(module, Step("reverse_compute_inline", {"block": "used"}))


KEPT_ELEMENTS = """
@T.prim_func
def kept(
    a: T.handle,
    w: T.handle,
    indptr: T.handle,
    indices: T.handle,
    m: T.int64,
    n: T.int64,
    nnz: T.int64,
) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    K = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    W = T.sp.match_buffer(w, (K,), "float32")
    J_indptr = T.sp.match_buffer(indptr, (I,), "int32", extra_storage=1)
    J_indices = T.sp.match_buffer(indices, (I, J), "int32")
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            with T.block("step"):
                vi, vj = T.axis.remap("SS", [i, j])
                if W[T.int64(J_indices[vi, vj])] > 0.0:
                    A[vi, vj] = W[T.int64(J_indices[vi, vj])]
"""


def test_elements_of_a_sparse_buffer_that_are_not_stored_stay():
    module = parse_module(KEPT_ELEMENTS)
    step = Step("cache_write", {"block": "step", "buffer": "A", "scope": "local"})
    cached = verify(apply(module, step).module)
    indptr, indices = np.array([0, 2, 2, 5], np.int32), np.array([0, 3, 1, 2, 3], np.int32)
    a, w = np.arange(10, 15, dtype=np.float32), np.float32([1, -1, 2, 0])
    expected = np.where(w[indices] > 0, w[indices], a)
    sizes = {"m": 3, "n": 4, "nnz": 5}
    run(cached, {"a": a, "w": w, "indptr": indptr, "indices": indices} | sizes)
    np.testing.assert_array_equal(a, expected)


LAST = """
Q = T.decl_buffer((8, 8), "float32")
for a in T.serial(8):
    for b in T.serial(8):
        with T.block("made"):
            va, vb = T.axis.remap("SS", [a, b])
            Q[{made}] = X[va, vb]
for i in T.serial(8):
    for j in T.serial(8):
        with T.block("used"):
            vi, vj = T.axis.remap("SS", [i, j])
            {used}
"""
LAST_WINS = "Y[T.int64(P[vj]), (vi + vj) % 8] = Q[vi, vj]"
ADDS = "V[(vi + vj) % 8] = V[(vi + vj) % 8] + Q[vi, vj]"


@pytest.mark.parametrize(
    ("made", "used", "is_refused"),
    [
        ("vb, va", LAST_WINS, True),
        ("va, vb", LAST_WINS, False),
        ("vb, va", ADDS, False),
        ("vb, va", "Y[vj, vi] = Q[vi, vj]", False),
    ],
)
def test_the_last_of_several_values_stays_the_last(program, made, used, is_refused):
    module = program(LAST.format(made=made, used=used))
    step = Step("reverse_compute_at", {"block": "used", "loop": "a"})
    if is_refused:
        require_refused(module, step, "not_proved")
    else:
        require_same(module, step)


WORKSPACE = """
@T.prim_func
def rows(
    a: T.handle, y: T.handle, indptr: T.handle, indices: T.handle, m: T.int64, n: T.int64, nnz: T.int64
) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    K = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I, K), "float32")
    S = T.sp.alloc_buffer((K,), "float32")
    J_indptr = T.sp.match_buffer(indptr, (I,), "int32", extra_storage=1)
    J_indices = T.sp.match_buffer(indices, (I, J), "int32")
    for i in T.serial(m):
        for j in T.serial(T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])):
            with T.block("made"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[T.int64(J_indices[vi, vj])] = A[vi, vj]
        for k in T.serial({read}):
            with T.block("used"):
                ui, uk = T.axis.remap("SS", [i, k])
                Y[ui, {at}] = S[{at}]
"""
ALL, OF_ROW = {"read": "n", "at": "uk"}, "T.int64(J_indptr[i + 1]) - T.int64(J_indptr[i])"


@pytest.mark.parametrize("is_all", [True, False])
def test_a_workspace_that_is_not_zeroed_keeps_what_other_rows_left(is_all):
    row = {"read": OF_ROW, "at": "T.int64(J_indices[ui, uk])"}
    text = WORKSPACE
    for name, part in (ALL if is_all else row).items():
        text = text.replace(f"{{{name}}}", part)
    module, step = parse_module(text), Step("compute_at", {"block": "made", "loop": "k"})
    if is_all:
        with pytest.raises(ScheduleError) as caught:
            apply(module, step)
        assert caught.value.code == "schedule.compute_at.not_proved"
        return
    outputs = []
    for each in (module, apply(module, step).module):
        y = np.zeros((3, 4), np.float32)
        indices = {"indptr": np.int32([0, 4, 4, 6]), "indices": np.int32([0, 1, 2, 3, 1, 3])}
        sizes = {"m": 3, "n": 4, "nnz": 6}
        run(verify(each), {"a": np.arange(1, 7, dtype=np.float32), "y": y} | indices | sizes)
        outputs.append(y)
    np.testing.assert_array_equal(*outputs)
