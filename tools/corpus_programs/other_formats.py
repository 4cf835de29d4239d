"""Programs over other formats, scheduled by the default rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module
from gossamer_ir.transform.retype_module import retype_module
from gossamer_ir.transform.specialize import specialize
from gossamer_testkit import script
from tools.corpus_programs.program_source import CorpusProgram
from tools.corpus_programs.scheduled_operators import schedule_flat

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
PLAIN = "m n nnz"

ProgramRow: TypeAlias = tuple[str, str, str, str, str, str, dict[str, int]]
ROWS: tuple[ProgramRow, ...] = (
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
)  # fmt: skip
"""The name, axes and body, pointers, sizes, dtypes and constants of each program."""

SCRIPTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ell", {"dtype": "float32", "index_dtype": "int32", "features": 33}),
    ("ell", {"dtype": "float64", "index_dtype": "int64", "features": 5}),
    ("dcsr", {"dtype": "float32", "index_dtype": "int32", "features": 33}),
    ("bsr", {"dtype": "float32", "index_dtype": "int32", "features": 16, "block": 16, "most": 40}),
    ("bsr", {"dtype": "float64", "index_dtype": "int32", "features": 5, "block": 3, "most": 120}),
    ("row_groups", {"dtype": "float32", "index_dtype": "int32", "features": 33}),
    ("row_groups", {"dtype": "float64", "index_dtype": "int64", "features": 5}),
    ("bitmask", {"dtype": "float32", "index_dtype": "int32", "features": 33}),
    ("tiled_csr", {"dtype": "float32", "index_dtype": "int32", "features": 33}),
    ("tiled_csr", {"dtype": "float64", "index_dtype": "int64", "features": 5}),
)
"""Formats whose product is a script of the testkit, and the options of each."""


def sources() -> Iterator[CorpusProgram]:
    """Yield the sources of these programs."""
    for name, body, handles, sizes, dtype, index_dtype, constants in ROWS:
        params = [f"{handle}: T.handle" for handle in handles.split()]
        params += [f"{size}: T.int64" for size in sizes.split()]
        for word, value in (("DTYPE", dtype), ("INDEX", index_dtype)):
            body = body.replace(word, value)
        for word, number in constants.items():
            body = body.replace(word.upper(), str(number))
        head = f"@T.prim_func\ndef {name}({', '.join(params)}) -> None:\n"
        module = parse_module(f'{head}    T.func_attr({{"sparse_tir_level": 2}})\n{body}')
        yield _source(name, module, {"dtype": dtype, "index_dtype": index_dtype, **constants})
    for name, options in SCRIPTS:
        yield _source(name, _product(name, options), options)


def _product(name: str, options: dict[str, Any]) -> Module:
    """Return a script with given sizes and dtypes, for rows in any order and with duplicates."""
    text = re.sub(r'( J = .*"int32")\)', r"\1, sorted=False, unique=False)", script(f"{name}_spmm"))
    module = retype_module(
        parse_module(text), dtype=options["dtype"], index_dtype=options["index_dtype"]
    )
    params = {"feat_size": "features", "blk": "block"}
    return specialize(module, {p: options[word] for p, word in params.items() if word in options})


def _source(name: str, module: Module, options: dict[str, Any]) -> CorpusProgram:
    dtype, index_dtype, *numbers = (options[word] for word in options if word != "most")
    family = name.removesuffix("_fused")
    return CorpusProgram(
        "_".join(map(str, (name, dtype, index_dtype, *numbers))),
        f"{name.replace('_', ' ')}, as the default rules schedule it.",
        schedule_flat(module),
        f"{family}_cases",
        family,
        options,
    )
