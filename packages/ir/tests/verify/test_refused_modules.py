"""Further modules that the verifier refuses, each with one code; and a module with several findings."""

import pytest
from verified_modules import (
    AXES,
    BUFFERS,
    HALF,
    MASK,
    RUN,
    SPARSE_BUFFERS,
    SPARSE_PARAMS,
    STORE_W,
    TRUE,
    V0,
    V1,
    N,
    accumulate,
    block,
    callee,
    flat,
    initialized,
    loop,
    module,
    over,
    sparse,
    value,
)

from gossamer_ir.core.build import ONE, ZERO, handle, index, index_var
from gossamer_ir.errors import VerifyError
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    BlockIter,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    CompressedFixed,
    Const,
    DenseFixed,
    DenseVaried,
    For,
    Function,
    If,
    InRange,
    Iteration,
    LaneReduce,
    Lanes,
    Launch,
    Let,
    Load,
    Module,
    Param,
    Range,
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
from gossamer_ir.verify import diagnostics, verify

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
        sparse(over(["K"], "S", over(["I"], "S", STORE_W, name="inner", vars=("w",)))),
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
