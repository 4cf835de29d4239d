"""Flat programs of one tile that several warps multiply, with operands that they load from shared memory."""

import numpy as np

_HEAD = """
@T.prim_func
def f(a: T.handle, PARAMETERb: T.handle, c: T.handle) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (ROWS, STORED), "LEFT")
    B = T.match_buffer(b, (DEPTH, COLUMNS), "LEFT")
    C = T.match_buffer(c, (ROWS, COLUMNS), "SUM")
    DECLARED
    for block in T.thread_binding(1, thread="blockIdx.x"):
        XS = T.alloc_buffer((ROWS, STORED), "LEFT", scope="shared")
        YS = T.alloc_buffer((DEPTH, COLUMNS), "LEFT", scope="shared")
        for t in T.thread_binding(THREADS, thread="threadIdx.x"):
            for r in T.serial(ROWS * STORED // THREADS):
                XS[(r * THREADS + t) // STORED, (r * THREADS + t) % STORED] = A[(r * THREADS + t) // STORED, (r * THREADS + t) % STORED]
            for u in T.serial(DEPTH * COLUMNS // THREADS):
                YS[(u * THREADS + t) // COLUMNS, (u * THREADS + t) % COLUMNS] = B[(u * THREADS + t) // COLUMNS, (u * THREADS + t) % COLUMNS]
        S = T.alloc_buffer((ROWS, COLUMNS), "SUM", scope="fragment")
        Y = T.alloc_buffer((DEPTH, COLUMNS), "LEFT", scope="fragment")
        for i, j in T.grid(ROWS, COLUMNS):
            S[i, j] = C[i, j]
        for k, j_1 in T.grid(DEPTH, COLUMNS):
            Y[k, j_1] = YS[k, j_1]
MULTIPLIED
        for i_4, j_3 in T.grid(ROWS, COLUMNS):
            C[i_4, j_3] = S[i_4, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
_DENSE = """\
        X = T.alloc_buffer((ROWS, DEPTH), "LEFT", scope="fragment")
        for i_1, p_1 in T.grid(ROWS, DEPTH):
            X[i_1, p_1] = XS[i_1, p_1]
        for i_3, p_3, j_2 in T.grid(ROWS, DEPTH, COLUMNS):
            S[i_3, j_2] = S[i_3, j_2] + T.SUM(X[i_3, p_3]) * T.SUM(Y[p_3, j_2])\
"""
_SPARSE = """\
        X = T.alloc_buffer((ROWS, DEPTH // 4, 2), "LEFT", scope="fragment")
        M = T.alloc_buffer((ROWS, DEPTH // 4, 2), "uint8", scope="fragment")
        for i_1, q_1, s_1 in T.grid(ROWS, DEPTH // 4, 2):
            X[i_1, q_1, s_1] = XS[i_1, 2 * q_1 + s_1]
        for i_2, q_2, s_2 in T.grid(ROWS, DEPTH // 4, 2):
            M[i_2, q_2, s_2] = E[i_2, q_2, s_2]
        for i_3, q_3, s_3, j_2 in T.grid(ROWS, DEPTH // 4, 2, COLUMNS):
            S[i_3, j_2] = S[i_3, j_2] + T.SUM(X[i_3, q_3, s_3]) * T.SUM(Y[4 * q_3 + T.int64(M[i_3, q_3, s_3]) % 4, j_2])\
"""  # noqa: E501  (scripts have no line breaks inside an expression)
SUMS = {"float16": "float32", "int8": "int32"}


def warp_tile_text(dtype, shape, *, threads, is_sparse):
    """The script of a tile of so many rows, columns and terms."""
    rows, columns, depth = shape
    declared = 'E = T.match_buffer(e, (ROWS, DEPTH // 4, 2), "uint8")' if is_sparse else ""
    texts = {
        "MULTIPLIED": _SPARSE if is_sparse else _DENSE,
        "PARAMETER": "e: T.handle, " if is_sparse else "",
        "DECLARED": declared,
        "STORED": str(depth // 2 if is_sparse else depth),
        "ROWS": str(rows),
        "COLUMNS": str(columns),
        "DEPTH": str(depth),
        "THREADS": str(threads),
        "LEFT": dtype,
        "SUM": SUMS[dtype],
    }
    text = _HEAD
    for name, value in texts.items():
        text = text.replace(name, value)
    return text


def warp_tile_problem(dtype, shape, *, is_sparse):
    """Arguments of small integers, and the result."""
    rows, columns, depth = shape
    random = np.random.default_rng(rows + columns)
    a, b = random.integers(-4, 5, (rows, depth)), random.integers(-4, 5, (depth, columns))
    c = random.integers(-9, 9, (rows, columns))
    arguments = {"b": b.astype(dtype), "c": c.astype(SUMS[dtype])}
    if is_sparse:
        indices = np.sort(random.random((rows, depth // 4, 4)).argsort(axis=2)[..., :2], axis=2)
        values = np.take_along_axis(a.reshape(rows, -1, 4), indices, axis=2)
        kept = np.zeros((rows, depth // 4, 4), np.int64)
        np.put_along_axis(kept, indices, values, axis=2)
        arguments |= {"a": values.reshape(rows, -1), "e": indices.astype(np.uint8)}
        a = kept.reshape(rows, depth)
    else:
        arguments["a"] = a
    arguments["a"] = arguments["a"].astype(dtype)
    return arguments, a @ b + c
