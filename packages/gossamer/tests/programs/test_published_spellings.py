"""Scripts in published spellings are parsed, printed, encoded, verified, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import gossamer as gs
from gossamer.compilation.pipeline import lower_by_stage
from gossamer_formats.checks.storage_checks import require_valid_storage
from gossamer_formats.storage import Storage
from gossamer_ir.errors import ArgumentError, ParseError, PluginError, UnsupportedError, UserError
from gossamer_ir.interchange.records import Schedule
from gossamer_ir.interchange.serialization import dumps, dumps_record, loads, loads_record
from gossamer_ir.interpret import run
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format, parse_module, print_format, print_module
from gossamer_ir.verify import verify
from gossamer_ir.verify.formats import diagnostics_of_format


def require(text, arguments, expected):
    """The program computes the expected arrays at every stage, and natively."""
    module = verify(parse_module(text))
    assert parse_module(print_module(module)) == module == loads(dumps(module))
    for lowered in lower_by_stage(module, Schedule()):
        if lowered.stage != "flat":
            values = {name: np.copy(value) for name, value in arguments.items()}
            entry = next(each for each in lowered.functions if each.name == lowered.entry)
            kernel_arguments = {param.name: values[param.name] for param in entry.params}
            run(lowered, {k: v if v.ndim else int(v) for k, v in kernel_arguments.items()})
            check(values, expected)
    values = {name: np.copy(value) for name, value in arguments.items()}
    gs.compile(text)(**{name: v if v.ndim else int(v) for name, v in values.items()})
    check(values, expected)


def check(values, expected):
    for name, wanted in expected.items():
        np.testing.assert_array_equal(values[name].reshape(wanted.shape), wanted)


def arrays(**changes):
    return {name: np.asarray(value) for name, value in changes.items()}


ROWS = """
@T.prim_func
def rows(a: T.handle, indptr: T.handle, m: T.int32, nnz: T.int32) -> None:
    T.func_attr({"global_symbol": "main", "tir.noalias": True, "sparse_tir_level": 0})
    J_indptr_data = T.match_buffer(indptr, [m + 1], dtype="int32", strides=[1])
    A_data = T.match_buffer(a, [nnz], dtype="float32", strides=[1])
    row = T.decl_buffer([nnz], dtype="int32", strides=[1])
    T.assume_buffer_domain(J_indptr_data, [0, nnz + 1])
    T.assume_buffer_domain(row, [0, m + 1])
    for p in T.serial(nnz):
        with T.block("find"):
            vp = T.axis.spatial(nnz, p)
            T.reads(J_indptr_data[0 : m + 1])
            T.writes(row[vp])
            T.block_attr({"sparse": True})
            first = T.alloc_buffer([1], dtype="int32", strides=[1], scope="local")
            last = T.alloc_buffer([1], dtype="int32", strides=[1], scope="local")
            first[0] = 0
            last[0] = m + 1
            while first[0] < last[0]:
                row[vp] = first[0] + (last[0] - first[0]) // 2
                if J_indptr_data[row[vp]] > vp:
                    last[0] = row[vp]
                else:
                    first[0] = row[vp] + 1
            row[vp] = first[0] - 1
    for p in T.serial(nnz):
        with T.block("use"):
            vp = T.axis.spatial(nnz, p)
            A_data[vp] = (row[vp] + 2) * row[vp]
"""
"""The row of each position, by a search in its own loop: bounds in local buffers with strides, the end of the
range a size, the result an index buffer with a declared domain, integers stored as floats."""

REDUCED = """
@T.prim_func
def reduced(
    A: T.Buffer[(6, 5), "float32"], B: T.Buffer[(6,), "float32"], P: T.Buffer[(6,), "int32"],
    scale: T.Buffer[4]
) -> None:
    for i, j in T.grid(6, 5):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[P[vi]] = T.float32(0)
            B[P[vi]] = B[P[vi]] + A[vi, vj] * scale[2]
"""


def copied(match, *, params="m: T.int32, n: T.int32, ld: T.int32", more=""):
    return f"""
