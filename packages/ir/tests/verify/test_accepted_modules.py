"""Modules that the verifier accepts, and reductions that it tells from conflicting writes."""

import pytest
from verified_modules import (
    AXES,
    FLOATS,
    HALF,
    HALVES,
    MASK,
    RUN,
    SPARSE_BUFFERS,
    SPARSE_PARAMS,
    TRUE,
    V0,
    V1,
    N,
    accumulate,
    block,
    callee,
    flat,
    initialized,
    module,
    over,
    sparse,
    value,
)

from gossamer_ir.core.build import ONE, ZERO, handle, index
from gossamer_ir.errors import VerifyError
from gossamer_ir.nodes import (
    Allocate,
    AttachAxis,
    Binary,
    Block,
    BlockIter,
    Broadcast,
    Buffer,
    CompressedVaried,
    DenseVaried,
    FuseAxes,
    InRange,
    Lanes,
    Launch,
    Load,
    Param,
    Range,
    Reinterpret,
    Search,
    Select,
    SparseBuffer,
    Store,
    Var,
)
from gossamer_ir.script import parse_module
from gossamer_ir.verify import diagnostics, verify

RIGHT = {
    "parts of one computation": sparse(annotations=(("composable", 1),)),
    "an assignment by every variable": sparse(over(["I", "K"], "SS", Store("A", (V0, V1), HALF))),
    "a fact about the values of a sparse buffer": module(
        stage="coordinate", params=SPARSE_PARAMS, axes=AXES, buffers=SPARSE_BUFFERS,
        facts=(InRange("C", ZERO, N),),
    ),
    "an accumulation": sparse(over(["I", "J"], "SR", accumulate("C", V0), init=(Store("C", (V0,), HALF),))),
    "an init of the number that digits make": initialized(
        Binary("floordiv", V0, N), Binary("floormod", V0, N), value=V0
    ),
    "an init of what selects the element": initialized(
        Binary("floormod", V0, N), value=Binary("floormod", V0, N)
    ),
    "an init of one of two that make a sum": initialized(Binary("add", V0, V1), V0, value=V1),
    "an init of a number that is bound": initialized(Var("v", "int64"), value=V0, lets=(("v", V0),)),
    "an axis of one element may be left out": sparse(over(["U", "I"], "SS", Store("C", (V1,), HALF))),
    "a nested iteration over a child": sparse(
        over(["I"], "S", over(["J"], "R", accumulate("C", V0), name="inner", vars=("w",)))
    ),
    "a fused iteration": sparse(over([FuseAxes(("I", "J"))], "SR", accumulate("C", V0))),
    "an attached axis": sparse(over(["K", AttachAxis("J", "K")], "SS", accumulate("C", V0))),
    "siblings with offsets": sparse(
        axes=(*AXES, DenseVaried("M", "I", N, None, "indptr")),
        buffers=(SparseBuffer("A", ("I", "J", "M"), "float32", "x", offsets="y"),),
    ),
    "two axes over the same arrays": sparse(
        axes=(*AXES, CompressedVaried("M", "I", N, N, "indptr", "indices")),
        buffers=(*SPARSE_BUFFERS, SparseBuffer("A2", ("I", "M"), "float32", "x")),
    ),
    "an indptr bound to its axis": sparse(
        stage="position", buffers=(SparseBuffer("P", ("I",), "int32", "indptr", extra_storage=1),)
    ),
    "a block with the name of a buffer": module(Block("X", (), ())),
    "a search for a coordinate": value(Search("exact", "Q", (), ZERO, N, N)),
    "the address of a parameter": value(Reinterpret("int64", handle("x"))),
    "a gather by narrow lanes": value(
        Load("X", (Load("Q", (RUN,), "int32x4"),), FLOATS), FLOATS
    ),
    "a store with a mask": module(Store("X", (RUN,), HALVES, MASK)),
    "a scalable vector of one": value(Broadcast(N, Lanes(1, scalable=True)), "int64xvscalex1"),
    "a select of lanes by a scalar": value(Select(TRUE, RUN, RUN), "int64x4"),
    "an init after the reduction's block": module(
        block(iters=(BlockIter("v0", "S", Range(ZERO, N), ZERO),), init=(Store("X", (V0,), HALF),))
    ),
    "a temporary as an argument": flat(
        Allocate(Buffer("T", (index(4),), "float64")),
        Launch("g", (handle("T"),)),
        more=(callee(Param("p", "handle"), buffers=(Buffer("P", (ONE,), "float64", "p"),)),),
    ),
    "calls of one function twice": flat(
        Launch("g", ()), Launch("g", ()), more=(callee(),)
    ),
}  # fmt: skip


