"""Each construct of a module requires its capability."""

import pytest

from gossamer_backend import required_capabilities
from gossamer_ir.core.build import ONE, ZERO, index_var
from gossamer_ir.core.constants import constant
from gossamer_ir.nodes import (
    Allocate,
    Atomic,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Compare,
    For,
    Function,
    Guard,
    Lanes,
    Launch,
    Let,
    Module,
    ParallelFor,
    Prefetch,
    Ramp,
    Search,
    Store,
    Var,
    VScale,
    While,
)

I = index_var("i")  # noqa: E741
TRUE = constant(True, "bool")
NEEDS = {
    "nothing": (Let(I, ONE), set()),
    "a dtype": (Let(Var("x", "uint16"), constant(1, "uint16")), {"dtype.uint16"}),
    "a scope": (Allocate(Buffer("S", (ONE,), "int64", scope="shared")), {"scope.shared"}),
    "a function": (
        Let(Var("x", "float32"), Call("exp", (constant(1.0, "float32"),), "float32")),
        {"call.exp", "dtype.float32"},
    ),
    "a vector type": (Let(Var("x", "int64x4"), Var("y", "int64x4")), {"vectors.fixed"}),
    "fixed lanes": (Let(I, Ramp(I, ONE, Lanes(4))), {"vectors.fixed"}),
    "scalable lanes": (Let(I, Broadcast(I, Lanes(4, True))), {"vectors.scalable"}),
    "vscale": (Let(I, VScale()), {"vectors.scalable"}),
    "a scalable type": (Let(Var("x", "int64xvscalex2"), I), {"vectors.scalable"}),
    "a search": (Let(I, Search("exact", "X", (), ZERO, ONE, I)), {"search"}),
    "while": (While(TRUE, ()), {"while"}),
    "a guard": (Guard(Compare("lt", I, ONE), "X"), {"guard"}),
    "a parallel loop": (ParallelFor("g", "i", ZERO, ONE, ()), {"parallel"}),
    "a launch": (Launch("g", ()), {"launch"}),
    "a prefetch": (Prefetch("X", (I,)), {"prefetch"}),
    "an atomic accumulation": (Atomic("add", "X", (I,), I), {"atomic"}),
    "a loop whose iterations share elements": (
        For("j", ZERO, ONE, (), annotations=(("atomic", True),)),
        {"atomic"},
    ),
    "a serial loop": (For("j", ZERO, ONE, ()), set()),
    "threads": (
        For("j", ZERO, ONE, (), kind="thread_binding", thread="threadIdx.x"),
        {"thread_binding"},
    ),
    "something deep inside": (
        For("j", ZERO, ONE, (Store("X", (Binary("add", I, VScale()),), I),)),
        {"vectors.scalable"},
    ),
}


@pytest.mark.parametrize(("statement", "words"), NEEDS.values(), ids=NEEDS.keys())
def test_each_construct_needs_its_word(statement, words):
    module = Module("flat", (Function("f", (), (statement,)),), "f")
    assert required_capabilities(module) == words
