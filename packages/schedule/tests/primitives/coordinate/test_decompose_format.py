"""`decompose_format`: the program over the parts, its trace, and programs that it refuses."""

from __future__ import annotations

import pytest
from refused import reason_of

from gossamer_ir.script import parse_module, print_module
from gossamer_ir.verify import verify
from gossamer_schedule import ScheduleBuilder, decompose_format, replay
from gossamer_testkit import examples
from gossamer_testkit.show import body_text

SPMM = examples.SPMM_COORDINATE
ELL = """
@T.format
def ell(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, width: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), indices, "int32")
    A = T.sp.match_buffer(data, (I, J), "float32")
"""
BSR = """
@T.format
def bsr(
    data: T.handle, indptr: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, blocks: T.int64, side: T.int64,
) -> None:
    IO = T.sp.dense_fixed((m + side - 1) // side)
    JO = T.sp.compressed_varied(IO, ((n + side - 1) // side, blocks), (indptr, indices), "int32")
    II = T.sp.dense_fixed(side)
    JI = T.sp.dense_fixed(side)
    A = T.sp.match_buffer(data, (IO, JO, II, JI), "float32")
    T.sp.map(lambda io, jo, ii, ji: (io * side + ii, jo * side + ji), shape=(m, n))
"""
SQUARE = """
@T.format
def square(data: T.handle, n: T.int64) -> None:
    I = T.sp.dense_fixed(n)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(data, (I, J), "float32")
"""
VECTOR = """
@T.format
def vector(data: T.handle, m: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(data, (I,), "float32")
"""
TWO_BUFFERS = ELL.replace("data: T.handle", "data: T.handle, other: T.handle") + (
    '    B = T.sp.match_buffer(other, (I, J), "float32")\n'
)
SLOTS = """
@T.format
def slots(data: T.handle, indices: T.handle, m: T.int64, n: T.int64, w: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    W = T.sp.dense_fixed(w, parent=I)
    J = T.sp.compressed_fixed(W, (n, 1), indices, "int32")
    A = T.sp.match_buffer(data, (I, W, J), "float32")
    T.sp.map(lambda i, w, j: (i, j), shape=(m, n))
"""
DIA = """
@T.format
def dia(data: T.handle, offsets: T.handle, m: T.int64, n: T.int64, diagonals: T.int64) -> None:
    D = T.sp.dense_fixed(diagonals)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(data, (D, J), "float32")
    OFFSETS = T.match_buffer(offsets, (diagonals,), "int32")
    T.sp.map(lambda d, j: (j - T.int64(OFFSETS[d]), j), shape=(m, n))
"""


def over_csr(body, *, declared=""):
    """A program over a CSR matrix A, a second buffer D over the same axes, and vectors X and Y."""
    return parse_module(f"""
@T.prim_func
def f(
    a: T.handle, d: T.handle, x: T.handle, y: T.handle, p: T.handle, q: T.handle, m: T.int64, n: T.int64,
) -> None:
    T.func_attr({{"sparse_tir_level": 2}})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, n, (p, q), "int32")
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    D = T.sp.match_buffer(d, (I, J), "float32")
    X = T.sp.match_buffer(x, (N,), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
{body}""")


ROW_SUMS = over_csr("""
    with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j] * X[j]
""")


def test_parts_accumulate_after_one_init():
    result = decompose_format(ROW_SUMS, ("A",), names=("p", "q"), formats=(DIA, DIA))
    assert body_text(result.module).startswith(
        'with T.sp.iteration([I], "S", "sums_init") as [i_init]:\n'
        "    Y[i_init] = 0.0\n"
        'with T.sp.iteration([D_p, J_p], "SS", "sums_p") as [d_p, j_p]:\n'
    )
    assert result.names == ("sums_init", "sums_p", "sums_q")


