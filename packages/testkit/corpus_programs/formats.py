"""Programs over other formats, as the default rules schedule them."""

from __future__ import annotations

from collections.abc import Iterator

from corpus_programs.kernels import scheduled
from corpus_programs.source import Source
from gossamer_ir.script import parse_module

CSR = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "INDEX", sorted=False, unique=False)
"""
SDDMM = (
    CSR
    + """
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(FEATURES)
    X = T.sp.match_buffer(x, (I, K), "DTYPE")
    Y = T.sp.match_buffer(y, (N, K), "DTYPE")
    OUT = T.sp.match_buffer(out, (I, J), "DTYPE")
    with T.sp.iteration([AXES, K], "SSR", "sddmm") as [i, j, k]:
        with T.init():
            OUT[i, j] = 0.0
        OUT[i, j] = OUT[i, j] + X[i, k] * Y[j, k]
"""
)
ELEMENTS = (
    CSR
    + """
    M = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "DTYPE")
    R = T.sp.match_buffer(r, (M,), "DTYPE")
    X = T.sp.match_buffer(x, (N,), "DTYPE")
    OUT = T.sp.match_buffer(out, (I, J), "DTYPE")
    with T.sp.iteration([I, J], "SS", "elements") as [i, j]:
        OUT[i, j] = A[i, j] - R[i] * X[j]
"""
)
ROW_SUMS = (
    CSR
    + """
    A = T.sp.match_buffer(a, (I, J), "DTYPE")
    Y = T.sp.match_buffer(y, (I,), "DTYPE")
    with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j]
"""
)
SEGMENTS = """
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_varied(I, (n, nnz), indptr, "INDEX")
    A = T.sp.match_buffer(a, (I, J), "DTYPE")
    Y = T.sp.match_buffer(y, (I,), "DTYPE")
    with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j]
"""
ELL = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_fixed(I, (n, width), indices, "INDEX", sorted=False, unique=False)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(FEATURES)
    A = T.sp.match_buffer(a, (I, J), "DTYPE")
    B = T.sp.match_buffer(b, (N, K), "DTYPE")
    C = T.sp.match_buffer(c, (I, K), "DTYPE")
    with T.sp.iteration([I, J, K], "SRS", "product") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""
DCSR = """
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_varied(O, (m, stored), (indptr_i, indices_i), "INDEX")
    J = T.sp.compressed_varied(I, (n, nnz), (indptr_j, indices_j), "INDEX", sorted=False, unique=False)
    M = T.sp.dense_fixed(m)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(FEATURES)
    A = T.sp.match_buffer(a, (O, I, J), "DTYPE")
    B = T.sp.match_buffer(b, (N, K), "DTYPE")
    C = T.sp.match_buffer(c, (M, K), "DTYPE")
    with T.sp.iteration([O, I, J, K], "SSRS", "product") as [o, i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[o, i, j] * B[j, k]
"""
BSR = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (indptr, indices), "INDEX", sorted=False, unique=False)
    U = T.sp.dense_fixed(BLOCK)
    V = T.sp.dense_fixed(BLOCK)
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(FEATURES)
    A = T.sp.match_buffer(a, (I, J, U, V), "DTYPE")
    B = T.sp.match_buffer(b, (N, V, K), "DTYPE")
    C = T.sp.match_buffer(c, (I, U, K), "DTYPE")
    with T.sp.iteration([I, J, U, V, K], "SRSRS", "product") as [i, j, u, v, k]:
        with T.init():
            C[i, u, k] = 0.0
        C[i, u, k] = C[i, u, k] + A[i, j, u, v] * B[j, v, k]
"""
PLAIN = "m n nnz"

Row = tuple[str, str, str, str, str, str, dict[str, int]]
ROWS: tuple[Row, ...] = (
    ("sddmm", SDDMM.replace("AXES", "I, J"), "x y out indptr indices", PLAIN, "float32", "int32",
     {"features": 33}),
    ("sddmm", SDDMM.replace("AXES", "I, J"), "x y out indptr indices", PLAIN, "float64", "int64",
     {"features": 16}),
    ("sddmm_fused", SDDMM.replace("AXES", "T.sp.fuse(I, J)"), "x y out indptr indices", PLAIN,
     "float32", "int32", {"features": 33}),
    ("sddmm_fused", SDDMM.replace("AXES", "T.sp.fuse(I, J)"), "x y out indptr indices", PLAIN,
     "float32", "int64", {"features": 128, "most": 120}),
    ("elements", ELEMENTS, "a r x out indptr indices", PLAIN, "float32", "int32", {}),
    ("row_sums", ROW_SUMS, "a y indptr indices", PLAIN, "float32", "int32", {}),
    ("segment_sums", SEGMENTS, "a y indptr", PLAIN, "float64", "int32", {}),
    ("ell", ELL, "a b c indices", "m n width", "float32", "int32", {"features": 33}),
    ("ell", ELL, "a b c indices", "m n width", "float64", "int64", {"features": 5}),
    ("dcsr", DCSR, "a b c indptr_i indices_i indptr_j indices_j", "m n stored nnz", "float32",
     "int32", {"features": 33}),
    ("bsr", BSR, "a b c indptr indices", PLAIN, "float32", "int32",
     {"features": 16, "block": 16, "most": 40}),
    ("bsr", BSR, "a b c indptr indices", PLAIN, "float64", "int32", {"features": 5, "block": 3, "most": 120}),
)  # fmt: skip
"""Name, axes and body, pointers, sizes, dtypes, constants."""


def sources() -> Iterator[Source]:
    """All of them."""
    for name, body, handles, sizes, dtype, index_dtype, constants in ROWS:
        params = [f"{handle}: T.handle" for handle in handles.split()]
        params += [f"{size}: T.int64" for size in sizes.split()]
        for word, value in (("DTYPE", dtype), ("INDEX", index_dtype)):
            body = body.replace(word, value)
        for word, number in constants.items():
            body = body.replace(word.upper(), str(number))
        head = f"@T.prim_func\ndef {name}({', '.join(params)}) -> None:\n"
        module = parse_module(f'{head}    T.func_attr({{"sparse_tir_level": 2}})\n{body}')
        suffix = "".join(f"_{number}" for key, number in constants.items() if key != "most")
        options = {"dtype": dtype, "index_dtype": index_dtype, **constants}
        family = name.removesuffix("_fused")
        yield Source(
            f"{name}_{dtype}_{index_dtype}{suffix}",
            f"{name.replace('_', ' ')}, as the default rules schedule it.",
            scheduled(module), f"{family}_cases", family, options,
        )  # fmt: skip
