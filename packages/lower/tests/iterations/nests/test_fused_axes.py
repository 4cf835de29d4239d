"""Fused iterations agree with NumPy at every stage, for every tree of axes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.nodes import Block, For, Guard, If, Search
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk
from gossamer_ir.verify import diagnostics
from gossamer_lower import FLAT_PASSES, lower_buffers, lower_iterations
from gossamer_lower.bounds_checks.insert_bounds_checks import insert_bounds_checks

HEADER = """
@T.prim_func
def f(HANDLES m: T.int64, n: T.int64, k: T.int64, nnz: T.int64, n2: T.int64, nnz2: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), "INT")
    D = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(k)
"""
HANDLES = ("a", "x", "y", "o", "p", "q", "p2", "q2")
SDDMM = """
    X = T.sp.match_buffer(x, (I, K), "FLOAT")
    Y = T.sp.match_buffer(y, (D, K), "FLOAT")
    Out = T.sp.match_buffer(o, (I, J), "FLOAT")
    with T.sp.iteration([AXES, K], "KINDS", "sddmm") as [i, j, k_]:
        with T.init():
            Out[i, j] = 0.0
        Out[i, j] = Out[i, j] + X[i, k_] * Y[j, k_]
"""
ELEMENTWISE = """
    A = T.sp.match_buffer(a, (I, J), "FLOAT")
    X = T.sp.match_buffer(x, (I,), "FLOAT")
    Y = T.sp.match_buffer(y, (D,), "FLOAT")
    Out = T.sp.match_buffer(o, (I, J), "FLOAT")
    with T.sp.iteration([AXES], "KINDS", "scale") as [i, j]:
        Out[i, j] = A[i, j] * X[i] + Y[j]
"""
SUMS = """
    A = T.sp.match_buffer(a, (I, J), "FLOAT")
    Out = T.sp.match_buffer(o, (AXIS,), "FLOAT")
    with T.sp.iteration([AXES], "KINDS", "sums") as [i, j]:
        with T.init():
            Out[VAR] = 0.0
        Out[VAR] = Out[VAR] + A[i, j]
"""
TREE = """
    L = T.sp.compressed_varied(J, (n2, nnz2), (p2, q2), "INT")
    N = T.sp.dense_fixed(n2)
    A = T.sp.match_buffer(a, (I, J, L), "FLOAT")
    X = T.sp.match_buffer(x, (I, J), "FLOAT")
    Y = T.sp.match_buffer(y, (N,), "FLOAT")
    Out = T.sp.match_buffer(o, (I, J, L), "FLOAT")
    with T.sp.iteration([AXES], "SSS", "tree") as [i, j, l]:
        Out[i, j, l] = A[i, j, l] * X[i, j] + Y[l] * 10.0 + T.cast(i, "float32")
