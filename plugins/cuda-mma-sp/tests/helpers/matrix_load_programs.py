"""Flat programs that multiply operands in shared memory, and arrays for them."""

import numpy as np
from fragment_programs import stored

from gossamer_ir.script import parse_module

_TEXT = """
@T.prim_func
def f(a: T.handle, b: T.handle, c: T.handle) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (A_ROWS, A_COLUMNS), "DTYPE")
    B = T.match_buffer(b, (B_ROWS, B_COLUMNS), "DTYPE")
    C = T.match_buffer(c, (ROWS, COLUMNS), "float32")
    for block in T.thread_binding(1, thread="blockIdx.x"):
        SA = T.alloc_buffer((2, A_ROWS, A_COLUMNS + PADDING), "DTYPE", scope="shared")
        SB = T.alloc_buffer((B_ROWS, B_COLUMNS + PADDING), "DTYPE", scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for e in T.serial(A_ROWS * A_COLUMNS // 32):
                SA[1, (e * 32 + t) // A_COLUMNS, (e * 32 + t) % A_COLUMNS] = A[(e * 32 + t) // A_COLUMNS, (e * 32 + t) % A_COLUMNS]
        for t_1 in T.thread_binding(32, thread="threadIdx.x"):
            for e_1 in T.serial(B_ROWS * B_COLUMNS // 32):
                SB[(e_1 * 32 + t_1) // B_COLUMNS, (e_1 * 32 + t_1) % B_COLUMNS] = B[(e_1 * 32 + t_1) // B_COLUMNS, (e_1 * 32 + t_1) % B_COLUMNS]
        S = T.alloc_buffer((ROWS, COLUMNS), "float32", scope="fragment")
        X = T.alloc_buffer((ROWS, DEPTH), "DTYPE", scope="fragment")
        Y = T.alloc_buffer((DEPTH, COLUMNS), "DTYPE", scope="fragment")
        for i in T.serial(ROWS):
            for j in T.serial(COLUMNS):
                S[i, j] = 0.0
        for i_1 in T.serial(ROWS):
            for p in T.serial(DEPTH):
                X[i_1, p] = SA[1, A_AT]
        for p_1 in T.serial(DEPTH):
            for j_1 in T.serial(COLUMNS):
                Y[p_1, j_1] = SB[B_AT]
        for i_2 in T.serial(ROWS):
            for p_2 in T.serial(DEPTH):
                for j_2 in T.serial(COLUMNS):
                    S[i_2, j_2] = S[i_2, j_2] + T.float32(X[i_2, p_2]) * T.float32(Y[p_2, j_2])
        for i_3 in T.serial(ROWS):
            for j_3 in T.serial(COLUMNS):
                C[i_3, j_3] = S[i_3, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)


def program(tile=(16, 8, 16), dtype="float16", ways="", padding=8):
    """A product of operands in shared memory; `ways` names those that are transposed there."""
    rows, columns, depth = tile
    a_shape, b_shape = (rows, depth), (depth, columns)
    if "a" in ways:
        a_shape = a_shape[::-1]
    if "b" in ways:
        b_shape = b_shape[::-1]
    text = _TEXT.replace("A_AT", "p, i_1" if "a" in ways else "i_1, p")
    text = text.replace("B_AT", "j_1, p_1" if "b" in ways else "p_1, j_1")
    sizes = {
        "A_ROWS": a_shape[0], "A_COLUMNS": a_shape[1], "B_ROWS": b_shape[0],
        "B_COLUMNS": b_shape[1], "ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "DTYPE": dtype,
        "PADDING": padding,
    }  # fmt: skip
    for name, value in sizes.items():
        text = text.replace(name, str(value))
    return parse_module(text)


def problem(tile=(16, 8, 16), dtype="float16", ways=""):
    rows, columns, depth = tile
    random = np.random.default_rng(rows + columns + depth)
    a, b = random.integers(-4, 5, (rows, depth)), random.integers(-4, 5, (depth, columns))
    arrays = {"a": a.T if "a" in ways else a, "b": b.T if "b" in ways else b}
    arguments = {name: np.ascontiguousarray(stored(array, dtype)) for name, array in arrays.items()}
    return {**arguments, "c": np.zeros((rows, columns), np.float32)}, a @ b
