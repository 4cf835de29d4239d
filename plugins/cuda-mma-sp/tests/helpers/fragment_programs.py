"""Flat programs that multiply one tile in fragments, and arrays for them."""

import re

import numpy as np

from gossamer_cuda_mma_sp.n_m.operand_dtypes import operand_dtype_named
from gossamer_ir.script import parse_module

SUMS = {
    "float16": "float32", "bfloat16": "float32", "tfloat32": "float32", "int8": "int32",
    "uint8": "int32", "int4": "int32", "uint4": "int32",
}  # fmt: skip
STORED = {"tfloat32": "float32", "int4": "int8", "uint4": "uint8"}
"""The dtypes of fragments whose elements instructions read in another one."""
READ = {"tfloat32": "T.tf32({})", "int4": "({} << 4 >> 4)", "uint4": "({} & 15)"}
LIMITS = {"uint8": (0, 5), "uint4": (0, 16), "int4": (-8, 8)}

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
                    S[i_2, j_2] = S[i_2, j_2] + T.SUM(READ_LEFT<X[i_2, p_2]>) * T.SUM(READ_RIGHT<Y[p_2, j_2]>)
        for i_3 in T.serial(ROWS):
            for j_3 in T.serial(COLUMNS):
                C[i_3, j_3] = S[i_3, j_3]
"""
_SPARSE = """
@T.prim_func
def f(a: T.handle, e: T.handle, b: T.handle, c: T.handle) -> None:
    T.stage("flat")
    A = T.match_buffer(a, (ROWS, STORED_SHAPE), "LEFT")
    E = T.match_buffer(e, (ROWS, INDEX_SHAPE), "uint8")
    B = T.match_buffer(b, (DEPTH, COLUMNS), "RIGHT")
    C = T.match_buffer(c, (ROWS, COLUMNS), "SUM")
    for block in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer((ROWS, COLUMNS), "SUM", scope="fragment")
        X = T.alloc_buffer((ROWS, STORED_SHAPE), "LEFT", scope="fragment")
        M = T.alloc_buffer((ROWS, INDEX_SHAPE), "uint8", scope="fragment")
        Y = T.alloc_buffer((DEPTH, COLUMNS), "RIGHT", scope="fragment")
        for i, j in T.grid(ROWS, COLUMNS):
            S[i, j] = C[i, j]
        for i_1, STORED_AT<1> in T.grid(ROWS, STORED_SHAPE):
            X[i_1, STORED_AT<1>] = A[i_1, STORED_AT<1>]
        for i_2, INDEX_AT<2> in T.grid(ROWS, INDEX_SHAPE):
            M[i_2, INDEX_AT<2>] = E[i_2, INDEX_AT<2>]
        for p_0, j_1 in T.grid(DEPTH, COLUMNS):
            Y[p_0, j_1] = B[p_0, j_1]
        for i_3, STORED_AT<3>, j_2 in T.grid(ROWS, STORED_SHAPE, COLUMNS):
            S[i_3, j_2] = S[i_3, j_2] + T.SUM(READ_LEFT<X[i_3, STORED_AT<3>]>) * T.SUM(READ_RIGHT<Y[ROW_OF_B, j_2]>)
        for i_4, j_3 in T.grid(ROWS, COLUMNS):
            C[i_4, j_3] = S[i_4, j_3]
"""  # noqa: E501  (scripts have no line breaks inside an expression)
ROWS_OF_B = {
    "1:2": "2 * q_3 + T.int64(M[i_3, q_3]) % 2",
    "2:4": "4 * q_3 + T.int64(M[i_3, q_3, s_3]) % 4",
    "4:8": "8 * q_3 + T.int64(M[i_3, q_3, s_3]) % 4 * 2 + p_3",
}


def pattern_of(dtype):
    """The pattern of a sparse operand, with the names of the dimensions of its stored elements and their
    sizes after that of groups."""
    pattern = operand_dtype_named(dtype).pattern
    sizes = {"s": pattern.slots, "p": pattern.unit_columns}
    return pattern, {name: size for name, size in sizes.items() if size > 1}


def tile_text(*, rows=16, columns=8, depth, left="float16", right=None, sums=None, is_sparse):
    """The text of a program for one tile."""
    right = right or left
    text = _DENSE
    if is_sparse:
        pattern, inner = pattern_of(left)
        stored, index = ("q", *inner), ("q", *inner)[: 1 + (pattern.slots > 1)]
        sizes = {"q": depth // pattern.group, **inner}
        text = _SPARSE.replace("ROW_OF_B", ROWS_OF_B[pattern.name])
        for kind, names in (("STORED", stored), ("INDEX", index)):
            text = text.replace(f"{kind}_SHAPE", ", ".join(str(sizes[name]) for name in names))
            at = ", ".join(rf"{name}_\1" for name in names)
            text = re.sub(rf"{kind}_AT<(\d)>", at, text)
    for side, dtype in (("LEFT", left), ("RIGHT", right)):
        text = re.sub(rf"READ_{side}<(.*?\])>", READ.get(dtype, "{}").format(r"\1"), text)
        text = text.replace(side, STORED.get(dtype, dtype))
    values = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "SUM": sums or SUMS[left]}
    for name, value in values.items():
        text = text.replace(name, str(value))
    return text


def tile_program(**options):
    """A program for one tile."""
    return parse_module(tile_text(**options))


def stored(matrix, dtype):
    """Integers as elements of a dtype, as NumPy has them."""
    if dtype == "bfloat16":
        return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return matrix.astype(STORED.get(dtype, dtype))


def tile_arrays(
    rng, *, rows=16, columns=8, depth, left="float16", right=None, sums=None, is_sparse
):
    """The arguments of a program, with small integers, and the expected result."""
    sums, right = sums or SUMS[left], right or left
    b = rng.integers(*LIMITS.get(right, (-4, 5)), (depth, columns))
    c = rng.integers(-4, 5, (rows, columns))
    arguments = {"b": stored(b, right), "c": c.astype(sums)}
    if is_sparse:
        pattern, inner = pattern_of(left)
        groups = (rows, depth // pattern.group)
        a = rng.integers(*LIMITS.get(left, (-4, 5)), (*groups, *inner.values()))
        order = np.argsort(rng.random((*groups, pattern.units)), axis=-1)
        units = np.sort(order[..., : pattern.slots], axis=-1)
        arguments |= {"a": stored(a, left), "e": units.astype(np.uint8)}
        if pattern.slots == 1:
            arguments["e"] = arguments["e"][..., 0].copy()
        dense = np.zeros((*groups, pattern.units, pattern.unit_columns), np.int64)
        values = a.reshape(*groups, pattern.slots, pattern.unit_columns)
        np.put_along_axis(dense, units[..., None], values, axis=-2)
        dense = dense.reshape(rows, depth)
    else:
        dense = rng.integers(*LIMITS.get(left, (-4, 5)), (rows, depth))
        arguments["a"] = stored(dense, left)
    return arguments, dense @ b + c
