"""Every pass and primitive returns a result or raises an error of gossamer, for every verified module and
any arguments.
"""

from __future__ import annotations

import random

import pytest

from gossamer_ir.errors import UserError
from gossamer_ir.interchange.records import Step
from gossamer_ir.nodes import Allocate, Block, For, Iteration
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics, verify
from gossamer_lower import lower_to_flat
from gossamer_lower.passes_by_name import PASSES, apply_pass
from gossamer_schedule import PRIMITIVES, apply
from gossamer_schedule.trace.replay import parameters_of
from gossamer_testkit import script

pytestmark = pytest.mark.unserialized

POSITION = """
@T.prim_func
def f(a: T.handle, y: T.handle, p: T.handle, m: T.int64, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (n, n), p, "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    for i in T.serial(m):
        for j in T.serial(3):
            with T.block("b"):
                vi, vj = T.axis.remap("SR", [i, j])
                Y[vi] = Y[vi] + A[vi, vj]
"""
RAGGED = """
@T.prim_func
def f(a: T.handle, p: T.handle, q: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, m, p)
    K = T.sp.dense_varied(J, m, q)
    A = T.sp.match_buffer(a, (I, J, K), "float32")
    for i in T.serial(m):
        A[i, 0, 1] = 2.0
"""
ALLOCATED = """
@T.prim_func
def f(y: T.handle, m: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    K = T.sp.dense_fixed(4)
    W = T.sp.alloc_buffer((I, K), "float32", extra_storage=2)
    Y = T.sp.match_buffer(y, (I,), "float32")
    Z = T.alloc_buffer((m, 3, 5), "float32")
    for i in T.serial(m):
        with T.block("w"):
            vi = T.axis.spatial(m, i)
            W[vi, 0] = Y[vi]
            Z[vi, 0, 0] = 1.0
    for k in T.serial(m):
        with T.block("y"):
            vk = T.axis.spatial(m, k)
            with T.init():
                Y[vk] = 0.0
            Y[vk] = Y[vk] + W[vk, 0] + Z[vk, 0, 0]
"""
LOOP = """
@T.prim_func
def f(x: T.handle, y: T.handle, p: T.handle, n: T.int64, a: T.float32) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n, 4), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (n,), "int64")
    for i in T.serial(n):
        for j in T.serial(4):
            with T.block("b"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[vi] = 0.0
                Y[vi] = Y[vi] + X[P[vi], vj] * a
    P[0] = P[0] + 1
    while P[0] < 3:
        P[0] = P[0] + 1
        s: T.int64 = T.search("lower", P, begin=0, end=n, value=P[0])
        if s < n:
            Y[s] = T.exp(Y[s])
        else:
            T.guard(s < 5, Y)
"""
SCALAR = """
@T.prim_func
def f(x: T.handle) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (), "float32")
    X[()] = 1.0
"""
EMPTY = """
@T.prim_func
def f() -> None:
    T.func_attr({"sparse_tir_level": 0})
    T.evaluate(0)
"""
MARKED = """
@T.prim_func
def f(x: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    for i in T.parallel(n, weight=i * 2, grain=7):
        for j in T.vectorized(4):
            for k in T.unroll(2):
                X[i] = X[i] + 1.0
    X[T.ramp(0, 1, 4)] = T.broadcast(T.float32(1), 4)
"""
FLAT = """
@T.prim_func
def rows(begin: T.int64, end: T.int64, x: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float64")
    for i in T.serial(begin, end):
        X[i] = 1.0

@T.prim_func(entry=True)
def entry(x: T.handle, n: T.int64) -> None:
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float64")
    T.parallel_for("rows", "i", n, args=[x, n])
"""
TEXTS = {
    "position": POSITION, "ragged": RAGGED, "allocated": ALLOCATED, "loop": LOOP, "scalar": SCALAR,
    "empty": EMPTY, "marked": MARKED, "flat": FLAT,
}  # fmt: skip
NEXT = {"coordinate": "lower_iterations", "position": "lower_buffers", "loop": "lower_to_flat"}
PUBLISHED = ("csr_reduce", "sddmm_fused", "ragged_attention", "bsr_spmm", "dcsr_spmm")


def corpus():
    """The programs as written, and at each later stage."""
    named = {name: parse_module(text) for name, text in TEXTS.items()}
    named |= {name: parse_module(script(name)) for name in PUBLISHED}
    counts = {}
    for name, module in named.items():
        counts[f"{name}, {module.stage}"] = verify(module)
        while module.stage in NEXT and f"{name} {module.stage}" not in REFUSED:
            module = apply_pass(NEXT[module.stage], module)
            counts[f"{name}, {module.stage}"] = verify(module)
    return counts


