"""One minimal module for each error code of the verifier, which reports only this code, at its place."""

import re
from pathlib import Path

import pytest
from verified_modules import (
    AXES,
    BODY,
    BUFFERS,
    FETCH,
    FLOATS,
    HALF,
    HALVES,
    INTO_X,
    MASK,
    OWN,
    PARAMS,
    RANGE,
    REDUCER,
    RUN,
    SCALE,
    TRUE,
    V0,
    V1,
    VALUE,
    N,
    W,
    accumulate,
    block,
    callee,
    combining,
    flat,
    larger,
    loop,
    module,
    negated,
    on_threads,
    over,
    sparse,
    value,
)

import gossamer_ir.verify
from gossamer_ir.core.build import ONE, ZERO, handle, index, index_var
from gossamer_ir.errors import VerifyError
from gossamer_ir.nodes import (
    Allocate,
    AsyncCopy,
    Atomic,
    AttachAxis,
    Binary,
    BlockIter,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Const,
    DenseFixed,
    DenseVaried,
    For,
    FuseAxes,
    IfThenElse,
    LaneReduce,
    Lanes,
    Launch,
    Load,
    Module,
    Monotone,
    ParallelFor,
    Param,
    Ramp,
    Range,
    Region,
    Reinterpret,
    Relation,
    Search,
    Shuffle,
    SparseBuffer,
    Store,
    Var,
    WaitGroup,
)
from gossamer_ir.verify import diagnostics, verify

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
    "verify.reducer.impure": (
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
    "verify.combine.alias": (combining(Store("X", (ZERO,), Load("X", (N,), "float32"))), BODY),
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
    "verify.shuffle.offset": (
        module(Shuffle("xor", index_var("a"), ZERO, 8, 8), stage="flat"),
        BODY,
    ),
    "verify.copy.body": (module(AsyncCopy(()), stage="flat"), BODY),
    "verify.copy.scope": (
        module(AsyncCopy((Store("X", (ZERO,), Load("X", (ONE,), "float32")),)), stage="flat"),
        BODY,
    ),
    "verify.copy.size": (
        module(
            Allocate(Buffer("S", (N,), "float16", scope="shared")),
            Allocate(Buffer("G", (N,), "float16")),
            AsyncCopy((Store("S", (ZERO,), Load("G", (ZERO,), "float16")),)),
            stage="flat",
        ),
        ("functions", 0, "body", 2),
    ),
    "verify.wait.pending": (module(WaitGroup(-1), stage="flat"), BODY),
    "verify.for.thread": (module(loop(kind="thread_binding")), BODY),
    "verify.thread.tag": (module(loop(kind="thread_binding", thread="threadIdx.w")), BODY),
    "verify.thread.duplicate": (
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
FORMAT_CODES = {"verify.format.fact", "verify.format.map", "verify.format.shape"}


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
    source = "".join(path.read_text() for path in folder.rglob("*.py"))
    assert set(re.findall(r'"(verify\.[a-z.]+)"', source)) == CASES.keys() | FORMAT_CODES
