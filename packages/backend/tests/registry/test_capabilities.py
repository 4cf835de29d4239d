"""Each construct of a module requires its capability."""

import pytest

from gossamer_backend import is_capability, required_capabilities
from gossamer_backend.registry.capabilities import CAPABILITIES
from gossamer_ir.core.build import ONE, ZERO, index_var
from gossamer_ir.core.constants import constant
from gossamer_ir.nodes import (
    Allocate,
    AsyncCopy,
    Atomic,
    Barrier,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    For,
    Function,
    Guard,
    Lanes,
    Launch,
    Let,
    Load,
    Module,
    ParallelFor,
    Param,
    Prefetch,
    Ramp,
    Reinterpret,
    Search,
    Shuffle,
    Store,
    Var,
    VScale,
    While,
)
from gossamer_ir.traversal.walk import walk

INDEX = index_var("i")
TRUE = constant(True, "bool")
NEEDS = {
    "nothing": (Let(INDEX, ONE), set()),
    "a dtype": (Let(Var("x", "uint16"), constant(1, "uint16")), {"dtype.uint16"}),
    "a cast": (Let(INDEX, Cast("uint8", INDEX)), {"dtype.uint8"}),
    "bits as another dtype": (Let(INDEX, Reinterpret("float64", INDEX)), {"dtype.float64"}),
    "an element": (Let(INDEX, Load("X", (INDEX,), "float16")), {"dtype.float16"}),
    "a scope": (Allocate(Buffer("S", (ONE,), "int64", scope="shared")), {"scope.shared"}),
    "a function": (
        Let(Var("x", "float32"), Call("exp", (constant(1.0, "float32"),), "float32")),
        {"call.exp", "dtype.float32"},
    ),
    "a vector type": (Let(Var("x", "int64x4"), Var("y", "int64x4")), {"vectors.fixed"}),
    "fixed lanes": (Let(INDEX, Ramp(INDEX, ONE, Lanes(4))), {"vectors.fixed"}),
    "scalable lanes": (Let(INDEX, Broadcast(INDEX, Lanes(4, True))), {"vectors.scalable"}),
    "vscale": (Let(INDEX, VScale()), {"vectors.scalable"}),
    "a scalable type": (Let(Var("x", "int64xvscalex2"), INDEX), {"vectors.scalable"}),
    "a search": (Let(INDEX, Search("exact", "X", (), ZERO, ONE, INDEX)), {"search"}),
    "while": (While(TRUE, ()), {"while"}),
    "a guard": (Guard(Compare("lt", INDEX, ONE), "X"), {"guard"}),
    "a parallel loop": (ParallelFor("g", "i", ZERO, ONE, ()), {"parallel"}),
    "a launch": (Launch("g", ()), {"launch"}),
    "a barrier": (Barrier(), {"barrier"}),
    "a shuffle": (Shuffle("xor", INDEX, ONE, 1), {"shuffle"}),
    "an asynchronous copy": (AsyncCopy(()), {"async_copy"}),
    "a prefetch": (Prefetch("X", (INDEX,)), {"prefetch"}),
    "an atomic accumulation": (Atomic("add", "X", (INDEX,), INDEX), {"atomic"}),
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
        For("j", ZERO, ONE, (Store("X", (Binary("add", INDEX, VScale()),), INDEX),)),
        {"vectors.scalable"},
    ),
}


@pytest.mark.parametrize(("stmt", "words"), NEEDS.values(), ids=NEEDS.keys())
def test_each_construct_needs_its_word(stmt, words):
    module = Module("flat", (Function("f", (), (stmt,)),), "f")
    assert required_capabilities(module) == words
    # A word that is missing from the table would make the suite refuse a backend that declares it.
    assert all(map(is_capability, words))


def test_misspelled_words_are_no_capabilities():
    wrong = ("while_", "dtype.float23", "scope.share", "call.", "call.a b", "vectors")
    assert not any(map(is_capability, wrong))


def test_every_type_that_requires_words_is_in_an_example():
    shown = {type(node) for stmt, _ in NEEDS.values() for node in walk(stmt)}
    assert CAPABILITIES.keys() <= shown


def test_a_parameter_requires_its_dtype():
    module = Module("flat", (Function("f", (Param("a", "float32"),), ()),), "f")
    assert required_capabilities(module) == {"dtype.float32"}
