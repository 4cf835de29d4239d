"""Invalid modules, which backends must refuse. Each has one defect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from gossamer_ir.core.build import add, index, index_var
from gossamer_ir.core.constants import constant
from gossamer_ir.nodes import (
    Binary,
    Broadcast,
    Buffer,
    Compare,
    Const,
    Expr,
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
    Stmt,
    Store,
    Unary,
    Var,
    While,
)

_I, _N = index_var("i"), index_var("n")
_X = Buffer("X", (_N,), "float32", "x")
_ONE = constant(1, "float32")
_FIRST = Load("X", (index(0),), "float32")


def _module(*body: Stmt, **changes: Any) -> Module:
    params = (Param("x", "handle"), Param("n", "int64"))
    function = Function("entry", params, body, buffers=(_X,))
    return Module("flat", (replace(function, **changes),), "entry")


def _store(value: Expr, *indices: Expr, buffer_name: str = "X") -> Module:
    return _module(Store(buffer_name, indices or (index(0),), value))


def _deep() -> Module:
    value: Expr = _FIRST
    for _ in range(100_000):
        value = Unary("neg", value)
    return _store(value)


def _two_functions(call: Stmt) -> Module:
    entry = _module(call)
    other = Function("other", (Param("n", "int64"),), ())
    return replace(entry, functions=(*entry.functions, other))


def _mask(lanes: int) -> Expr:
    return Compare("lt", Ramp(index(0), index(1), Lanes(lanes)), Broadcast(_N, Lanes(lanes)))


BAD_MODULES: dict[str, Callable[[], Module]] = {
    "another stage": lambda: replace(_module(), stage="loop"),
    "no such stage": lambda: replace(_module(), stage="asm"),
    "no function": lambda: Module("flat", (), "entry"),
    "no entry": lambda: replace(_module(), entry="other"),
    "two functions of one name": lambda: replace(_module(), functions=_module().functions * 2),
    "two parameters of one name": lambda: _module(params=(Param("n", "int64"),) * 2),
    "a parameter without a dtype": lambda: _module(params=(Param("x", "handle"), Param("n", ""))),
    "a pointer without a buffer": lambda: _module(buffers=()),
    "a buffer without its pointer": lambda: _module(params=(Param("n", "int64"),)),
    "an unknown buffer": lambda: _store(_ONE, buffer_name="Y"),
    "an unknown variable": lambda: _store(_ONE, index_var("k")),
    "a variable of another dtype": lambda: _store(Var("n", "float32")),
    "a variable after its loop": lambda: _module(
        For("i", index(0), _N, (Store("X", (_I,), _ONE),)), Store("X", (_I,), _ONE)
    ),
    "a value of another dtype": lambda: _store(constant(1, "float64")),
    "a load of another dtype": lambda: _store(Load("X", (index(0),), "int32")),
    "operands of two dtypes": lambda: _store(Binary("add", _ONE, constant(1, "float64"))),
    "an operation that floats lack": lambda: _store(Binary("bitand", _ONE, _ONE)),
    "no such operation": lambda: _store(Binary("plus", _ONE, _ONE)),  # type: ignore[arg-type]  # wrong on purpose
    "no such dtype": lambda: _store(Const("float31", "1")),
    "a constant that is not a number": lambda: _store(Const("float32", "one")),
    "a constant out of range": lambda: _store(_ONE, Const("int64", str(2**63))),
    "an index that is not an integer": lambda: _store(_ONE, _ONE),
    "an index of 32 bits": lambda: _store(_ONE, constant(0, "int32")),
    "too many indices": lambda: _store(_ONE, index(0), index(0)),
    "vectors of two lengths": lambda: _module(
        Store("X", (Ramp(index(0), index(1), Lanes(4)),), Broadcast(_ONE, Lanes(8)))
    ),
    "a vector to one element": lambda: _store(Broadcast(_ONE, Lanes(4))),
    "vectors of no lanes": lambda: _module(
        Store("X", (Ramp(index(0), index(1), Lanes(0)),), Broadcast(_ONE, Lanes(0)))
    ),
    "a mask without what it leaves": lambda: _store(Load("X", (index(0),), "float32", _mask(1))),
    "a mask of another length": lambda: _module(
        Store("X", (Ramp(index(0), index(1), Lanes(4)),), Broadcast(_ONE, Lanes(4)), _mask(8))
    ),
    "a condition that is not a bool": lambda: _module(While(_N, ())),
    "a guard of an unknown buffer": lambda: _module(Guard(Compare("gt", _N, index(0)), "Y")),
    "a prefetch of an unknown buffer": lambda: _module(Prefetch("Y", (index(0),))),
    "a let of another dtype": lambda: _module(Let(Var("t", "float64"), _ONE)),
    "a launch of an unknown function": lambda: _module(Launch("other", ())),
    "a function that launches itself": lambda: _module(Launch("entry", (Var("x", "handle"), _N))),
    "a launch with too few arguments": lambda: _two_functions(Launch("other", ())),
    "a launch with a wrong argument": lambda: _two_functions(Launch("other", (_ONE,))),
    "a parallel loop over a function of other parameters": lambda: _two_functions(
        ParallelFor("other", "i", index(0), _N, ())
    ),
    "an expression as deep as a well": _deep,
    "a size of an unknown variable": lambda: _module(
        buffers=(Buffer("X", (add(index_var("k"), index(1)),), "float32", "x"),)
    ),
}
"""A function for each defect that makes a new module with it."""
