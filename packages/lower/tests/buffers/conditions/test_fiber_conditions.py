"""Positions beyond a varied fiber: loads read the fill value and stores stop the program, in the
interpreter and after lowering.
"""

from __future__ import annotations

import numpy as np
import pytest

from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.interpret import run
from gossamer_ir.interpret.interpreter_errors import InterpreterError
from gossamer_ir.nodes import Guard, IfThenElse, Load
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.traversal.walk import contains
from gossamer_ir.verify import verify
from gossamer_lower import lower_buffers, lower_iterations, lower_to_flat

ROWS = """
@T.prim_func
def rows(a: T.handle, b: T.handle, c: T.handle, indptr: T.handle, m: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (nnz, nnz), indptr, "int64")
    K = T.sp.dense_fixed(2, parent=J)
    J_indptr = T.sp.match_buffer(indptr, (I,), "int64", extra_storage=1)
    A = T.sp.match_buffer(a, (I, J), "float64", default=-1.0)
    B = T.sp.match_buffer(b, (I,), "float64")
    C = T.sp.match_buffer(c, (I,), "int64")
    for i in T.serial(m):
        with T.block("b"):
            vi = T.axis.spatial(m, i)
"""
INDPTR = [0, 1, 3, 3]


def rows(body):
    lines = "".join(f"            {line}\n" for line in body.split("\n"))
    return verify(parse_module(ROWS + lines))


def stages(module):
    position = module
    loop = verify(lower_buffers(position))
    return position, loop, verify(lower_to_flat(loop))


def results(module, c=(1, 1, 1)):
    """The arrays after the program at each stage; None if it stops."""
    for stage in stages(module):
        arguments = {
            "a": np.arange(1.0, 4.0), "b": np.zeros(3), "c": np.array(c),
            "indptr": np.array(INDPTR), "m": 3, "nnz": 3,
        }  # fmt: skip
        try:
            run(stage, arguments)
        except InterpreterError:
            yield None
        else:
            yield arguments["a"].tolist(), arguments["b"].tolist()


READ = {
    "a constant": ("B[vi] = A[vi, 1]", [-1, 3, -1]),
    "an index that is read": ("B[vi] = A[vi, C[vi]]", [-1, 3, -1]),
    "a negative one": ("B[vi] = A[vi, C[vi] - 2]", [-1, -1, -1]),
    "one that a condition bounds": (
        "B[vi] = T.if_then_else(C[vi] < J_indptr[vi + 1] - J_indptr[vi], A[vi, C[vi]], 7.0)",
        [7, 3, 7],
    ),
    "one in a let": ("at: T.int64 = C[vi] * 1\nB[vi] = A[vi, at]", [-1, 3, -1]),
    "one in a condition": ("if A[vi, 1] > 0.0:\n    B[vi] = 5.0", [0, 5, 0]),
}


@pytest.mark.parametrize(("body", "expected"), READ.values(), ids=READ)
def test_a_load_beyond_a_fiber_reads_the_fill_value(body, expected):
    assert [result and result[1] for result in results(rows(body))] == [expected] * 3


STORED = {
    "into the next row": ("A[vi, C[vi]] = 9.0", (1, 0, 0)),
    "after the last element": ("A[vi, C[vi]] = 9.0", (0, 2, 0)),
    "before the first one": ("A[vi, C[vi]] = 9.0", (0, -1, 0)),
    "into an empty row": ("if vi == 2:\n    A[vi, 0] = 9.0", (0, 0, 0)),
    "where a predicate holds": ("T.store(A, vi, C[vi], value=9.0, predicate=C[vi] > 0)", (1, 0, 0)),
}


@pytest.mark.parametrize(("body", "c"), STORED.values(), ids=STORED)
def test_a_store_beyond_a_fiber_stops_the_program(body, c):
    assert list(results(rows(body), c)) == [None] * 3


def test_a_predicate_keeps_a_store_from_what_is_beyond_a_fiber():
    body = "T.store(A, vi, C[vi], value=9.0, predicate=C[vi] > 0)"
    assert list(results(rows(body), (0, 1, 0))) == [([1, 2, 9], [0, 0, 0])] * 3


WALKED = {
    "a loop over the fiber": "for j in T.serial(J_indptr[vi + 1] - J_indptr[vi]):\n    A[vi, j] = B[vi]",
    "the fiber in parts": """
for j_0 in T.serial((J_indptr[vi + 1] - J_indptr[vi] + 3) // 4):
    for j_1 in T.serial(4):
        if j_0 * 4 + j_1 < J_indptr[vi + 1] - J_indptr[vi]:
            A[vi, j_0 * 4 + j_1] = B[vi]""".strip(),
    "the fiber backwards": """
for j in T.serial(J_indptr[vi + 1] - J_indptr[vi]):
    A[vi, J_indptr[vi + 1] - J_indptr[vi] - 1 - j] = B[vi]""".strip(),
    "all but the first": """
for j in T.serial(1, J_indptr[vi + 1] - J_indptr[vi]):
    A[vi, j] = A[vi, j - 1]""".strip(),
}


