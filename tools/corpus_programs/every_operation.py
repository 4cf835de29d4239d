"""Every operation on every dtype, scalar and with lanes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast, get_args

from gossamer_ir.core.build import index, index_var, mul
from gossamer_ir.core.constants import constant
from gossamer_ir.core.dtypes import NUMBERS, DType, with_lanes
from gossamer_ir.core.expression_kinds import dtype_of
from gossamer_ir.nodes import (
    Binary,
    BinaryOp,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    CompareOp,
    Expr,
    For,
    Function,
    IfThenElse,
    Lanes,
    Load,
    Module,
    Param,
    Ramp,
    Reinterpret,
    Select,
    Store,
    Unary,
    UnaryOp,
)
from tools.corpus_programs.program_source import CorpusProgram

HALVES = tuple(name for name in NUMBERS if DType(name).computed_in != name)
NATIVE_NUMBERS = tuple(name for name in NUMBERS if name not in HALVES)
"""The numbers that are computed in their own dtype."""
SIGNED = tuple(name for name in NATIVE_NUMBERS if DType(name).kind == "int")
UNSIGNED = tuple(name for name in NATIVE_NUMBERS if DType(name).kind == "uint")
FLOATS = tuple(name for name in NATIVE_NUMBERS if DType(name).kind == "float")
COMPARES: tuple[CompareOp, ...] = get_args(CompareOp)
COMMON = ("add", "sub", "mul", "min", "max", "select")
OF_INTEGERS = ("floordiv", "floormod", "bitand", "bitor", "bitxor", "shl", "shr", "bitnot")
OF_BITS = ("popcount", "ctz")
ROUNDINGS = ("sqrt", "floor", "ceil", "trunc", "tf32")
OF_BOOLS = ("and", "or", "not")
LANES = (
    ("float32", (2, 4, 8, 16, 32, 64)), ("float64", (2, 8)), ("int32", (4, 16)), ("int64", (8,)),
    ("int8", (64,)), ("int16", (16,)), ("uint8", (16,)), ("uint16", (8,)), ("uint32", (8,)),
    ("uint64", (4,)),
)  # fmt: skip
COMPARED_LANES = (("float32", 16), ("float64", 8), ("int32", 4), ("int8", 64), ("uint8", 16))
CAST_TARGETS = {
    "int64": ("bool", "int64"),
    "small": ("int8", "int16", "int32"),
    "unsigned": UNSIGNED,
    "floats": FLOATS,
    "halves": HALVES,
}
CAST_LANES = (
    ("int32", "int64", 16), ("float32", "float64", 8), ("int8", "float32", 16),
    ("float32", "float16", 16), ("float16", "float32", 8), ("float32", "bfloat16", 16),
    ("bfloat16", "float32", 8),
)  # fmt: skip

REINTERPRETED = (("float32", "uint32", 1), ("int64", "float64", 1), ("float32", "int32", 16))


def sources() -> Iterator[CorpusProgram]:
    """Yield the sources of these programs."""
    for dtype in NATIVE_NUMBERS:
        yield _rows("arithmetic", dtype, _arithmetic(dtype, lanes=1))
        yield _rows("compare", dtype, COMPARES, output="bool")
    yield _rows("logic", "bool", OF_BOOLS)
    for dtype in FLOATS:
        for name in ROUNDINGS:
            yield _rows(name, dtype, (name,))
    for dtype in (*SIGNED, *FLOATS):
        yield _rows("abs", dtype, ("abs",))
    for dtype in (*SIGNED, *UNSIGNED):
        yield _rows("bits", dtype, OF_BITS)
    for dtype, lanes in (("int64", 8), ("uint8", 16)):
        yield _rows("bits", dtype, OF_BITS, lanes=lanes)
    for dtype, counts in LANES:
        for lanes in counts:
            yield _rows("arithmetic", dtype, _arithmetic(dtype, lanes=lanes), lanes=lanes)
    for dtype, lanes in COMPARED_LANES:
        yield _rows("compare", dtype, COMPARES, output="bool", lanes=lanes)
    yield _rows("sqrt", "float32", ("sqrt",), lanes=16)
    for dtype, other, lanes in REINTERPRETED:
        yield _rows("reinterpret", dtype, ("reinterpret",), output=other, lanes=lanes)
    for source in ("bool", *NATIVE_NUMBERS, *HALVES):
        for family, targets in CAST_TARGETS.items():
            others = tuple(target for target in targets if target != source)
            yield _casts(source, others, f"cast_{source}_to_{family}")
    for source, target, lanes in CAST_LANES:
        yield _casts(source, (target,), f"cast_{source}x{lanes}_to_{target}", lanes=lanes)


def _arithmetic(dtype: str, *, lanes: int) -> tuple[str, ...]:
    dtype_operations = ("div", "neg") if dtype in FLOATS else OF_INTEGERS
    signed = ("neg",) if dtype in SIGNED else ()
    return (*COMMON, *dtype_operations, *signed, *(("if_then_else",) if lanes == 1 else ()))


def _rows(
    family: str, dtype: str, rows: tuple[str, ...], *, output: str = "", lanes: int = 1
) -> CorpusProgram:
    """Return a program in which OUT[r, i] is the operation rows[r] of X[i] and Z[i]."""
    kind = output or dtype
    n, where, steps = _positions(lanes)
    buffers = (
        Buffer("X", (n,), dtype, "x"),
        Buffer("Z", (n,), dtype, "z"),
        Buffer("OUT", (index(len(rows)), n), kind, "out"),
    )
    wide = dtype if lanes == 1 else with_lanes(dtype, lanes)
    x, z = Load("X", (where,), wide), Load("Z", (where,), wide)
    stores = tuple(
        Store("OUT", (index(row), where), _operation(name, x, z, lanes, output=kind))
        for row, name in enumerate(rows)
    )
    loop = For("i", index(0), steps, stores)
    params = (*(Param(name, "handle") for name in ("x", "z", "out")), Param("n", "int64"))
    suffix = "" if lanes == 1 else f"x{lanes}"
    return CorpusProgram(
        f"{family}_{dtype}{suffix}",
        f"Each row of the output is an operation on X and Z: {', '.join(rows)}.",
        Module("flat", (Function("rows", params, (loop,), buffers=buffers),), "rows"),
        "truths" if dtype == "bool" else "pairs",
        "elementwise",
        {"dtype": dtype, "output": kind, "rows": list(rows)},
    )


def _positions(lanes: int) -> tuple[Expr, Expr, Expr]:
    """Return the size, the indices that an iteration reads and writes, and the number of iterations."""
    n, at = index_var("n"), index_var("i")
    if lanes == 1:
        return n, at, n
    ramp = Ramp(mul(at, index(lanes)), index(1), Lanes(lanes))
    return n, ramp, Binary("floordiv", n, index(lanes))


def _operation(name: str, x: Expr, z: Expr, lanes: int, *, output: str) -> Expr:
    dtype = dtype_of(x)
    if name == "reinterpret":
        return Reinterpret(with_lanes(output, lanes) if lanes > 1 else output, x)
    if name in COMPARES:
        return Compare(name, x, z)
    if name in get_args(UnaryOp):
        return Unary(cast(UnaryOp, name), x)
    if name in ("abs", *ROUNDINGS, *OF_BITS):
        return Call(name, (x,), dtype)
    if name == "select":
        return Select(Compare("lt", x, z), x, z)
    if name == "if_then_else":
        return IfThenElse(Compare("lt", x, z), z, x)
    if name in ("floordiv", "floormod"):
        z = Binary("bitor", z, _literal(1, dtype, lanes))
    if name in ("shl", "shr"):
        z = Binary("floormod", z, _literal(DType.parse(dtype).bits - 1, dtype, lanes))
    return Binary(cast(BinaryOp, name), x, z)


def _literal(value: int, dtype: str, lanes: int) -> Expr:
    scalar = constant(value, DType.parse(dtype).scalar)
    return scalar if lanes == 1 else Broadcast(scalar, Lanes(lanes))


def _casts(source: str, targets: tuple[str, ...], name: str, *, lanes: int = 1) -> CorpusProgram:
    n, where, steps = _positions(lanes)

    def kind(dtype: str) -> str:
        return dtype if lanes == 1 else with_lanes(dtype, lanes)

    x = Load("X", (where,), kind(source))
    outputs = tuple(Buffer(f"Y_{target}", (n,), target, f"y_{target}") for target in targets)
    stores = tuple(Store(buffer.name, (where,), Cast(kind(buffer.dtype), x)) for buffer in outputs)
    buffers = (Buffer("X", (n,), source, "x"), *outputs)
    params = (*(Param(buffer.handle or "", "handle") for buffer in buffers), Param("n", "int64"))
    loop = For("i", index(0), steps, stores)
    return CorpusProgram(
        name,
        f"Each output holds X converted from {source} to its own dtype.",
        Module("flat", (Function("casts", params, (loop,), buffers=buffers),), "casts"),
        "cast_values",
        "casts",
        {"source": source, "targets": list(targets)},
    )
