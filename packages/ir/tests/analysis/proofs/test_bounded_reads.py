"""Which reads are proved in bounds: along any tree of axes, in conditional operands and in searches of
possibly empty windows; and not if the program writes the arrays that the proof needs.
"""

from __future__ import annotations

import pytest

from gossamer_ir.analysis.proofs.bounded_reads import BoundedReads
from gossamer_ir.analysis.proofs.program_point import ProgramPoint
from gossamer_ir.nodes import For, Let, Load, Search
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import collect, stmts

POSITION = """
@T.prim_func
def f(p: T.handle, q: T.handle, r: T.handle, s: T.handle, w: T.handle,
      m: T.int64, n: T.int64, width: T.int64, nnz: T.int64, every: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 1}})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), "int32")
    L = T.sp.compressed_varied(J, (n, every), (r, s), "int32")
    E = T.sp.compressed_fixed(I, (n, width), w, "int32")
    P = T.sp.match_buffer(p, (I,), "int32", extra_storage=1)
    Q = T.sp.match_buffer(q, (I, J), "int32")
    {offsets}
    S = T.sp.match_buffer(s, (I, J, L), "int32")
    W = T.sp.match_buffer(w, (I, E), "int32")
    for i in T.serial(m):
        for e in T.serial(width):
            for j in T.serial(T.int64(P[i + 1]) - T.int64(P[i])):
                {loop}
                    {before}
                    found: T.int64 = {value}
"""
OVER_AXES = {
    "offsets": 'R = T.sp.match_buffer(r, (I, J), "int32", extra_storage=1)',
    "loop": "for k in T.serial(T.int64(R[i, j + 1]) - T.int64(R[i, j])):",
}
BY_NUMBER = {
    "offsets": 'R = T.match_buffer(r, (nnz + 1,), "int32")',
    "loop": "for k in T.serial(T.int64(R[T.int64(P[i]) + j + 1]) - T.int64(R[T.int64(P[i]) + j])):",
}


def is_proved(text):
    """True if all reads of the let in a program are proved, given the enclosing loops."""
    (function,) = parse_module(text).functions
    (let,) = (stmt for stmt in stmts(function.body) if isinstance(stmt, Let))
    assert collect((Load, Search), let.value)
    point = ProgramPoint(function)
    for stmt in stmts(function.body):
        if isinstance(stmt, For):
            point.assume_loop(stmt)
    return BoundedReads(function, point).are_in_bounds(let.value)


@pytest.mark.parametrize("offsets", [OVER_AXES, BY_NUMBER], ids=["over axes", "by number"])
@pytest.mark.parametrize(
    ("value", "is_there"),
    [
        ("T.int64(P[i + 1])", True),
        ("T.int64(P[i + 2])", False),
        ("T.int64(Q[i, j])", True),
        ("T.int64(Q[i, j + 1])", False),
        ("T.int64(Q[j, i])", False),
        ("T.int64(W[i, e])", True),
        ("T.int64(W[i, j])", False),
        ("T.int64(S[i, j, k])", True),
        ("T.int64(S[i, j, k - 1])", False),
        ("T.int64(S[i, j, T.if_then_else(k > 0, k - 1, k)])", True),
        ("T.if_then_else(k > 0, T.int64(S[i, j, k - 1]), 0)", True),
        ("T.if_then_else(k > 0, 0, T.int64(S[i, j, k - 1]))", False),
        ("T.if_then_else(S[i, j, k + 1] > 0, 1, 0)", False),
        ('T.search("lower", Q, i, begin=0, end=T.int64(P[i + 1]) - T.int64(P[i]), value=3)', True),
        ('T.search("lower", Q, i, begin=0, end=T.int64(P[i + 1]), value=3)', False),
        ('T.search("lower", Q, i, begin=-1, end=j, value=3)', False),
        ('T.search("lower", Q, i, begin=m, end=j, value=3)', True),
        ('T.search("lower", Q, m, begin=0, end=0, value=3)', False),
    ],
)
def test_positions(value, is_there, offsets):
    assert is_proved(POSITION.format(value=value, before="pass", **offsets)) == is_there


@pytest.mark.parametrize("buffer", ["P", "Q"])
def test_fibers_whose_offsets_are_written_are_not_known(buffer):
    """`Q` holds indices only: a write to it changes no fiber."""
    text = POSITION.format(value="T.int64(Q[i, j])", before=f"{buffer}[0] = 0", **OVER_AXES)
    text = text.replace("Q[0]", "Q[0, 0]")
    assert is_proved(text) == (buffer == "Q")