@T.prim_func
def copied(x: T.handle, y: T.handle, {params}) -> None:
    {match}
    Y = T.match_buffer(y, (m, n), "float32"){more}
    for i, j in T.grid(m, n):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(X[vi, vj])
            T.writes(Y[vi, vj])
            Y[vi, vj] = X[vi, vj] * 2.0
"""


def test_a_search_as_published():
    indptr = np.array([0, 2, 2, 5, 6], np.int32)
    row = np.repeat(np.arange(4), np.diff(indptr)).astype(np.float32)
    require(
        ROWS,
        arrays(a=np.zeros(6, np.float32), indptr=indptr, m=4, nnz=6),
        {"a": (row + 2) * row},
    )


def test_parameters_that_are_buffers_in_the_older_spelling():
    a = np.arange(30, dtype=np.float32).reshape(6, 5)
    p = np.array([3, 1, 5, 0, 2, 4], np.int32)
    b = np.empty(6, np.float32)
    b[p] = a.sum(axis=1) * 3
    scale = np.array([1, 2, 3, 4], np.float32)
    require(REDUCED, arrays(A=a, B=np.zeros_like(b), P=p, scale=scale), {"B": b})


@pytest.mark.parametrize(
    ("match", "stored"),
    [
        ('X = T.match_buffer(x, (m, n), "float32", strides=[n, 1])', lambda x: x),
        ('X = T.match_buffer(x, (m, n), "float32", strides=[1])', lambda x: x),
        ('X = T.match_buffer(x, (m, n), "float32", strides=None)', lambda x: x),
        ('X = T.match_buffer(x, (m, n), "float32", strides=[ld, 1])', lambda x: np.pad(x, ((0, 0), (0, 4)))),
        ('X = T.match_buffer(x, (m, n), "float32", strides=[1, m])', lambda x: x.T),
        ('X = T.match_buffer(x, (m, n), "float32", strides=[1, ld])',
         lambda x: np.pad(x.T, ((0, 0), (0, 6)))),
        ('X = T.match_buffer(x, (m, n), "float32", strides=[n * 3, 3])',
         lambda x: np.stack([x, x + 50, x + 70], axis=2)),
        ('X = T.match_buffer(x, (m, n), "float32", strides=[ld * 2, 2])',
         lambda x: np.pad(np.stack([x, x + 50], axis=2), ((0, 0), (0, 4), (0, 0)))),
        ('X = T.match_buffer(x, (m, n), "float32", align=128, offset_factor=16, elem_offset=0)', lambda x: x),
        ('X = T.match_buffer(x, (m, n), "float32", align=-1, offset_factor=0)', lambda x: x),
    ],
    ids=["dense", "published", "none", "rows", "columns", "padded_columns", "spaced", "padded_spaced",
         "aligned", "unknown"],
)  # fmt: skip
def test_arrays_that_are_stored_with_strides(match, stored):
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    operand = np.ascontiguousarray(stored(x))
    require(
        copied(match),
        arrays(x=operand, y=np.zeros_like(x), m=3, n=5, ld=9),
        {"y": x * 2, "x": operand},
    )


OFFSETS = {
    "an offset": ("elem_offset=3", lambda x: np.r_[np.zeros(3), x.ravel()]),
    "an offset that is passed": ("elem_offset=ld", lambda x: np.r_[np.zeros(9), x.ravel()]),
    "rows after an offset": (
        "strides=[ld, 1], elem_offset=2",
        lambda x: np.r_[np.zeros(2), np.pad(x, ((0, 0), (0, 4))).ravel()],
    ),
    "columns after an offset": (
        "strides=[1, m], elem_offset=2",
        lambda x: np.r_[np.zeros(2), x.T.ravel()],
    ),
    "spaced after an offset": (
        "strides=[n * 2, 2], elem_offset=1",
        lambda x: np.r_[0, np.repeat(x.ravel(), 2)],
    ),
}


@pytest.mark.parametrize(("more", "stored"), OFFSETS.values(), ids=OFFSETS)
def test_arrays_that_begin_before_their_buffer(more, stored):
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    operand = stored(x).astype(np.float32)
    match = f'X = T.match_buffer(x, (m, n), "float32", {more})'
    require(
        copied(match),
        arrays(x=operand, y=np.zeros_like(x), m=3, n=5, ld=9),
        {"y": x * 2, "x": operand},
    )


@pytest.mark.parametrize("strides", [(5, 2), (2, 3), (3, 10), (7, 5), (1, 4)])
@pytest.mark.parametrize("offset", [0, 4])
def test_elements_that_lie_between_others(strides, offset):
    """Strides that are not multiples of each other, of a parameter, an allocation and regions."""
    text = f"""