def test_a_part_that_visits_all_rows_comes_first_and_initializes_them():
    in_blocks = decompose_format(ROW_SUMS, ("A",), names=("p", "q"), formats=(DIA, BSR))
    assert in_blocks.names == ("sums_q", "sums_p")
    lines = body_text(in_blocks.module).splitlines()
    assert lines[:4] == [
        'with T.sp.iteration([IO_q, JO_q, II_q, JI_q], "SRSR", "sums_q") as [io_q, jo_q, ii_q, ji_q]:',
        "    with T.init():",
        "        if io_q * side_q + ii_q < m:",
        "            Y[io_q * side_q + ii_q] = 0.0",
    ]


def test_a_part_does_not_initialize_columns_without_an_element():
    module = over_csr("""
    with T.sp.iteration([I, J], "SS", "sums") as [i, j]:
        with T.init():
            X[j] = 0.0
        X[j] = X[j] + A[i, j]
""")
    dense = """
@T.format
def dense(data: T.handle, m: T.int64, n: T.int64) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(data, (I, J), "float32")
"""
    # The part visits all columns, and an init apart from the sums would visit stored ones several times.
    call = {"names": ("p",), "formats": (dense,)}
    assert reason_of(decompose_format, module, ("A",), **call) == "decompose_format.conflict"


def test_others_add_to_what_one_part_initializes():
    result = decompose_format(ROW_SUMS, ("A",), names=("p", "q"), formats=(ELL, BSR))
    assert body_text(result.module) == (
        'with T.sp.iteration([I_p, J_p], "SR", "sums_p") as [i_p, j_p]:\n'
        "    with T.init():\n"
        "        Y[i_p] = 0.0\n"
        "    Y[i_p] = Y[i_p] + A_p[i_p, j_p] * X[j_p]\n"
        'with T.sp.iteration([IO_q, JO_q, II_q, JI_q], "SRSR", "sums_q") as [io_q, jo_q, ii_q, ji_q]:\n'
        "    if io_q * side_q + ii_q < m and jo_q * side_q + ji_q < n:\n"
        "        Y[io_q * side_q + ii_q] = Y[io_q * side_q + ii_q] "
        "+ A_q[io_q, jo_q, ii_q, ji_q] * X[jo_q * side_q + ji_q]"
    )
    assert result.names == ("sums_p", "sums_q")
    params = [param.name for param in result.module.functions[0].params]
    assert params == [
        "d", "x", "y", "p", "q", "m", "n",
        "data_p", "indices_p", "width_p",
        "data_q", "indptr_q", "indices_q", "blocks_q", "side_q",
    ]  # fmt: skip


def test_the_step_is_replayed_and_printed():
    arguments = {"names": ("p",), "formats": (DIA,)}
    result = decompose_format(SPMM, ("A",), **arguments)
    verify(result.module)
    assert parse_module(print_module(result.module)) == result.module
    assert replay(SPMM, (result.step,)) == result.module
    assert ScheduleBuilder(SPMM).decompose_format(("A",), **arguments).trace == (result.step,)


def test_variables_are_unique_in_the_function():
    module = over_csr("""
    with T.sp.iteration([I, J], "SS", "scale") as [i, j]:
        Y[i] = A[i, j]
    with T.sp.iteration([I, J], "SS", "again") as [i_1, j_1]:
        Y[i_1] = A[i_1, j_1]
""")
    decomposed = decompose_format(module, ("A",), names=("p",), formats=(ELL,)).module
    assert [stmt.vars for stmt in decomposed.functions[0].body] == [
        ("i_p", "j_p"),
        ("i_p_1", "j_p_1"),
    ]
    assert parse_module(print_module(decomposed)) == decomposed


def test_a_conversion_copies_the_elements_first():
    module = over_csr("""
    with T.sp.iteration([I, J], "SS", "scale") as [i, j]:
        Y[i] = A[i, j]
""")
    result = decompose_format(module, ("A",), names=("p",), formats=(ELL,), converts=True)
    assert result.names == ("rewrite_A_p", "scale_p")
    assert body_text(result.module).splitlines()[:3] == [
        'with T.sp.iteration([I_p, J_p], "SS", "rewrite_A_p") as [i_p_1, j_p_1]:',
        '    T.sp.iteration_attr({"preprocess": True})',
        "    A_p[i_p_1, j_p_1] = A[i_p_1, j_p_1]",
    ]