"""


def program(body, *, axes="T.sp.fuse(I, J)", kinds="SS", header=HEADER, **names):
    names = {"INT": "int32", "FLOAT": "float32", "AXES": axes, "KINDS": kinds} | names
    text = header + body
    used = [name for name in HANDLES if re.search(rf"[(, ]{name}[,)]", text)]
    names["HANDLES"] = "".join(f"{name}: T.handle, " for name in used)
    for name, value in names.items():
        text = text.replace(name, value)
    return parse_module(text)


def stages(module):
    """The module after each pass."""
    lowered = [module, lower_iterations(module)]
    for lower in (lower_buffers, *FLAT_PASSES):
        lowered.append(lower(lowered[-1]))
    return lowered


def check(module, expected, **arguments):
    """Runs the module after each pass, from an output full of NaN."""
    dtype = next(b.dtype for b in module.functions[0].buffers if b.handle == "o")
    for stage in stages(module):
        assert diagnostics(stage) == (), stage.stage
        out = np.full(np.shape(expected), np.nan, dtype)
        run(stage, {name: arguments.get(name, 0) for name in _scalars(stage)}
            | {name: arguments[name] for name in _handles(stage) - {"o"}} | {"o": out})  # fmt: skip
        np.testing.assert_array_equal(out, expected, err_msg=stage.stage)


def _scalars(module):
    return {p.name for p in module.functions[0].params if p.dtype != "handle"}


def _handles(module):
    return {p.name for p in module.functions[0].params if p.dtype == "handle"}


@pytest.fixture
def csr(csr_arrays, matrix):
    """Arguments of a CSR matrix for HEADER, and the coordinates of its nonzeros."""

    def make(int_type="int32", float_type="float32", features=5):
        indptr, indices, data = csr_arrays(matrix)
        m, n = matrix.shape
        empty = np.empty(0, float_type)
        arguments = {
            "m": m, "n": n, "k": features, "nnz": len(data),
            "p": indptr.astype(int_type), "q": indices.astype(int_type),
            "a": data.astype(float_type), "x": empty, "y": empty, "p2": np.zeros(1, int_type),
            "q2": np.zeros(0, int_type),
        }  # fmt: skip
        rows = np.repeat(np.arange(m), np.diff(indptr))
        return arguments, rows, indices

    return make


TYPES = [("int32", "float32"), ("int64", "float64"), ("int32", "float64"), ("int64", "float32")]


@pytest.mark.parametrize(("int_type", "float_type"), TYPES)
@pytest.mark.parametrize("axes", ["I, J", "T.sp.fuse(I, J)"])
def test_sddmm(axes, int_type, float_type, csr):
    arguments, rows, columns = csr(int_type, float_type)
    x = (np.arange(arguments["m"] * 5) % 7 - 3).reshape(-1, 5).astype(float_type)
    y = (np.arange(arguments["n"] * 5) % 5 - 2).reshape(-1, 5).astype(float_type)
    module = program(SDDMM, axes=axes, kinds="SSR", INT=int_type, FLOAT=float_type)
    expected = (x[rows].astype(np.float64) * y[columns]).sum(axis=1)
    check(module, expected, **{**arguments, "x": x, "y": y})


@pytest.mark.parametrize("axes", ["I, J", "T.sp.fuse(I, J)"])
def test_elementwise(axes, csr):
    arguments, rows, columns = csr()
    x, y = np.arange(arguments["m"], dtype="f4"), np.arange(arguments["n"], dtype="f4") - 3
    expected = arguments["a"] * x[rows] + y[columns]
    check(program(ELEMENTWISE, axes=axes), expected, **{**arguments, "x": x, "y": y})


@pytest.mark.parametrize("axes", ["I, J", "T.sp.fuse(I, J)"])
@pytest.mark.parametrize("kinds", ["SR", "SS"])
def test_sums_over_rows(kinds, axes, csr):
    """Empty rows get the init, for either kind of the axis that does not select the element."""
    arguments, rows, _ = csr()
    sums = np.bincount(rows, arguments["a"], arguments["m"])
    check(program(SUMS, kinds=kinds, axes=axes, AXIS="I", VAR="i"), sums, **arguments)


BLOCKS = """
    B = T.sp.dense_fixed(2, parent=J)
    D2 = T.sp.dense_fixed(2)
    A = T.sp.match_buffer(a, (I, J, B), "FLOAT")
    Out = T.sp.match_buffer(o, (I, D2), "FLOAT")
    with T.sp.iteration([AXES], "SRS", "sums") as [i, j, b]:
        with T.init():
            Out[i, b] = 0.0
        Out[i, b] = Out[i, b] + A[i, j, b]
"""


@pytest.mark.parametrize("axes", ["I, J, B", "T.sp.fuse(I, J), B", "I, T.sp.fuse(J, B)"])
def test_elements_below_nothing_are_not_visited(axes, csr):
    arguments, rows, _ = csr()
    a = np.arange(2 * len(rows)).reshape(-1, 2)
    sums = np.full((arguments["m"], 2), np.nan)
    sums[rows] = 0
    np.add.at(sums, rows, a)
    module = program(BLOCKS, axes=axes)
    check(module, sums.ravel(), **{**arguments, "a": a.ravel().astype("f4")})


@pytest.mark.parametrize("kinds", ["SS", "RS"])
def test_sums_over_columns(kinds, csr):
    arguments, _, columns = csr()
    sums = np.bincount(columns, arguments["a"], arguments["n"])
    is_visited = np.isin(np.arange(arguments["n"]), columns)
    module = program(SUMS, kinds=kinds, AXIS="D", VAR="j")
    check(module, np.where(is_visited, sums, np.nan), **arguments)


def test_a_sum_over_everything(csr):
    arguments, _, _ = csr()
    header = HEADER + "    U = T.sp.dense_fixed(1)\n"
    module = program(SUMS, kinds="RR", header=header, AXIS="U", VAR="0")
    check(module, np.array([arguments["a"].sum()]), **arguments)


CHAINS = ["I, J, L", "T.sp.fuse(I, J, L)", "I, T.sp.fuse(J, L)", "T.sp.fuse(I, J), L"]


@pytest.mark.parametrize("axes", CHAINS)
@pytest.mark.parametrize("int_type", ["int32", "int64"])
@pytest.mark.parametrize("kind", ["compressed", "ragged"])
def test_trees_of_three_axes(axes, kind, int_type, csr):
    """Any part of the tree is fused, at its root or below."""
    arguments, rows, _ = csr(int_type)
    counts = np.arange(arguments["nnz"]) * 5 % 4
    indptr = np.concatenate([[0], np.cumsum(counts)])
    positions = np.arange(indptr[-1]) - np.repeat(indptr[:-1], counts)
    parents, leaves = np.repeat(np.arange(arguments["nnz"]), counts), positions * 2 + 1
    body = TREE
    if kind == "ragged":
        body = body.replace(
            "compressed_varied(J, (n2, nnz2), (p2, q2)", "dense_varied(J, (n2, nnz2), p2"
        )
        leaves = positions
    a, x, y = np.arange(indptr[-1]) % 7, np.arange(arguments["nnz"]) % 5 - 2, np.arange(8)
    expected = a * x[parents] + y[leaves] * 10.0 + rows[parents]
    arguments |= {"n2": 8, "nnz2": len(a), "p2": indptr.astype(int_type),
                  "q2": leaves.astype(int_type)} | {
        name: value.astype("f4") for name, value in (("a", a), ("x", x), ("y", y))}  # fmt: skip
    check(program(body, axes=axes, INT=int_type), expected, **arguments)


ELL = """
    E = T.sp.compressed_fixed(I, (n, WIDTH), q2, "INT")
    F = T.sp.dense_fixed(2, parent=E)
    A = T.sp.match_buffer(a, (I, E, F), "FLOAT")
    X = T.sp.match_buffer(x, (I,), "FLOAT")
    Y = T.sp.match_buffer(y, (D,), "FLOAT")
    Out = T.sp.match_buffer(o, (I, E, F), "FLOAT")
    with T.sp.iteration([AXES], "SSS", "ell") as [i, e, f]:
        Out[i, e, f] = A[i, e, f] * X[i] + Y[e] + T.cast(f, "float32")