@T.prim_func
def twice(X: T.Buffer((3, 4), "float32", strides={list(strides)}, elem_offset={offset}),
          Y: T.Buffer((3, 4), "float32")) -> None:
    L = T.alloc_buffer([3, 4], "float32", strides={list(strides)}, elem_offset={offset})
    for i, j in T.grid(3, 4):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(X[vi, vj])
            T.writes(L[vi, 0:4])
            L[vi, vj] = X[vi, vj]
    for i, j in T.grid(3, 4):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = L[vi, vj] + L[2 - vi, vj]
"""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    operand = np.full(offset + 1 + 2 * strides[0] + 3 * strides[1], 99, np.float32)
    places = offset + np.add.outer(np.arange(3) * strides[0], np.arange(4) * strides[1])
    operand[places] = x
    if strides == (1, 4):  # nested: whole columns of four
        operand = np.append(operand, x[:1, 0])
        operand = operand if offset else operand.reshape(4, 4)
    require(text, arrays(X=operand, Y=np.zeros_like(x)), {"Y": x + x[::-1]})


def test_a_buffer_with_strides_is_what_it_is_in_memory():
    """Column-major order (order F in NumPy), passed as the transposed array."""
    text = copied(
        'X = T.match_buffer(x, (m, n), "float32", strides=[1, m])', params="m: T.int32, n: T.int32"
    )
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    y = np.zeros_like(x)
    gs.compile(text)(x=np.asfortranarray(x).T, y=y)
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize("strides", ["[32, 1]", "[1, 8]", "[64, 2]", "[8, 1]", "[1]"])
def test_local_buffers_with_strides(strides):
    text = f"""
@T.prim_func
def twice(x: T.handle, n: T.int32) -> None:
    X = T.match_buffer(x, (n, 8), "float32")
    for i in T.serial(n):
        L = T.alloc_buffer([4, 8], "float32", strides={strides}, scope="local", align=64)
        for k in T.serial(4):
            for j in T.serial(8):
                L[k, j] = X[i, j] * (k + 1)
        for j in T.serial(8):
            X[i, j] = L[1, j] + L[3, j]
"""
    text = text.replace("* (k + 1)", '* T.cast(k + 1, "float32")')
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    require(text, arrays(x=x, n=3), {"x": 6 * x})


def test_a_row_that_is_longer_than_its_stride_is_no_other_row():
    text = copied('X = T.match_buffer(x, (m, n), "float32", strides=[ld, 1])')
    x, y = np.zeros((3, 4), np.float32), np.zeros((3, 5), np.float32)
    with pytest.raises(ArgumentError) as caught:
        gs.compile(text)(x=x, y=y, ld=4)
    assert caught.value.code == "kernel.out_of_bounds"


@pytest.mark.parametrize("scope", ["wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"])
def test_scopes_of_operands_of_matrix_instructions(scope):
    text = copied('X = T.match_buffer(x, (m, n), "float32")', more=f"""
    F = T.alloc_buffer([16, 16], dtype="float16", scope="{scope}")""")  # fmt: skip
    module = parse_module(text)
    assert module == parse_module(text.replace(scope, "fragment"))
    with pytest.raises(PluginError) as caught:
        gs.compile(text.replace("* 2.0", "* T.cast(F[0, 0], 'float32')"))
    assert caught.value.code == "plugin.undeclared"


def test_a_domain_of_what_is_computed_is_checked_where_it_is_used():
    text = """