def test_an_output_over_the_same_axes_is_initialized_in_each_part():
    module = over_csr("""
    with T.sp.iteration([I, J, N], "SSR", "sddmm") as [i, j, k]:
        with T.init():
            D[i, j] = 0.0
        D[i, j] = D[i, j] + A[i, j] * X[k]
""")
    result = decompose_format(module, ("A", "D"), names=("p",), formats=(TWO_BUFFERS,))
    assert body_text(result.module) == (
        'with T.sp.iteration([I_p, J_p, N], "SSR", "sddmm_p") as [i_p, j_p, k_1]:\n'
        "    with T.init():\n"
        "        D_p[i_p, j_p] = 0.0\n"
        "    D_p[i_p, j_p] = D_p[i_p, j_p] + A_p[i_p, j_p] * X[k_1]"
    )


def test_the_init_keeps_the_annotations():
    module = over_csr("""
    with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
        T.sp.iteration_attr({"preprocess": True})
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j]
""")
    result = decompose_format(module, ("A",), names=("p",), formats=(DIA,))
    assert body_text(result.module).count('iteration_attr({"preprocess": True})') == 2


def test_fused_axes_are_visited_one_by_one():
    module = over_csr("""
    with T.sp.iteration([T.sp.fuse(I, J)], "SS", "scale") as [i, j]:
        Y[i] = A[i, j]
""")
    result = decompose_format(module, ("A",), names=("p",), formats=(ELL,))
    assert body_text(result.module).startswith('with T.sp.iteration([I_p, J_p], "SS", "scale_p")')


def iteration(body, axes="[I, J]", kinds="SR", vars="[i, j]"):
    return over_csr(f'    with T.sp.iteration({axes}, "{kinds}", "part") as {vars}:\n{body}')


