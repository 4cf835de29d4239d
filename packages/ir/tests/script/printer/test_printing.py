"""Printed scripts: golden files, precedence, literals, ranges, places and carets."""

import itertools
from typing import get_args

import pytest

from gossamer_ir import nodes
from gossamer_ir.core.build import index, index_var
from gossamer_ir.errors import Diagnostic
from gossamer_ir.nodes import Binary, Compare, Const, Range, Unary, Var
from gossamer_ir.script import (
    parse_expr,
    parse_format,
    parse_module,
    parse_source,
    print_expr,
    print_format,
    print_module,
)
from gossamer_ir.script.parser.state.range_stops import extent_between, stop_of
from gossamer_ir.script.printer.declarations import AXIS_PRINTERS, FACT_PRINTERS
from gossamer_ir.script.printer.expressions import EXPR_PRINTERS
from gossamer_ir.script.printer.statements import ITERATION_AXIS_TEXTS, STMT_PRINTERS
from gossamer_ir.script.render import render
from gossamer_ir.verify import diagnostics

COORDINATE = """
@T.prim_func
def csrmm(
    a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int32, n: T.int32, feat_size: T.int32, nnz: T.int32,
):
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "int32")
    J_detach = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(feat_size)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (J_detach, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "csrmm") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] += A[i, j] * B[j, k]
"""

HEAD, _, _ = COORDINATE.partition("    with")

POSITION = (
    HEAD.replace('_level": 2', '_level": 1')
    + """
    J_indptr = T.sp.match_buffer(indptr, (I,), "int32", extra_storage=1)
    J_indices = T.sp.match_buffer(indices, (I, J), "int32")
    for i in T.serial(m):
        for j in T.serial(J_indptr[i + 1] - J_indptr[i]):
            for k in T.serial(K):
                with T.block("csrmm"):
                    vi, vj, vk = T.axis.remap("SRS", [i, j, k])
                    with T.init():
                        C[vi, vk] = 0.0
                    C[vi, vk] += A[vi, vj] * B[J_indices[vi, vj], vk]
"""
)

LOOP = """
@T.prim_func
def csrmm(
    a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int32, n: T.int32, feat_size: T.int32, nnz: T.int32,
):
    T.func_attr({"sparse_tir_level": 0})
    A_data = T.match_buffer(a, (nnz,), "float32")
    B_data = T.match_buffer(b, (n, feat_size), "float32")
    C_data = T.match_buffer(c, (m, feat_size), "float32")
    J_indptr_data = T.match_buffer(indptr, (m + 1,), "int32")
    J_indices_data = T.match_buffer(indices, (nnz,), "int32")
    T.assume(monotone(J_indptr_data))
    T.assume(in_range(J_indptr_data, 0, nnz + 1))
    T.assume(in_range(J_indices_data, 0, n))
    T.assume(sorted_segments(J_indices_data, J_indptr_data, unique=True))
    for i in T.parallel(m, weight=J_indptr_data[i], grain=4096):
        for j in T.serial(J_indptr_data[i + 1] - J_indptr_data[i]):
            for k_0 in T.serial((feat_size + 15) // 16):
                for k_1 in T.vectorized(16):
                    with T.block("csrmm"):
                        vi, vj = T.axis.remap("SR", [i, j])
                        vk = T.axis.spatial(feat_size, k_0 * 16 + k_1)
                        T.where(k_0 * 16 + k_1 < feat_size)
                        with T.init():
                            C_data[vi, vk] = 0.0
                        C_data[vi, vk] += (
                            A_data[J_indptr_data[vi] + vj]
                            * B_data[J_indices_data[J_indptr_data[vi] + vj], vk]
                        )
"""