@T.prim_func
def gathered(x: T.handle, p: T.handle, y: T.handle, m: T.int32, n: T.int32) -> None:
    X = T.match_buffer(x, (m,), "float32")
    P = T.match_buffer(p, (n,), "int32")
    Y = T.match_buffer(y, (n,), "float32")
    Q = T.decl_buffer((n,), "int32")
    T.assume_buffer_domain(Q, [0, m])
    for i in T.serial(n):
        Q[i] = P[i] + 1
    for i in T.serial(n):
        Y[i] = X[Q[i]]
"""
    x = np.arange(4, dtype=np.float32)
    y = np.zeros(3, np.float32)
    p = np.array([2, 0, 1], np.int32)
    require(text, arrays(x=x, p=p, y=y, m=4, n=3), {"y": x[p + 1]})
    with pytest.raises(ArgumentError) as caught:
        gs.compile(text)(x=x, p=np.array([0, 3, 0], np.int32), y=y)
    assert caught.value.code == "kernel.out_of_bounds"


@pytest.mark.parametrize(
    ("value", "is_taken"),
    [("m + 1", True), ("2 * m - n", True), ("m // 2", True), ("i", False), ("k", False),
     ("m + k", False), ("m + T.int64(2147483648)", False), ("T.int64(3)", False)],
)  # fmt: skip
def test_sizes_are_stored_in_the_dtype_that_they_are_declared_with(value, is_taken):
    text = f"""
@T.prim_func
def sizes(x: T.handle, m: T.int32, n: T.int32, k: T.int64) -> None:
    X = T.match_buffer(x, (m, n, k), "int32")
    for i in T.serial(m):
        X[i, 0, 0] = {value}
"""
    if is_taken:
        expected = np.zeros((3, 2, 1), np.int32)
        expected[:, 0, 0] = eval(value, {"m": 3, "n": 2})
        require(text, arrays(x=np.zeros((3, 2, 1), np.int32), m=3, n=2, k=1), {"x": expected})
        return
    with pytest.raises(ParseError) as caught:
        parse_module(text)
    assert caught.value.code == "parse.dtype"


SHARED = """
@T.prim_func
def blocks_of_rows(
    values: T.handle, products: T.handle, starts: T.handle, row_of: T.handle, column_of: T.handle,
    d: T.int32, m: T.int32, n: T.int32, nnz: T.int32, height: T.int32, width: T.int32, feat: T.int32,
) -> None:
    R = T.dense_fixed(d, idtype="int32")
    G = T.dense_variable(R, (m, nnz), starts, idtype="int32")
    I = T.sparse_fixed(G, (n, height), row_of, idtype="int32")
    J = T.sparse_fixed(I, (n, width), column_of, idtype="int32")
    F = T.dense_fixed(feat, idtype="int32")
    A = T.match_sparse_buffer(values, (R, G, I, J), dtype="float16")
    W = T.match_sparse_buffer(products, (R, G, I, J, F), dtype="float16")
    T.evaluate(0)
"""


def test_a_description_of_two_buffers_that_share_axes():
    description = parse_format(SHARED)
    assert description.buffer.name == "A"
    assert [buffer.name for buffer in description.more_buffers] == ["W"]
    assert parse_format(print_format(description)) == description
    assert loads_record(dumps_record(description), FormatDescription) == description
    assert diagnostics_of_format(description) == ()
    with pytest.raises(UnsupportedError) as caught:
        require_valid_storage(Storage(description, {}, {}))
    assert caught.value.code == "format.value_buffers"


def test_axes_of_the_second_buffer_are_checked():
    description = parse_format(SHARED.replace("(R, G, I, J, F)", "(R, I, G)"))
    assert diagnostics_of_format(description)


@pytest.mark.parametrize(
    "annotation", ["T.Buffer[n, 7]", "T.Buffer[:]", "T.handle[3]", "T.Buffer['float32', n, n]"]
)
def test_other_subscripts_of_parameters_are_refused(annotation):
    text = f"@T.prim_func\ndef f(x: {annotation}, n: T.int32) -> None:\n    T.evaluate(0)\n"
    with pytest.raises(UserError, match=r"\[(parse|verify)\."):
        verify(parse_module(text))
