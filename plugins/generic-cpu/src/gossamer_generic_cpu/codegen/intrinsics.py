"""Micro-kernels whose accumulators stay in vector registers: semantics and implementation of each.

Both are scripts of one function; `tensorize` replaces code that matches the semantics by the implementation.
An outer product adds `A[p, i] * B[p, j]` to a tile of two vectors per row; a dot product has four vectors of
partial sums, which are added at the end.
"""

from __future__ import annotations

from gossamer_ir.interchange.records import Intrinsic

VECTOR_LANES = {"float32": 8, "float64": 4}
"""The number of lanes of a vector of 256 bits, by dtype."""
TILE_ROWS = (1, 4, 6)
"""The numbers of rows of tiles. With two vectors per row, 6 rows leave registers for the operands."""

_OUTER = """
@T.prim_func
def outer_product(a: T.handle, b: T.handle, c: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    A = T.match_buffer(a, (n, {rows}), "{dtype}")
    B = T.match_buffer(b, (n, {columns}), "{dtype}")
    C = T.match_buffer(c, ({rows}, {columns}), "{dtype}")
"""
_OUTER_SEMANTICS = """
    for p in T.serial(n):
        for i in T.serial({rows}):
            for j in T.serial({columns}):
                with T.block("outer_product"):
                    vp, vi, vj = T.axis.remap("RSS", [p, i, j])
                    C[vi, vj] = C[vi, vj] + A[vp, vi] * B[vp, vj]
"""
_OUTER_IMPLEMENTATION = """
    R = T.alloc_buffer(({rows}, {columns}), "{dtype}", scope="local")
    for i in T.unroll({rows}):
        for u in T.unroll(2):
            for l in T.vectorized({lanes}):
                R[i, u * {lanes} + l] = C[i, u * {lanes} + l]
    for p in T.serial(n):
        for i_1 in T.unroll({rows}):
            for u_1 in T.unroll(2):
                for l_1 in T.vectorized({lanes}):
                    R[i_1, u_1 * {lanes} + l_1] = R[i_1, u_1 * {lanes} + l_1] + A[p, i_1] * B[p, u_1 * {lanes} + l_1]
    for i_2 in T.unroll({rows}):
        for u_2 in T.unroll(2):
            for l_2 in T.vectorized({lanes}):
                C[i_2, u_2 * {lanes} + l_2] = R[i_2, u_2 * {lanes} + l_2]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
_DOT = """
@T.prim_func
def dot_product(a: T.handle, b: T.handle, c: T.handle, n: T.int64) -> None:
    T.func_attr({{"sparse_tir_level": 0}})
    A = T.match_buffer(a, (n,), "{dtype}")
    B = T.match_buffer(b, (n,), "{dtype}")
    C = T.match_buffer(c, (1,), "{dtype}")
"""
_DOT_SEMANTICS = """
    for p in T.serial(n):
        with T.block("dot_product"):
            vp = T.axis.reduce(n, p)
            C[0] = C[0] + A[vp] * B[vp]
"""
_DOT_IMPLEMENTATION = """
    S = T.alloc_buffer(({all_lanes},), "{dtype}", scope="local")
    for u in T.unroll(4):
        for l in T.vectorized({lanes}):
            S[u * {lanes} + l] = 0.0
    for q in T.serial(n // {all_lanes}):
        for u_1 in T.unroll(4):
            for l_1 in T.vectorized({lanes}):
                S[u_1 * {lanes} + l_1] = S[u_1 * {lanes} + l_1] + A[q * {all_lanes} + u_1 * {lanes} + l_1] * B[q * {all_lanes} + u_1 * {lanes} + l_1]
    C[0] = C[0] + T.lane_reduce("add", S[T.ramp(0, 1, {all_lanes})])
    for r in T.serial(n % {all_lanes}):
        C[0] = C[0] + A[n // {all_lanes} * {all_lanes} + r] * B[n // {all_lanes} * {all_lanes} + r]
"""  # noqa: E501  (scripts have no line breaks inside an expression)


def outer_product(dtype: str, rows: int) -> Intrinsic:
    """Return the outer-product micro-kernel for a tile with this number of rows.

    >>> outer_product("float32", 6).name
    'outer_product_float32_6x16'
    """
    lanes = VECTOR_LANES[dtype]
    sizes = {"dtype": dtype, "rows": rows, "columns": 2 * lanes, "lanes": lanes}
    semantics, implementation = _OUTER + _OUTER_SEMANTICS, _OUTER + _OUTER_IMPLEMENTATION
    name = f"outer_product_{dtype}_{rows}x{2 * lanes}"
    return Intrinsic(name, semantics.format(**sizes), implementation.format(**sizes))


def dot_product(dtype: str) -> Intrinsic:
    """Return the dot-product micro-kernel.

    >>> dot_product("float64").name
    'dot_product_float64'
    """
    lanes = VECTOR_LANES[dtype]
    sizes = {"dtype": dtype, "lanes": lanes, "all_lanes": 4 * lanes}
    semantics, implementation = _DOT + _DOT_SEMANTICS, _DOT + _DOT_IMPLEMENTATION
    name = f"dot_product_{dtype}"
    return Intrinsic(name, semantics.format(**sizes), implementation.format(**sizes))


def intrinsics() -> tuple[Intrinsic, ...]:
    """Return all micro-kernels."""
    outer = (outer_product(dtype, rows) for dtype in VECTOR_LANES for rows in TILE_ROWS)
    return (*outer, *map(dot_product, VECTOR_LANES))