@pytest.mark.parametrize("body", WALKED.values(), ids=WALKED)
def test_positions_that_are_proved_to_lie_in_their_fiber_are_not_checked(body):
    assert not contains((Guard, IfThenElse), *lower_buffers(rows(body)).functions[0].body)


def test_a_loop_beyond_the_fiber_is_checked():
    body = "for j in T.serial(J_indptr[vi + 1] - J_indptr[vi] + 1):\n    B[vi] = B[vi] + A[vi, j]"
    assert [result and result[1] for result in results(rows(body))] == [[0, 4, -1]] * 3


def test_a_search_beyond_a_fiber_stops_the_program():
    text = ROWS.replace(
        'J = T.sp.dense_varied(I, (nnz, nnz), indptr, "int64")',
        (
            'J = T.sp.compressed_varied(I, (nnz, nnz), (indptr, c), "int64")\n'
            '    S = T.sp.match_buffer(c, (I, J), "int64")'
        ),
    ).replace("    C = T.sp", "    # C = T.sp")
    body = '            B[vi] = T.float64(T.search("lower", S, vi, begin=0, end=2, value=2))\n'
    assert list(results(verify(parse_module(text + body)), (0, 1, 2))) == [None] * 3
    whole = body.replace("end=2", "end=J_indptr[vi + 1] - J_indptr[vi]")
    result = [
        result and result[1] for result in results(verify(parse_module(text + whole)), (0, 1, 2))
    ]
    assert result == [[1, 1, 0]] * 3
    assert contains(Load, *lower_buffers(parse_module(text + whole)).functions[0].body)


NESTED = """
@T.prim_func
def nested(b: T.handle, c: T.handle, indptr: T.handle, m: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (nnz, nnz), indptr, "int64")
    B = T.sp.match_buffer(b, (I,), "int64")
    C = T.sp.match_buffer(c, (I, J), "int64", default=1)
    for i in T.serial(m):
        with T.block("b"):
            vi = T.axis.spatial(m, i)
            B[vi] = INDEX
"""


def nested(depth):
    """A program that reads an index by an index, and so on."""
    index = "vi"
    for _ in range(depth):
        index = f"C[vi, {index}]"
    return verify(parse_module(NESTED.replace("INDEX", index)))


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_indices_in_indices_are_looked_up_as_written(depth):
    offsets, elements = [0, 2, 5, 5], np.array([1, 3, 2, -1, 0])
    expected = []
    for row in range(3):
        fiber, position = elements[offsets[row] : offsets[row + 1]], row
        for _ in range(depth):
            position = int(fiber[position]) if 0 <= position < len(fiber) else 1
        expected.append(position)
    for stage in stages(nested(depth)):
        arguments = {
            "b": np.zeros(3, int),
            "c": elements,
            "indptr": np.array(offsets),
            "m": 3,
            "nnz": 5,
        }
        run(stage, arguments)
        assert arguments["b"].tolist() == expected


def test_a_proof_about_an_index_is_searched_once(monkeypatch):
    """An index occurs 3 times in the lowered code, and an index in it 9 times."""
    asked, is_in_range = [], ProgramPoint.is_in_range

    def counting(point, *question):
        asked.append(question)
        return is_in_range(point, *question)

    monkeypatch.setattr(ProgramPoint, "is_in_range", counting)
    counts = []
    for depth in (4, 5, 6):
        asked.clear()
        lower_buffers(nested(depth))
        counts.append(len(asked))
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0


TREE = """
@T.prim_func
def tree(a: T.handle, s: T.handle, p: T.handle, q: T.handle, m: T.int64, r: T.int64, n: T.int64,
         nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    P = T.sp.dense_fixed(m)
    R = T.sp.dense_fixed(r, parent=P)
    I = T.sp.dense_varied(R, (nnz, nnz), p)
    J = T.sp.compressed_fixed(I, (n, 2), q)
    A = T.sp.match_buffer(a, (P, R, I, J), "float32")
    S = T.sp.match_buffer(s, (P, R, I), "float32")
    with T.sp.iteration([P, R, I, J], "SSSR", "sums") as [p1, r1, i, j]:
        with T.init():
            S[p1, r1, i] = 0.0
        S[p1, r1, i] = S[p1, r1, i] + A[p1, r1, i, j]
"""


def test_a_predicate_does_not_hide_the_range_of_an_iterator_that_is_a_loop():
    """The test for padding reads memory in the predicate. The number of a fiber is a product of sizes."""
    loops = lower_buffers(lower_iterations(parse_module(TREE)))
    assert "T.where" in print_module(loops)
    assert not contains((Guard, IfThenElse), *loops.functions[0].body)


def test_an_iterator_that_may_leave_its_domain_is_checked_in_the_predicate():
    """The loop is longer than the domain of the iterator, and the predicate reads by it."""
    position = lower_iterations(parse_module(TREE))
    text = print_module(position).replace("for j in T.serial(2)", "for j in T.serial(3)")
    longer = text.replace("for i in T.serial(", "for i in T.serial(1 + ")
    assert longer != text
    assert contains(IfThenElse, *lower_buffers(parse_module(longer)).functions[0].body)
