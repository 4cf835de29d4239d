"""Small modules for the tests of the verifier: valid but for the part that a test gives."""

from gossamer_ir.core.build import ONE, ZERO, index_var
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Block,
    Broadcast,
    Buffer,
    Cast,
    Combine,
    CompressedVaried,
    Const,
    DenseFixed,
    For,
    Function,
    InRange,
    Iteration,
    Lanes,
    Let,
    Load,
    Module,
    Monotone,
    OverAxis,
    Param,
    Ramp,
    Reducer,
    SparseBuffer,
    Store,
    Unary,
    Var,
)

N = index_var("n")
HALF = Const("float32", "0.5")
TRUE = Const("bool", "True")
W = Lanes(4)
RUN = Ramp(ZERO, ONE, W)
MASK = Broadcast(TRUE, W)
HALVES = Broadcast(HALF, W)
OWN = Allocate(Buffer("T", (ONE,), "float32"))
FETCH = Store("T", (ZERO,), Load("X", (ZERO,), "float32"))
SCALE = Store("Y", (ZERO, ZERO), Load("T", (ZERO,), "float32"))
FLOATS = "float32x4"
POINTERS = (Param("x", "handle"), Param("y", "handle"), Param("q", "handle"))
PARAMS = (*POINTERS, Param("n", "int64"))
BUFFERS = (
    Buffer("X", (N,), "float32", "x"),
    Buffer("Y", (N, N), "float32", "y"),
    Buffer("Q", (N,), "int32", "q"),
)
FACTS = (InRange("Q", ZERO, N), Monotone("Q"))
AXES = (
    DenseFixed("I", N),
    CompressedVaried("J", "I", N, N, "indptr", "indices"),
    DenseFixed("K", N),
    DenseFixed("U", ONE),
)
SPARSE_PARAMS = (
    *PARAMS[:2], Param("indptr", "handle"), Param("indices", "handle"), Param("n", "int64"),
)  # fmt: skip
SPARSE_BUFFERS = (
    SparseBuffer("A", ("I", "J"), "float32", "x"),
    SparseBuffer("C", ("I",), "float32", "y"),
)
BODY = ("functions", 0, "body", 0)
REDUCER = ("functions", 0, "reducers", 0)
LEFT, RIGHT = Var("a", "float32"), Var("b", "float32")
LARGER = Reducer("g", (LEFT,), (RIGHT,), (Binary("max", LEFT, RIGHT),), (HALF,))
INTO_X = Store("X", (ZERO,), HALF)


def module(*body, stage="loop", params=PARAMS, buffers=BUFFERS, facts=FACTS, more=(), **fields):
    function = Function("f", params, body, buffers=buffers, facts=facts, **fields)
    return Module(stage, (function, *more), "f")


def sparse(
    *body, stage="coordinate", params=SPARSE_PARAMS, axes=AXES, buffers=SPARSE_BUFFERS, **fields
):
    return module(*body, stage=stage, params=params, axes=axes, buffers=buffers, facts=(), **fields)


def value(expr, dtype="int64", **fields):
    return module(Let(Var("v", dtype), expr), **fields)


def over(names, kinds, *body, init=(), name="it", vars=None):
    axes = tuple(OverAxis(axis) if isinstance(axis, str) else axis for axis in names)
    return Iteration(
        name, axes, kinds, vars or tuple(f"v{n}" for n in range(len(kinds))), body, init
    )


def accumulate(buffer, *indices):
    return Store(buffer, indices, Binary("add", Load(buffer, indices, "float32"), HALF))


def loop(*body, kind="serial", **fields):
    return For("i", ZERO, N, body, kind, **fields)


def on_threads(var, *body, tag="blockIdx.x", extent=ONE):
    return For(var, ZERO, extent, body, "thread_binding", tag)


def block(*body, iters=(), **fields):
    return Block("b", iters, body, **fields)


def flat(*body, more=(), **fields):
    return module(*body, stage="flat", more=more, **fields)


def combining(*stores, reducer=LARGER, name="g", **fields):
    return module(Combine(name, stores), reducers=(reducer,), **fields)


def larger(lhs=LARGER.lhs, rhs=LARGER.rhs, results=LARGER.results, identity=LARGER.identity):
    return module(reducers=(Reducer("g", lhs, rhs, results, identity),))


def callee(*params, body=(), buffers=(), name="g"):
    return Function(name, params, body, buffers=buffers)


def negated(times):
    expr = N
    for _ in range(times):
        expr = Unary("neg", expr)
    return expr


RANGE = (Param("begin", "int64"), Param("end", "int64"))
STORE_W = Store("C", (index_var("w"),), HALF)
V0, V1 = index_var("v0"), index_var("v1")
VALUE = (*BODY, "value")


def initialized(*at, value, lets=()):
    """An iteration with an init of the elements at some indices."""
    place, bound = (
        f"L{len(at)}",
        tuple(Let(Var(name, "int64"), bound_value) for name, bound_value in lets),
    )
    init = (*bound, Store(place, at, Cast("float32", value)))
    buffers = (SparseBuffer("L1", ("I",), "float32"), SparseBuffer("L2", ("I", "K"), "float32"))
    return sparse(
        over(["I", "K"], "SS", accumulate("C", V0), init=init), buffers=(*SPARSE_BUFFERS, *buffers)
    )