REFUSED = ("marked loop",)
"""Programs that cannot be lowered: loops that were marked by hand."""
MODULES = corpus()
STAGES = {module.stage for module in MODULES.values()}
ARGUMENTS = {
    "substitute_buffer": [
        {"buffer": buffer, **more}
        for buffer in ("X", "Y", "P", "A_data", "J_indptr", "none")
        for more in (
            {}, {"indices": ["i"], "value": "i"}, {"indices": ["i", "j"], "value": "i + j"},
            {"indices": ["i"], "value": "1.0"}, {"indices": ["i"], "value": "i / 0"},
            {"indices": ["i"], "value": "X[i]"}, {"indices": ["i", "i"], "value": "i"},
            {"indices": ["1"], "value": "none["}, {"shape": [3]}, {"shape": [3, 4]},
            {"shape": [-1]}, {"shape": [0]}, {"shape": [2**63]},
        )
    ],
    "extract_inspector": [{"dtype": dtype} for dtype in ("int32", "int64", "float32", "none")],
    "use_inspector_results": [{"dtype": dtype} for dtype in ("int32", "int64", "float32", "none")],
    "lower_math": [{"instructions": names} for names in ([], ["fma"], ["none"])],
    "lower_vscale": [{"vscale": vscale} for vscale in (-1, 0, 1, 2, 3, 1024, 1025, 2**63)],
}  # fmt: skip


def test_the_corpus_has_every_stage():
    assert {"coordinate", "position", "loop", "flat"} == STAGES


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_gives_a_module_or_an_error_of_ours(name):
    for module in MODULES.values():
        for arguments in ARGUMENTS.get(name, [{}]):
            try:
                result = apply_pass(name, module, arguments=arguments)
            except UserError:
                continue
            assert diagnostics(result) == ()


NUMBERS = (0, 1, 2, 3, 4, 8, -1, -5, 7, 2**31, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64)
WORDS = (
    "blockIdx.x", "threadIdx.x", "local", "global", "shared", "fragment", "atomic", "unsafe",
    "lambda i: i", "lambda i, j: (j, i)", "lambda i: (i // 4, i % 4)", "lambda i: (i // 0, i % 0)",
    "lambda", "lambda i: X[i]", "i", "n", "1 / 0", "P[i]", "masked", "none", "",
)  # fmt: skip


LIKELY = {
    "scope": ("local", "global"), "remainder": ("masked", "serial"), "access": ("read", "write"),
    "factors": ([None, 4], [2, None]), "factor": (4,), "offset": (0, 1), "distance": (1, 2),
    "thread": ("blockIdx.x", "threadIdx.x"), "condition": ("n > 4", "m > 4"), "points": ([1], [2, 3]),
    "key": ("note", "unroll"), "value": (1, "text"), "dtype": ("float64", "int64"), "parts": (2,),
    "candidates": ([1, 2], [4]), "axis": (0, 1), "lanes": (4,),
    "index_map": ("lambda i: i", "lambda i, j: (j, i)"), "stages": (2,),
}  # fmt: skip
"""Values that fit the arguments of a name, for most draws: otherwise few steps would be legal."""


def names_in(module):
    names = {"loop": [], "block": [], "iteration": [], "buffer": [], "axis": []}
    for function in module.functions:
        names["buffer"] += [buffer.name for buffer in function.buffers]
        names["axis"] += [axis.name for axis in function.axes]
    for node in walk(module):
        match node:
            case For(var=name):
                names["loop"].append(name)
            case Block(name=name):
                names["block"].append(name)
            case Iteration(name=name):
                names["iteration"].append(name)
            case Allocate():
                names["buffer"].append(node.buffer.name)
    same = {
        "name": names["loop"] + names["block"],
        "epilogue": names["block"],
        "into": names["iteration"],
    }
    return names | same


def drawn(draw, name, names):
    """A random value for an argument, mostly a valid one, of a type that steps accept."""
    if name in LIKELY and draw.random() < 0.8:
        return draw.choice(LIKELY[name])
    kinds = [
        kind_names for kind, kind_names in names.items() if name.startswith(kind) and kind_names
    ]
    if kinds and draw.random() < 0.9:
        word = draw.choice(kinds[0])
        return word if not name.endswith("s") else [draw.choice(kinds[0]) for _ in range(2)]
    word = draw.choice((*WORDS, *(name for kind_names in names.values() for name in kind_names)))
    number = draw.choice(NUMBERS)
    return draw.choice((word, number, [number, number], [word, word], [None, number], True, None))


UNBOUNDED = {"sample_perfect_tile", "storage_align"}
"""Primitives whose running time grows with their numbers, which are small here."""


@pytest.mark.parametrize("op", PRIMITIVES)
def test_a_primitive_gives_a_module_or_an_error_of_ours(op):
    draw = random.Random(op)
    modules = [module for module in MODULES.values() if module.stage != "flat"]
    for _ in range(120):
        module = draw.choice(modules)
        arguments = {}
        for spelled in parameters_of(op):
            name, _, is_optional = spelled.partition("=")
            if not is_optional or draw.random() < 0.2:
                arguments[name] = drawn(draw, name, names_in(module))
        if op in UNBOUNDED:
            arguments = {
                name: value if not isinstance(value, int) else min(value, 64)
                for name, value in arguments.items()
            }
        try:
            result = apply(module, Step(op, arguments)).module
        except UserError:
            continue
        assert diagnostics(result) == ()


def test_a_pass_refuses_a_module_of_another_stage_by_name():
    with pytest.raises(UserError) as caught:
        lower_to_flat(MODULES["position, position"])
    assert caught.value.code == "pass.stage"