INVALID = ELL.replace("n, width", "w, width")
SUM = "        Y[i] = Y[i] + A[i, j]\n"
REFUSED = {
    "names: too few": ("decompose_format.names", ROW_SUMS, ("A",), ("p",), (ELL, ELL)),
    "names: none": ("decompose_format.names", ROW_SUMS, ("A",), (), ()),
    "names: twice": ("decompose_format.names", ROW_SUMS, ("A",), ("p", "p"), (ELL, ELL)),
    "names: not an identifier": ("decompose_format.names", ROW_SUMS, ("A",), ("p-q",), (ELL,)),
    "names: not ASCII": ("decompose_format.names", ROW_SUMS, ("A",), ("\u00e9",), (ELL,)),
    "format: not a script": ("decompose_format.format", ROW_SUMS, ("A",), ("p",), ("ell",)),
    "format: not valid": ("decompose_format.format", ROW_SUMS, ("A",), ("p",), (INVALID,)),
    "dimensions": ("decompose_format.dimensions", ROW_SUMS, ("A",), ("p",), (VECTOR,)),
    "count": ("decompose_format.count", ROW_SUMS, ("A",), ("p",), (TWO_BUFFERS,)),
    "shape": ("decompose_format.shape", ROW_SUMS, ("A",), ("p",), (SQUARE,)),
    "buffer: none": ("decompose_format.buffer", ROW_SUMS, ("Z",), ("p",), (ELL,)),
    "axes: of buffers": ("decompose_format.axes", ROW_SUMS, ("A", "X"), ("p",), (ELL,)),
    "axes: no buffers": ("decompose_format.axes", ROW_SUMS, (), ("p",), (ELL,)),
    "axes: not visited": (
        "decompose_format.axes", iteration("        Y[i] = A[i, 0]\n", "[I]", "S", "[i]"),
        ("A",), ("p",), (ELL,),
    ),
    "axes: below those of the tensor": (
        "decompose_format.axes",
        over_csr("""
    L = T.sp.dense_fixed(3, parent=J)
    with T.sp.iteration([I, J, L], "SRR", "part") as [i, j, l]:
        Y[i] = Y[i] + A[i, j]
"""),
        ("A",), ("p",), (ELL,),
    ),
    "parameter": (
        "decompose_format.parameter",
        decompose_format(iteration(SUM), ("A",), names=("p",), formats=(ELL,)).module,
        ("D",), ("p",), (ELL,),
    ),
    "access": (
        "decompose_format.access", iteration("        Y[i] = Y[i] + A[i, j + 1]\n"),
        ("A",), ("p",), (ELL,),
    ),
    "nested": (
        "decompose_format.nested",
        iteration('        with T.sp.iteration([N], "R", "inner") as [k]:\n    ' + SUM),
        ("A",), ("p",), (ELL,),
    ),
    "init: of a reduced axis": (
        "decompose_format.init",
        over_csr("""
    O = T.sp.dense_fixed(m)
    L = T.sp.compressed_varied(O, n, (p, q), "int32")
    E = T.sp.match_buffer(d, (O, L), "float32")
    with T.sp.iteration([O, L], "RS", "part") as [i, j]:
        with T.init():
            X[j] = 0.0
        X[j] = X[j] + E[i, j]
"""),
        ("E",), ("p",), (ELL,),
    ),
    "init: of both": (
        "decompose_format.init",
        iteration("""
        with T.init():
            Y[i] = 0.0
            D[i, j] = 0.0
        Y[i] = Y[i] + A[i, j]
        D[i, j] = D[i, j] + A[i, j]
"""),
        ("A", "D"), ("p",), (TWO_BUFFERS,),
    ),
    "fill: a sum of ones": (
        "decompose_format.fill", iteration("        Y[i] = Y[i] + (1.0 + 0.0 * A[i, j])\n"),
        ("A",), ("p",), (BSR,),
    ),
    "fill: a product": (
        "decompose_format.fill", iteration("        Y[i] = Y[i] * A[i, j]\n"), ("A",), ("p",), (BSR,),
    ),
    "fill: absent elements": (
        "decompose_format.fill", iteration("        D[i, j] = D[i, j] + A[i, j]\n"), ("A",), ("p",), (BSR,),
    ),
    "conflict": (
        "decompose_format.conflict", iteration("        D[i, j] = A[i, j] * 2.0\n", kinds="SS"),
        ("A",), ("p",), (SLOTS,),
    ),
    "fill: a sum with another": (
        "decompose_format.fill", iteration("        Y[i] = Y[i] + (A[i, j] + X[j])\n"),
        ("A",), ("p",), (BSR,),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "module", "buffers", "names", "formats"), REFUSED.values(), ids=REFUSED
)
def test_refusals(reason, module, buffers, names, formats):
    actual = reason_of(decompose_format, module, buffers, names=names, formats=formats)
    assert actual == reason


def test_a_statement_outside_of_iterations_is_refused():
    module = over_csr("    for i in T.serial(m):\n        Y[i] = A[i, 0]\n")
    assert reason_of(decompose_format, module, ("A",), names=("p",), formats=(ELL,)) == (
        "decompose_format.statement"
    )


@pytest.mark.parametrize("value", ["-A[i, j] * X[j]", "X[j] * (A[i, j] - D[i, j])"])
def test_values_that_vanish_with_the_tensor_may_fill_blocks(value):
    module = iteration(f"        Y[i] = Y[i] + {value}\n")
    buffers = ("A", "D") if "D" in value else ("A",)
    described = (
        BSR
        if len(buffers) == 1
        else BSR.replace("data: T.handle", "data: T.handle, other: T.handle").replace(
            "    T.sp.map",
            '    B = T.sp.match_buffer(other, (IO, JO, II, JI), "float32")\n    T.sp.map',
        )
    )
    assert decompose_format(module, buffers, names=("p",), formats=(described,)).names == (
        "part_p",
    )