"""


@pytest.mark.parametrize(
    "axes", ["I, E, F", "T.sp.fuse(I, E), F", "T.sp.fuse(I, E, F)", "I, T.sp.fuse(E, F)"]
)
@pytest.mark.parametrize("width", [1, 3])
def test_fixed_axes_and_padding(axes, width):
    m, n = 4, 6
    slots = (np.arange(m * width).reshape(m, width) * 5) % n
    slots[1:3, width - 1] = n
    a = np.arange(m * width * 2, dtype="f4").reshape(m, width, 2)
    x, y = np.arange(m, dtype="f4"), np.append(np.arange(n, dtype="f4"), np.float32(99))
    expected = a * x[:, None, None] + y[slots][:, :, None] + np.arange(2)
    expected[slots == n] = np.nan
    module = program(ELL, axes=axes, WIDTH=str(width))
    check(module, expected, a=a, x=x, y=y[:-1], q2=slots.astype("i4"), m=m, n=n,
          p=np.zeros(m + 1, "i4"), q=np.zeros(0, "i4"))  # fmt: skip


def test_a_fused_iteration_is_one_loop():
    position = lower_iterations(program(SDDMM, kinds="SSR"))
    nodes = list(walk(position))
    assert [node.var for node in nodes if isinstance(node, For)] == ["i_j", "k_"]
    (block,) = (node for node in nodes if isinstance(node, Block))
    assert [(node.var, node.kind) for node in block.iters] == [("vi_j", "S"), ("vk_", "R")]


def test_the_rows_of_a_fused_iteration_are_proved_in_bounds():
    module = program(SDDMM, kinds="SSR")
    for lower in (lower_iterations, lower_buffers, *FLAT_PASSES):
        module = lower(module)
        assert not any(isinstance(node, Guard) for node in walk(module))
        if lower is insert_bounds_checks:
            break


def test_an_unused_search_is_removed():
    body = ELEMENTWISE.replace(" * X[i] + Y[j]", " * 2.0").replace("X = T", "# X = T")
    body = body.replace("Y = T", "# Y = T")
    loop = lower_buffers(lower_iterations(program(body)))
    assert not any(isinstance(node, Search) for node in walk(loop))


def test_no_rows_are_no_elements():
    """Without rows nothing is searched, and an empty sum still gets its init."""
    header = HEADER + "    U = T.sp.dense_fixed(1)\n"
    body = SUMS.replace("A[i, j]", 'A[i, j] * T.cast(i, "float32")')
    module = program(body, kinds="RR", header=header, AXIS="U", VAR="0")
    empty = np.zeros(0, "f4")
    check(module, np.zeros(1), a=empty, p=np.zeros(1, "i4"), q=np.zeros(0, "i4"))
    lowered = lower_buffers(lower_iterations(module))
    assert any(isinstance(node, If) for node in walk(lowered))


def test_an_axis_of_one_element_reduces_nothing():
    module = program(
        SUMS.replace("[AXES]", "[U, I, J]").replace("[i, j]:", "[u, i, j]:"),
        kinds="RSR", header=HEADER + "    U = T.sp.dense_fixed(1)\n", AXIS="I", VAR="i",
    )  # fmt: skip
    (block,) = (node for node in walk(lower_iterations(module)) if isinstance(node, Block))
    assert [iterator.kind for iterator in block.iters] == ["S", "S", "R"]