@pytest.mark.parametrize("right", RIGHT.values(), ids=RIGHT)
def test_right_modules_pass(right):
    assert diagnostics(right) == ()
    assert verify(right) is right


OWN = Load("C", (V0,), "float32")
OTHER = Load("C", (V1,), "float32")
ACCUMULATIONS = {
    "a sum": (Binary("add", HALF, OWN), True),
    "a difference": (Binary("sub", OWN, HALF), True),
    "a chain of sums": (Binary("sub", Binary("add", OWN, HALF), HALF), True),
    "a maximum": (Binary("max", Binary("max", HALF, OWN), HALF), True),
    "a product": (Binary("mul", OWN, HALF), True),
    "the element subtracted": (Binary("sub", HALF, OWN), False),
    "a quotient": (Binary("div", OWN, HALF), False),
    "two operators": (Binary("add", Binary("mul", OWN, HALF), HALF), False),
    "the element twice": (Binary("add", OWN, OWN), False),
    "another element": (Binary("add", OTHER, HALF), False),
    "its own element and another": (Binary("add", OWN, OTHER), False),
    "no element": (Binary("add", HALF, HALF), False),
}


@pytest.mark.parametrize(("expr", "is_right"), ACCUMULATIONS.values(), ids=ACCUMULATIONS)
def test_points_that_meet_may_accumulate_by_one_reducer_and_nothing_else(expr, is_right):
    reported = diagnostics(sparse(over(["I", "J"], "SR", Store("C", (V0,), expr))))
    assert [one.code for one in reported] == ([] if is_right else ["verify.iteration.conflict"])


FUSED_BLOCKS = """
@T.prim_func
def f(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in T.thread_binding(n, thread="blockIdx.x"):
        Y[i] = 0.0
    for j in T.thread_binding(n, thread="blockIdx.x"):
        if j < 2:
            {plain}
        else:
            {atomic}
"""
PLAIN, ATOMIC = "Y[j] = X[j]", "T.atomic_add(Y[2], X[j])"


IN_BLOCK = """
@T.prim_func
def f(x: T.handle, y: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for b in T.thread_binding(n // 32, thread="blockIdx.x"):
        S = T.alloc_buffer((32,), "float32", scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            S[t] = 0.0
        for u in T.thread_binding(32, thread="threadIdx.x"):
            T.atomic_add(S[u // 4], X[b * 32 + u])
            {between}
        for v in T.thread_binding(32, thread="threadIdx.x"):
            Y[b * 32 + v] = S[v]
"""


def test_threads_of_a_block_update_its_memory_in_a_loop_of_their_own():
    verify(parse_module(IN_BLOCK.format(between="Y[u] = X[u]")))
    for other in ("Y[u] = S[u]", "S[u] = X[u]", "T.atomic_max(S[u], X[u])"):
        with pytest.raises(VerifyError) as caught:
            verify(parse_module(IN_BLOCK.format(between=other)))
        assert caught.value.code == "verify.atomic.shared"


def test_launches_and_loops_that_were_fused_access_a_buffer_in_ways_of_their_own():
    verify(parse_module(FUSED_BLOCKS.format(plain=PLAIN, atomic=ATOMIC)))
    mixed = FUSED_BLOCKS.format(plain=PLAIN, atomic=f"{ATOMIC}\n            {PLAIN}")
    with pytest.raises(VerifyError) as caught:
        verify(parse_module(mixed))
    assert caught.value.code == "verify.atomic.shared"
