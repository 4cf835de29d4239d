"""One minimal module for each error code of the verifier, which reports only this code, at its place."""

import re
from pathlib import Path

import pytest

import gossamer_ir.verify
from gossamer_ir.core.build import ONE, ZERO, handle, index, index_var
from gossamer_ir.errors import VerifyError
from gossamer_ir.nodes import (
    Allocate,
    Atomic,
    AttachAxis,
    Binary,
    Block,
    BlockIter,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Combine,
    Compare,
    CompressedFixed,
    CompressedVaried,
    Const,
    DenseFixed,
    DenseVaried,
    For,
    FormatDescription,
    Function,
    FuseAxes,
    If,
    IfThenElse,
    IndexMap,
    InRange,
    Iteration,
    LaneReduce,
    Lanes,
    Launch,
    Let,
    Load,
    Module,
    Monotone,
    OverAxis,
    ParallelFor,
    Param,
    Ramp,
    Range,
    Reducer,
    Region,
    Reinterpret,
    Relation,
    Search,
    Select,
    SparseBuffer,
    Store,
    ThreadExtent,
    TransposeReduce,
    Unary,
    Var,
    While,
)
from gossamer_ir.verify import diagnostics, diagnostics_of_format, verify

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


def over(names, kinds, *body, init=(), name="it", variables=None):
    axes = tuple(OverAxis(axis) if isinstance(axis, str) else axis for axis in names)
    return Iteration(
        name, axes, kinds, variables or tuple(f"v{n}" for n in range(len(kinds))), body, init
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

CASES = {
    "verify.module.stage": (Module("fog", (), "f"), ("stage",)),
    "verify.module.entry": (Module("loop", (), "f"), ("entry",)),
    "verify.depth": (value(negated(300)), (*VALUE, *["operand"] * 187)),
    "verify.name.identifier": (module(For("a b", ZERO, N, ())), BODY),
    "verify.name.duplicate": (module(For("n", ZERO, N, ())), BODY),
    "verify.param.dtype": (
        module(params=(*PARAMS, Param("z", "float32x4"))), ("functions", 0, "params", 4)
    ),
    # reducers
    "verify.reducer.arity": (larger(identity=(HALF, HALF)), REDUCER),
    "verify.reducer.dtype": (larger(identity=(ZERO,)), (*REDUCER, "identity", 0)),
    "verify.reducer.open": (
        larger(results=(Load("X", (ZERO,), "float32"),)), (*REDUCER, "results", 0)
    ),
    "verify.combine.reducer": (combining(INTO_X, name="h"), BODY),
    "verify.combine.arity": (combining(INTO_X, Store("Y", (ZERO, ZERO), HALF)), BODY),
    "verify.combine.dtype": (
        combining(Store("Q", (ZERO,), Const("int32", "0")), facts=()), (*BODY, "stores", 0)
    ),
    "verify.combine.predicate": (
        combining(Store("X", (ZERO,), HALF, TRUE)), (*BODY, "stores", 0)
    ),
    "verify.combine.apart": (combining(Store("X", (ZERO,), Load("X", (N,), "float32"))), BODY),
    # declarations
    "verify.axis.parent": (
        sparse(axes=(*AXES, DenseFixed("M", N, "nowhere"))), ("functions", 0, "axes", 4)
    ),
    "verify.axis.dtype": (
        sparse(axes=(*AXES, DenseVaried("M", "I", N, None, "y", "float32")), buffers=()),
        ("functions", 0, "axes", 4),
    ),
    "verify.buffer.axis": (
        sparse(buffers=(SparseBuffer("A", ("I", "I"), "float32", "x"),)), ("functions", 0, "buffers", 0)
    ),
    "verify.buffer.order": (
        sparse(buffers=(SparseBuffer("A", ("J", "I"), "float32", "x"),)), ("functions", 0, "buffers", 0)
    ),
    "verify.buffer.siblings": (
        sparse(
            axes=(*AXES, DenseVaried("M", "I", N, None, "y")),
            buffers=(SparseBuffer("A", ("I", "J", "M"), "float32", "x"),),
        ),
        ("functions", 0, "buffers", 0),
    ),
    "verify.buffer.dtype": (
        module(Allocate(Buffer("T", (N,), "float32x4"))), (*BODY, "buffer")
    ),
    "verify.buffer.scope": (
        module(Allocate(Buffer("T", (N,), "float32", scope="moon"))), (*BODY, "buffer")
    ),
    "verify.buffer.extra": (
        sparse(buffers=(SparseBuffer("A", ("I",), "float32", "x", extra_storage=-1),)),
        ("functions", 0, "buffers", 0),
    ),
    "verify.buffer.fill": (
        sparse(buffers=(SparseBuffer("A", ("I",), "float32", "x", fill=ZERO),)),
        ("functions", 0, "buffers", 0, "fill"),
    ),
    "verify.handle.undefined": (
        sparse(buffers=(SparseBuffer("A", ("I",), "float32", "x", offsets="n"),)),
        ("functions", 0, "buffers", 0, "offsets"),
    ),
    "verify.handle.conflict": (
        module(buffers=(*BUFFERS, Buffer("Z", (N,), "float64", "x"))), ("functions", 0, "buffers", 3)
    ),
    "verify.handle.alias": (
        module(
            Store("Z", (ZERO,), HALF), buffers=(*BUFFERS, Buffer("Z", (N,), "float32", "x"))
        ),
        ("functions", 0),
    ),
    "verify.handle.unbound": (flat(params=(*PARAMS, Param("z", "handle"))), ("functions", 0)),
    "verify.relation.kind": (
        sparse(relations=(Relation("near", "I", "J"),)), ("functions", 0, "relations", 0)
    ),
    "verify.relation.name": (
        sparse(relations=(Relation("subset", "I", "Z"),)), ("functions", 0, "relations", 0)
    ),
    "verify.fact.buffer": (module(facts=(Monotone("Z"),)), ("functions", 0, "facts", 0)),
    "verify.fact.unchecked": (
        module(buffers=(*BUFFERS, Buffer("Z", (N,), "int64")), facts=(Monotone("Z"),)),
        ("functions", 0, "facts", 0),
    ),
    "verify.annotation.unsafe": (
        module(annotations=(("unsafe", True),)), ("functions", 0, "annotations", 0)
    ),
    "verify.annotation.refused": (
        module(annotations=(("horizontal_fuse", True),)), ("functions", 0, "annotations", 0)
    ),
    "verify.annotation": (
        module(annotations=(("a", 1), ("a", 2))), ("functions", 0, "annotations", 1)
    ),
    "verify.stage.node": (module(loop(), stage="coordinate", buffers=(), facts=()), BODY),
    "verify.stage.loop": (flat(loop(kind="parallel")), BODY),
    # expressions
    "verify.const.text": (value(Const("int64", "01")), VALUE),
    "verify.var.undefined": (value(index_var("z")), VALUE),
    "verify.var.dtype": (value(Var("n", "int32"), "int64"), VALUE),
    "verify.var.handle": (value(index_var("x")), VALUE),
    "verify.dtype.unknown": (value(Cast("int65", N)), VALUE),
    "verify.dtype.operands": (value(Binary("add", N, HALF)), VALUE),
    "verify.dtype.operator": (value(Binary("div", N, N)), VALUE),
    "verify.operator.unknown": (value(Binary("xor", N, N)), (*VALUE, "op")),
    "verify.condition.dtype": (value(IfThenElse(N, N, N)), (*VALUE, "condition")),
    "verify.reinterpret.bits": (value(Reinterpret("float32", N), "float32"), VALUE),
    "verify.cast.lanes": (value(Cast("int64x8", RUN), "int64x8"), VALUE),
    "verify.call.unknown": (value(Call("sinc", (HALF,), "float32"), "float32"), VALUE),
    "verify.call.arity": (value(Call("pow", (HALF,), "float32"), "float32"), VALUE),
    "verify.call.dtype": (value(Call("exp", (N,), "int64")), VALUE),
    "verify.vector.operand": (value(Broadcast(RUN, W), "int64x4"), VALUE),
    "verify.lanes.count": (value(Broadcast(N, Lanes(1)), "int64"), VALUE),
    "verify.reducer.unknown": (value(LaneReduce("sub", RUN)), VALUE),
    # accesses
    "verify.buffer.undefined": (value(Load("Z", (N,), "float32"), "float32"), VALUE),
    "verify.index.count": (value(Load("X", (N, N), "float32"), "float32"), VALUE),
    "verify.index.dtype": (
        value(Load("X", (Const("int32", "0"),), "float32"), "float32"), (*VALUE, "indices", 0)
    ),
    "verify.index.vector": (
        value(Load("Y", (RUN, Ramp(ZERO, ONE, Lanes(8))), FLOATS), FLOATS), (*VALUE, "indices", 1)
    ),
    "verify.load.dtype": (value(Load("X", (N,), "float64"), "float64"), VALUE),
    "verify.predicate.passthrough": (
        value(Load("X", (RUN,), FLOATS, predicate=MASK), FLOATS), VALUE
    ),
    "verify.predicate.dtype": (
        value(Load("X", (RUN,), FLOATS, TRUE, HALVES), FLOATS), (*VALUE, "predicate")
    ),
    "verify.passthrough.dtype": (
        value(Load("X", (RUN,), FLOATS, MASK, HALF), FLOATS), (*VALUE, "passthrough")
    ),
    "verify.store.dtype": (module(Store("X", (RUN,), HALF)), BODY),
    "verify.store.index": (module(Store("Q", (N,), Const("int32", "0"))), BODY),
    "verify.search.kind": (value(Search("near", "Q", (), ZERO, N, N)), VALUE),
    "verify.search.dtype": (value(Search("exact", "Q", (), ZERO, N, HALF)), (*VALUE, "value")),
    # statements
    "verify.let.dtype": (value(HALF, "int64"), BODY),
    "verify.allocate.handle": (
        module(Allocate(Buffer("T", (N,), "float32", "x"))), (*BODY, "buffer")
    ),
    "verify.size.dtype": (module(For("i", ZERO, HALF, ())), (*BODY, "extent")),
    "verify.size.negative": (
        sparse(axes=(*AXES, DenseFixed("M", index(-1)))), ("functions", 0, "axes", 4, "length")
    ),
    "verify.for.kind": (module(loop(kind="sideways")), BODY),
    "verify.for.thread": (module(loop(kind="thread_binding")), BODY),
    "verify.thread.tag": (module(loop(kind="thread_binding", thread="threadIdx.w")), BODY),
    "verify.thread.twice": (
        module(on_threads("i", on_threads("j", extent=N))), (*BODY, "body", 0)
    ),
    "verify.thread.extent": (
        module(on_threads("i", on_threads("j", tag="threadIdx.x"),
                          on_threads("k", tag="threadIdx.x", extent=N))),
        (*BODY, "body", 1),
    ),
    "verify.for.weight": (module(loop(grain=ONE)), BODY),
    "verify.block.kind": (
        module(block(iters=(BlockIter("vi", "X", Range(ZERO, N), ZERO),))), (*BODY, "iters", 0)
    ),
    "verify.block.region": (
        module(block(Store("X", (N,), HALF), writes=(Region("X", (Range(ZERO, N),)),))),
        (*BODY, "writes", 0),
    ),
    "verify.init.reduction": (
        module(
            block(
                iters=(BlockIter("v0", "R", Range(ZERO, N), ZERO),),
                init=(Store("X", (ZERO,), Cast("float32", V0)),),
            )
        ),
        (*BODY, "init", 0, "value", "value"),
    ),
    # iterations
    "verify.iteration.kinds": (sparse(over(["I"], "SS", accumulate("C", V0))), BODY),
    "verify.iteration.axis": (sparse(over(["I", "I"], "SS", accumulate("C", V0))), (*BODY, "axes", 1)),
    "verify.iteration.parent": (sparse(over(["J", "I"], "SS", accumulate("C", V1))), (*BODY, "axes", 0)),
    "verify.iteration.fuse": (
        sparse(over([FuseAxes(("I", "K"))], "SS", accumulate("C", V0))), (*BODY, "axes", 0)
    ),
    "verify.iteration.attach": (
        sparse(over([AttachAxis("J", "K")], "S", accumulate("C", V0))), (*BODY, "axes", 0)
    ),
    "verify.iteration.conflict": (
        sparse(over(["I", "J"], "SR", Store("C", (V0,), Load("A", (V0, V1), "float32")))),
        (*BODY, "body", 0),
    ),
    "verify.iteration.init": (
        sparse(
            over(
                ["I", "J"], "SS", accumulate("C", V0),
                init=(Store("C", (V0,), Load("A", (V0, V1), "float32")),),
            )
        ),
        (*BODY, "init", 0),
    ),
    # atomic accumulations
    "verify.atomic.op": (flat(Atomic("mul", "X", (N,), HALF)), BODY),
    "verify.atomic.dtype": (
        flat(Allocate(Buffer("T", (ONE,), "bool")), Atomic("max", "T", (ZERO,), TRUE)),
        ("functions", 0, "body", 1),
    ),
    "verify.atomic.shared": (
        flat(Atomic("add", "X", (N,), HALF), Store("X", (N,), HALF)), ("functions", 0)
    ),
    "verify.atomic.loop": (
        module(loop(Store("X", (N,), HALF), kind="parallel", annotations=(("atomic", True),))), BODY
    ),
    "verify.atomic.name": (
        module(loop(Store("X", (N,), HALF), kind="parallel", annotations=(("atomic", "Z"),))), BODY
    ),
    # copies that run ahead
    "verify.pipeline.stages": (
        module(loop(OWN, FETCH, SCALE, annotations=(("pipeline", 1),))), BODY
    ),
    "verify.pipeline.copy": (
        module(loop(OWN, SCALE, FETCH, annotations=(("pipeline", 2),))), BODY
    ),
    # calls
    "verify.flat.callee": (flat(Launch("g", ())), BODY),
    "verify.flat.recursion": (
        flat(Launch("g", ()), more=(callee(body=(Launch("g", ()),)),)),
        ("functions", 1, "body", 0),
    ),
    "verify.flat.range": (
        flat(ParallelFor("g", "i", ZERO, N, ()), more=(callee(Param("begin", "int64")),)), BODY
    ),
    "verify.flat.arguments": (
        flat(ParallelFor("g", "i", ZERO, N, (N,)), more=(callee(*RANGE),)), BODY
    ),
    "verify.flat.argument": (
        flat(
            Launch("g", (handle("x"),)),
            more=(callee(Param("p", "handle"), buffers=(Buffer("P", (ONE,), "float64", "p"),)),),
        ),
        (*BODY, "args", 0),
    ),
    "verify.flat.pointer": (
        flat(Launch("g", (N,)), more=(callee(Param("p", "handle")),)), (*BODY, "args", 0)
    ),
}  # fmt: skip

FORMAT_CODES = {"verify.format.map"}


@pytest.mark.parametrize(("code", "case"), CASES.items(), ids=CASES)
def test_a_finding_is_the_only_one_and_at_its_place(code, case):
    wrong, place = case
    reported = diagnostics(wrong)
    assert [(one.code, one.place) for one in reported] == [(code, place)]
    assert reported[0].message.endswith(".")
    with pytest.raises(VerifyError, match=re.escape(code)):
        verify(wrong)


def test_every_code_in_the_source_has_a_case():
    folder = Path(gossamer_ir.verify.__file__).parent
    source = "".join(path.read_text() for path in folder.glob("*.py"))
    assert set(re.findall(r'"(verify\.[a-z.]+)"', source)) == CASES.keys() | FORMAT_CODES


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


MORE_CASES = {
    "parts of one computation after the coordinate stage": (
        "verify.annotation.refused", module(annotations=(("composable", 1),))
    ),
    "loops that are said to be fused": (
        "verify.annotation.refused", module(loop(annotations=(("horizontal_fuse", True),)))
    ),
    "a function that is said to be computed before": (
        "verify.annotation.refused", module(annotations=(("preprocess", True),))
    ),
    "a fact whose bound is read from what is allocated": (
        "verify.fact.unchecked",
        module(
            buffers=(*BUFFERS, Buffer("Z", (N,), "int64")),
            facts=(InRange("Q", ZERO, Load("Z", (ZERO,), "int64")),),
        ),
    ),
    "a relation to what is allocated": (
        "verify.fact.unchecked",
        module(
            buffers=(*BUFFERS, Buffer("Z", (N,), "int32")), facts=(Relation("subset", "Q", "Z"),)
        ),
    ),
    "a store to the offsets of axes side by side": (
        "verify.store.index",
        sparse(
            Store("P", (ZERO,), Const("int32", "0")), stage="position",
            params=(*SPARSE_PARAMS, Param("offsets", "handle")),
            axes=(*AXES, DenseVaried("M", "I", N, None, "indptr")),
            buffers=(
                SparseBuffer("A", ("I", "J", "M"), "float32", "x", offsets="offsets"),
                Buffer("P", (N,), "int32", "offsets"),
            ),
        ),
    ),
    "an init by a number of which the element tells a digit": (
        "verify.iteration.init", initialized(Binary("floormod", V0, N), value=V0)
    ),
    "an init by a term of a sum": (
        "verify.iteration.init", initialized(Binary("add", V0, V1), value=V0)
    ),
    "two structures in one array": (
        "verify.handle.conflict",
        sparse(buffers=(*SPARSE_BUFFERS, SparseBuffer("A2", ("I",), "float32", "x"))),
    ),
    "an index array of rows and of what lies below them": (
        "verify.handle.conflict",
        sparse(axes=(*AXES, DenseVaried("V", "J", N, None, "indptr"))),
    ),
    "values where an index array has one more": (
        "verify.handle.conflict",
        sparse(buffers=(*SPARSE_BUFFERS, SparseBuffer("P", ("I",), "int32", "indptr"))),
    ),
    "a statement of another stage in a body": (
        "verify.stage.node", module(Iteration("it", (), "", (), ()))
    ),
    "a block in flat": ("verify.stage.node", flat(block())),
    "a vector before the loop stage": (
        "verify.stage.node", value(RUN, "int64x4", stage="position")
    ),
    "a search in flat": (
        "verify.stage.node", value(Search("exact", "Q", (), ZERO, N, N), stage="flat")
    ),
    "an axis in the loop stage": (
        "verify.stage.node", module(axes=(DenseFixed("I", N),))
    ),
    "a sparse buffer in the loop stage": (
        "verify.stage.node", module(buffers=(SparseBuffer("S", (), "float32", "x"),), facts=())
    ),
    "an ordinary buffer in the coordinate stage": (
        "verify.stage.node", module(stage="coordinate", facts=(), buffers=BUFFERS[:1])
    ),
    "two functions of one name": (
        "verify.name.duplicate", Module("loop", (Function("f", (), ()), Function("f", (), ())), "f")
    ),
    "two loops of one name, one after the other": ("verify.name.duplicate", module(loop(), loop())),
    "two blocks of one name": ("verify.name.duplicate", module(block(), block())),
    "a keyword": ("verify.name.identifier", module(For("while", ZERO, N, ()))),
    "a name of other letters": (
        "verify.name.identifier", module(For("\N{GREEK SMALL LETTER PI}", ZERO, N, ()))
    ),
    "a variable after its loop": (
        "verify.var.undefined", module(loop(), If(Compare("lt", index_var("i"), N), ()))
    ),
    "a let after its body": (
        "verify.var.undefined",
        module(If(TRUE, (Let(Var("t", "int64"), N),), (Store("X", (index_var("t"),), HALF),))),
    ),
    "a loop's own variable in its extent": (
        "verify.var.undefined", module(For("i", ZERO, index_var("i"), ()))
    ),
    "a temporary after its body": (
        "verify.buffer.undefined",
        module(loop(Allocate(Buffer("T", (N,), "float32"))), Store("T", (ZERO,), HALF)),
    ),
    "a size that is read from a buffer declared later": (
        "verify.buffer.undefined",
        module(
            buffers=(
                Buffer("T", (Load("U", (ZERO,), "int64"),), "float32"),
                *BUFFERS,
                Buffer("U", (ONE,), "int64"),
            )
        ),
    ),
    "a shape with an unknown variable": (
        "verify.var.undefined", module(buffers=(*BUFFERS, Buffer("T", (index_var("z"),), "float32")))
    ),
    "an address of few bits": ("verify.var.handle", value(Reinterpret("int32", handle("x")), "int32")),
    "the address of a buffer": ("verify.var.handle", value(Reinterpret("int64", handle("X")))),
    "a condition of integers": ("verify.condition.dtype", module(While(N, ()))),
    "a vector condition": ("verify.condition.dtype", module(If(MASK, ()))),
    "a select with other lanes": (
        "verify.condition.dtype",
        value(Select(Broadcast(TRUE, Lanes(8)), RUN, RUN), "int64x4"),
    ),
    "a region of too few ranges": (
        "verify.index.count", module(block(reads=(Region("Y", (Range(ZERO, N),)),)))
    ),
    "a not of integers": ("verify.dtype.operator", value(Unary("not", N))),
    "an or of lanes that are numbers": ("verify.dtype.operator", value(LaneReduce("or", RUN))),
    "a transpose-reduce of a reducer that is none": (
        "verify.reducer.unknown", value(TransposeReduce("sub", (RUN, RUN)), "int64x2")
    ),
    "a transpose-reduce of numbers by or": (
        "verify.dtype.operator", value(TransposeReduce("or", (RUN, RUN)), "int64x2")
    ),
    "a transpose-reduce of scalars": (
        "verify.vector.operand", value(TransposeReduce("add", (N, N)), "int64x2")
    ),
    "a transpose-reduce of two dtypes": (
        "verify.dtype.operands",
        value(TransposeReduce("add", (RUN, Broadcast(N, Lanes(8)))), "int64x2"),
    ),
    "a transpose-reduce of no values": ("verify.lanes.count", value(TransposeReduce("add", ()))),
    "a transpose-reduce of three values": (
        "verify.lanes.count", value(TransposeReduce("add", (RUN,) * 3), "int64x3")
    ),
    "a transpose-reduce of 128 values": (
        "verify.lanes.count", value(TransposeReduce("add", (RUN,) * 128), "int64x128")
    ),
    "a transpose-reduce of three lanes": (
        "verify.lanes.count",
        value(TransposeReduce("add", (Broadcast(N, Lanes(3)),) * 2), "int64x2"),
    ),
    "a transpose-reduce of scalable vectors": (
        "verify.lanes.count",
        value(TransposeReduce("add", (Broadcast(N, Lanes(4, scalable=True)),) * 2), "int64x2"),
    ),
    "a value where statements stand": ("verify.stage.node", module(N)),
    "two thread axes of one name": (
        "verify.thread.tag",
        flat(
            Launch("g", (), (ThreadExtent("blockIdx.x", N), ThreadExtent("blockIdx.x", N))),
            more=(callee(),),
        ),
    ),
    "a pointer as a value": ("verify.var.handle", value(Cast("int64", Var("x", "handle")))),
    "a scalar argument of another dtype": (
        "verify.flat.argument", flat(Launch("g", (HALF,)), more=(callee(Param("p", "int64")),))
    ),
    "two functions that call each other": (
        "verify.flat.recursion",
        flat(
            more=(
                callee(body=(Launch("h", ()),)), callee(body=(Launch("g", ()),), name="h"),
            )
        ),
    ),
    "calls that nest too deep": (
        "verify.depth",
        flat(
            more=[
                callee(name=f"g{n}", body=(Launch(f"g{n + 1}", ()),) if n < 101 else ())
                for n in range(102)
            ]
        ),
    ),
    "an index array that is written": (
        "verify.store.index",
        sparse(
            Store("S", (ZERO,), Const("int32", "0")),
            stage="position",
            buffers=(SparseBuffer("S", ("I",), "int32", "indptr", extra_storage=1),),
        ),
    ),
    "an assignment through a let that leaves a variable out": (
        "verify.iteration.conflict",
        sparse(over(["I", "J"], "SS", Let(Var("t", "int64"), V0), Store("C", (index_var("t"),), HALF))),
    ),
    "an assignment in a nested iteration that leaves an outer variable out": (
        "verify.iteration.conflict",
        sparse(over(["K"], "S", over(["I"], "S", STORE_W, name="inner", variables=("w",)))),
    ),
    "an init by a loop that only feeds the reduction": (
        "verify.init.reduction",
        module(
            loop(
                block(
                    iters=(BlockIter("v0", "R", Range(ZERO, N), index_var("i")),),
                    init=(Store("X", (index_var("i"),), HALF),),
                )
            )
        ),
    ),
    "an init by a let of a loop that only feeds the reduction": (
        "verify.init.reduction",
        module(
            loop(
                Let(Var("t", "int64"), index_var("i")),
                block(
                    iters=(BlockIter("v0", "R", Range(ZERO, N), index_var("t")),),
                    init=(Store("X", (index_var("t"),), HALF),),
                ),
            )
        ),
    ),
    "an init by the variable of a reduction": (
        "verify.init.reduction",
        sparse(over(["I", "J"], "SR", accumulate("C", V0), init=(Store("C", (V1,), HALF),))),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "wrong"), MORE_CASES.values(), ids=MORE_CASES)
def test_further_modules_are_refused(code, wrong):
    assert [diagnostic.code for diagnostic in diagnostics(wrong)] == [code]


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
        over(["I"], "S", over(["J"], "R", accumulate("C", V0), name="inner", variables=("w",)))
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


NEGATIVE = index(-2)
NEGATIVE_SIZES = {
    "a width": sparse(axes=(*AXES, CompressedFixed("M", "I", N, NEGATIVE, "q"))),
    "a number of elements": sparse(axes=(*AXES, DenseVaried("M", "I", N, NEGATIVE, "q"))),
    "a shape": module(buffers=(*BUFFERS[1:], Buffer("X", (N, NEGATIVE), "float32", "x")), facts=()),
    "an allocation": module(Allocate(Buffer("T", (NEGATIVE,), "float32"))),
}


@pytest.mark.parametrize("wrong", NEGATIVE_SIZES.values(), ids=NEGATIVE_SIZES)
def test_no_size_is_negative(wrong):
    assert "verify.size.negative" in [diagnostic.code for diagnostic in diagnostics(wrong)]


@pytest.mark.parametrize("right", RIGHT.values(), ids=RIGHT)
def test_right_modules_pass(right):
    assert diagnostics(right) == ()
    assert verify(right) is right


def test_all_findings_come_at_once():
    wrong = module(
        Store("Z", (N,), HALF), loop(Store("X", (HALF,), ZERO)), annotations=(("a", 1.5),)
    )
    assert [diagnostic.code for diagnostic in diagnostics(wrong)] == [
        "verify.annotation",
        "verify.buffer.undefined",
        "verify.index.dtype",
        "verify.store.dtype",
    ]
    with pytest.raises(VerifyError) as caught:
        verify(wrong)
    assert len(caught.value.diagnostics) == 4
    assert all(diagnostic.code in str(caught.value) for diagnostic in caught.value.diagnostics)


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


FORMAT = FormatDescription(
    "csr", (Param("indptr", "handle"), Param("indices", "handle"), Param("n", "int64")), AXES,
    SparseBuffer("A", ("I", "J"), "float32"),
)  # fmt: skip


def test_a_right_format_passes():
    assert diagnostics_of_format(FORMAT) == ()


FORMATS = {
    "a map of other rank": (
        FormatDescription("csr", FORMAT.params, AXES, FORMAT.buffer, map=IndexMap(("i",), (ZERO,))),
        "verify.format.map",
    ),
    "a map by an unknown array": (
        FormatDescription(
            "csr", FORMAT.params, AXES, FORMAT.buffer,
            map=IndexMap(("i", "j"), (Cast("int64", Load("P", (index_var("i"),), "int32")),)),
        ),
        "verify.buffer.undefined",
    ),
    "a name that is none": (
        FormatDescription("a-b", FORMAT.params, AXES, FORMAT.buffer), "verify.name.identifier"
    ),
    "an axis without array": (
        FormatDescription("csr", FORMAT.params[1:], AXES, FORMAT.buffer), "verify.handle.undefined"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "code"), FORMATS.values(), ids=FORMATS)
def test_wrong_formats_are_refused(wrong, code):
    assert [diagnostic.code for diagnostic in diagnostics_of_format(wrong)] == [code]