FLAT = """
@T.prim_func
def rows(begin: T.int64, end: T.int64, x: T.handle, n: T.int64):
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    acc = T.alloc_buffer((4,), "float32", scope="local")
    for i in T.serial(begin, end):
        mask: T.boolxvscalex4 = T.ramp(i, 1, 4 * T.vscale()) < T.broadcast(n, 4 * T.vscale())
        T.store(
            X, T.ramp(i, 1, 4 * T.vscale()), predicate=mask,
            value=T.load(X, T.ramp(i, 1, 4 * T.vscale()), predicate=mask, passthrough=0.0) * 2.0,
        )
        T.prefetch(X[i + 64])
        acc[0] = T.lane_reduce("add", X[T.ramp(i, 1, 16)])

@T.prim_func(entry=True)
def scale(x: T.handle, p: T.handle, n: T.int64):
    T.stage("flat")
    X = T.match_buffer(x, (n,), "float32")
    P = T.match_buffer(p, (n + 1,), "int64")
    T.guard(n < 100, P)
    T.parallel_for("rows", "i", n, args=[x, n], weight=P[i], grain=4096)
    T.launch("rows", [0, n, x, n], threads={"blockIdx.x": n, "threadIdx.x": 32})
"""

BSR = """
@T.format
def bsr(a: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64, b: T.int64):
    IO = T.sp.dense_fixed(m)
    JO = T.sp.compressed_varied(IO, n, (p, q), "int32")
    II = T.sp.dense_fixed(b)
    JI = T.sp.dense_fixed(b)
    A = T.sp.match_buffer(a, (IO, JO, II, JI))
    T.sp.map(lambda io, jo, ii, ji: (io * b + ii, jo * b + ji))
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [("coordinate", COORDINATE), ("position", POSITION), ("loop", LOOP), ("flat", FLAT)],
)
def test_printed_text_of_a_stage_is_golden(golden, name, text):
    golden(f"{name}.txt", print_module(parse_module(text)))


def test_printed_format_is_golden(golden):
    golden("format.txt", print_format(parse_format(BSR)))


X, Y = Var("x", "int64"), Var("y", "int64")
DTYPES = {"x": "int64", "y": "int64", "u": "float32", "X": "int32"}
OPS = (
    "add",
    "sub",
    "mul",
    "floordiv",
    "floormod",
    "bitand",
    "bitor",
    "bitxor",
    "shl",
    "shr",
    "min",
)


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(OPS, OPS)))
def test_nested_operators_keep_their_shape(outer, inner):
    for expr in (
        Binary(outer, Binary(inner, X, Y), X),
        Binary(outer, X, Binary(inner, X, Y)),
        Unary("neg", Binary(outer, X, Unary("bitnot", Y))),
        Compare("lt", Binary(outer, X, Y), Unary("neg", Binary(inner, X, Y))),
    ):
        assert parse_expr(print_expr(expr), DTYPES) == expr


@pytest.mark.parametrize(
    "text",
    [
        "x + 1", "-1 + x", "T.int64(2) * 3", "-T.int64(5)", "--x", "x - (y - x)", "x - y - x",
        "x < y and (y < x or not x == y)", "(x < y) == (y < x)", 'T.float32("inf")',
        'u * T.float32("nan")', "u * -0.0", "T.Select(x < 0, 1.0, u)", "T.Select(x < 0, 1, 0)",
        "u * T.exp(T.float32(1.0))", "T.if_then_else(x < 0, x, 0)",
        "T.int64(X[x]) + y", "T.uint8(x)", 'T.cast(T.broadcast(u, 16), "float64x16")',
        "T.ramp(x, 1, 4 * T.vscale())", "T.fma(u, u, 1.0)", "T.max(x, 9223372036854775807)",
        "x + -9223372036854775808", 'T.search("lower", X, begin=0, end=x, value=y)',
        "T.load(X, T.ramp(x, 1, 4), predicate=T.broadcast(True, 4), passthrough=T.broadcast(0, 4))",
    ],
)  # fmt: skip
def test_expression_text_is_its_own_print(text):
    assert print_expr(parse_expr(text, DTYPES)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1 + 2", "3"),
        ("T.min(x, 1)", "T.min(x, 1)"),
        ("min(x, 1)", "T.min(x, 1)"),
        ("T.floordiv(x, 2)", "x // 2"),
        ("x if x < 1 else y", "T.if_then_else(x < 1, x, y)"),
        ("X[x] + x", "T.int64(X[x]) + x"),
        ("X[x] - 1 < x", "T.int64(X[x]) - 1 < x"),
        ("T.float32(0)", "T.float32(0.0)"),
        ("T.min_value('int8')", "T.int8(-128)"),
        ("T.max_value('float32')", "T.float32(3.4028235e+38)"),
        ("+x", "x"),
    ],
)
def test_other_spellings_print_as_one(text, printed):
    assert print_expr(parse_expr(text, DTYPES)) == printed


VI, N = index_var("i"), index_var("n")


@pytest.mark.parametrize(
    "range_",
    [
        Range(index(0), N),
        Range(VI, index(1)),
        Range(VI, N),
        Range(VI, Binary("sub", N, VI)),
        Range(VI, Binary("sub", Binary("add", VI, N), VI)),
        Range(index(4), index(4)),
        Range(index(4), N),
    ],
)
def test_a_range_is_read_back_from_its_stop(range_):
    stop = stop_of(range_)
    assert stop is not None
    assert extent_between(range_.start, stop) == range_.extent


def test_a_range_beyond_int64_has_no_stop():
    assert stop_of(Range(index(2**63 - 1), index(2))) is None


def test_more_iterations_than_int64_holds_are_refused():
    text = "for i in T.serial(-9223372036854775807, 9223372036854775807):\n        Y[0] = 1.0"
    header = "@T.prim_func\ndef f(y: T.handle) -> None:\n    T.func_attr({'sparse_tir_level': 0})\n"
    module = parse_module(f"{header}    Y = T.match_buffer(y, (1,), 'float32')\n    {text}\n")
    assert [diagnostic.code for diagnostic in diagnostics(module)] == ["verify.const.text"]


def test_diagnostics_are_rendered_on_the_printed_text():
    place = ("functions", 0, "body", 0, "body", 0, "value", "rhs", "lhs", "indices", 1)
    text = render(parse_module(COORDINATE), [Diagnostic("x.y", "Wrong.", place, "Do so.")])
    message, line, source, carets = text.split("\n")
    assert message == "Wrong. Do so. [x.y]"
    assert line == "csrmm:24:"
    assert source.strip() == "C[i, k] = C[i, k] + A[i, j] * B[j, k]"
    assert source[carets.index("^") : len(carets)] == "j"


def test_diagnostics_are_rendered_on_the_source():
    place = ("functions", 0, "body", 0, "body", 0, "value", "rhs")
    parsed = parse_source(COORDINATE)
    _, line, source, carets = render(parsed, [Diagnostic("x.y", "Wrong.", place)]).split("\n")
    assert line == "line 18:"
    assert source[carets.index("^") : len(carets)] == "A[i, j] * B[j, k]"


def test_a_place_without_text_is_shown_at_the_one_around_it():
    place = ("functions", 0, "body", 0, "vars", 1)
    text = render(parse_module(COORDINATE), [Diagnostic("x.y", "Wrong.", place)])
    assert "with T.sp.iteration" in text
    assert render(parse_module(COORDINATE), [Diagnostic("x.y", "Wrong.")]) == "Wrong. [x.y]"


def test_the_printer_covers_every_expression_statement_axis_and_fact():
    assert set(EXPR_PRINTERS) == set(nodes.EXPRS)
    assert set(STMT_PRINTERS) == set(nodes.STMTS)
    assert set(AXIS_PRINTERS) == set(nodes.AXES)
    assert set(ITERATION_AXIS_TEXTS) == set(get_args(nodes.IterationAxis))
    assert set(FACT_PRINTERS) == set(nodes.FACTS)


def test_a_constant_that_is_not_canonical_still_prints():
    assert print_expr(Const("float32", "1.50")) == "T.float32(1.50)"
