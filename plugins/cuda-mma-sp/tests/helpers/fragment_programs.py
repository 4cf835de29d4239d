"""Flat programs that multiply one tile in fragments, and arrays for them."""

import numpy as np

from gossamer_ir.script import parse_module

SUMS = {"float16": "float32", "bfloat16": "float32", "int8": "int32", "uint8": "int32"}

_DENSE = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (ROWS, DEPTH), "LEFT")
    B = T.match_buffer(b, (DEPTH, COLUMNS), "RIGHT")
    C = T.match_buffer(c, (ROWS, COLUMNS), "SUM")
    for block in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer((ROWS, COLUMNS), "SUM", scope="fragment")
        X = T.alloc_buffer((ROWS, DEPTH), "LEFT", scope="fragment")
        Y = T.alloc_buffer((DEPTH, COLUMNS), "RIGHT", scope="fragment")
        for i in T.serial(ROWS):
            for j in T.serial(COLUMNS):
                S[i, j] = C[i, j]
        for i_1 in T.serial(ROWS):
            for p in T.serial(DEPTH):
                X[i_1, p] = A[i_1, p]
        for p_1 in T.serial(DEPTH):
            for j_1 in T.serial(COLUMNS):
                Y[p_1, j_1] = B[p_1, j_1]
        for i_2 in T.serial(ROWS):
            for p_2 in T.serial(DEPTH):
                for j_2 in T.serial(COLUMNS):
                    S[i_2, j_2] = S[i_2, j_2] + T.SUM(X[i_2, p_2]) * T.SUM(Y[p_2, j_2])
        for i_3 in T.serial(ROWS):
            for j_3 in T.serial(COLUMNS):
                C[i_3, j_3] = S[i_3, j_3]
"""
_SPARSE = """
@T.prim_func
def f(a: T.handle, e: T.handle, b: T.handle, c: T.handle) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (ROWS, GROUPS, 2), "LEFT")
    E = T.match_buffer(e, (ROWS, GROUPS, 2), "uint8")
    B = T.match_buffer(b, (DEPTH, COLUMNS), "RIGHT")
    C = T.match_buffer(c, (ROWS, COLUMNS), "SUM")
    for block in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer((ROWS, COLUMNS), "SUM", scope="fragment")
        X = T.alloc_buffer((ROWS, GROUPS, 2), "LEFT", scope="fragment")
        M = T.alloc_buffer((ROWS, GROUPS, 2), "uint8", scope="fragment")
        Y = T.alloc_buffer((DEPTH, COLUMNS), "RIGHT", scope="fragment")
        for i in T.serial(ROWS):
            for j in T.serial(COLUMNS):
                S[i, j] = C[i, j]
        for i_1 in T.serial(ROWS):
            for q in T.serial(GROUPS):
                for s in T.serial(2):
                    X[i_1, q, s] = A[i_1, q, s]
        for i_2 in T.serial(ROWS):
            for q_1 in T.serial(GROUPS):
                for s_1 in T.serial(2):
                    M[i_2, q_1, s_1] = E[i_2, q_1, s_1]
        for p in T.serial(DEPTH):
            for j_1 in T.serial(COLUMNS):
                Y[p, j_1] = B[p, j_1]
        for i_3 in T.serial(ROWS):
            for q_2 in T.serial(GROUPS):
                for s_2 in T.serial(2):
                    for j_2 in T.serial(COLUMNS):
                        S[i_3, j_2] = S[i_3, j_2] + T.SUM(X[i_3, q_2, s_2]) * T.SUM(Y[4 * q_2 + T.int64(M[i_3, q_2, s_2]) % 4, j_2])
        for i_4 in T.serial(ROWS):
            for j_3 in T.serial(COLUMNS):
                C[i_4, j_3] = S[i_4, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)


def tile_text(*, rows=16, columns=8, depth, left="float16", right=None, sums=None, is_sparse):
    """The text of a program for one tile."""
    sizes = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "GROUPS": depth // 4}
    dtypes = {"LEFT": left, "RIGHT": right or left, "SUM": sums or SUMS[left]}
    text = _SPARSE if is_sparse else _DENSE
    for name, value in {**sizes, **dtypes}.items():
        text = text.replace(name, str(value))
    return text


def tile_program(**options):
    """A program for one tile."""
    return parse_module(tile_text(**options))


def stored(matrix, dtype):
    """Integers as elements of a dtype, as NumPy has them."""
    if dtype == "bfloat16":
        return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return matrix.astype(dtype)


def tile_arrays(
    rng, *, rows=16, columns=8, depth, left="float16", right=None, sums=None, is_sparse
):
    """The arguments of a program, with small integers, and the expected result."""
    low = {"uint8": 0}
    sums = sums or SUMS[left]
    b = rng.integers(low.get(right or left, -4), 5, (depth, columns))
    c = rng.integers(-4, 5, (rows, columns))
    arguments = {"b": stored(b, right or left), "c": c.astype(sums)}
    if is_sparse:
        a = rng.integers(low.get(left, -4), 5, (rows, depth // 4, 2))
        order = np.argsort(rng.random((rows, depth // 4, 4)), axis=-1)
        indices = np.sort(order[..., :2], axis=-1)
        arguments |= {"a": stored(a, left), "e": indices.astype(np.uint8)}
        dense = np.zeros((rows, depth // 4, 4), np.int64)
        np.put_along_axis(dense, indices, a, axis=-1)
        dense = dense.reshape(rows, depth)
    else:
        dense = rng.integers(low.get(left, -4), 5, (rows, depth))
        arguments["a"] = stored(dense, left)
    return arguments, dense @ b + c
