"""Programs over sparse rows for the tests of rules."""

from __future__ import annotations

import re

from msgspec.structs import replace

from gossamer_ir.interchange.records import Stats, Target
from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module, print_module
from gossamer_ir.transform.specialize import specialize
from gossamer_machine import Machine, machine_of


def machine(options: str) -> Machine:
    """Return the machine that options of generic-cpu describe, with the vector registers of x86."""
    described = machine_of(Target.parse(f"generic-cpu:{options}"))
    return replace(described, vector_registers=32 if described.min_vector_bits == 512 else 16)


TARGET = Machine()
CSR = """
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
"""
AXES = {
    "csr": CSR,
    "int64": CSR.replace("(p, q)", '(p, q), "int64"'),
    "ragged": "    I = T.sp.dense_fixed(m)\n    J = T.sp.dense_varied(I, (n, nnz), p)\n",
    "ell": "    I = T.sp.dense_fixed(m)\n    J = T.sp.compressed_fixed(I, (n, w), q)\n",
    "wide": "    I = T.sp.dense_fixed(m)\n    J = T.sp.compressed_fixed(I, (n, 3), q)\n",
    "affine": "    I = T.sp.dense_fixed(m)\n    J = T.sp.compressed_fixed(I, (n, w + w), q)\n",
}
PRODUCT = """
    N = T.sp.dense_fixed(n)
    K = T.sp.dense_fixed(f)
    A = T.sp.match_buffer(a, (I, J), "float32")
    B = T.sp.match_buffer(b, (N, K), "float32")
    C = T.sp.match_buffer(c, (I, K), "float32")
    with T.sp.iteration([I, J, K], "SRS", "product") as [i, j, k]:
        with T.init():
            C[i, k] = 0.0
        C[i, k] = C[i, k] + A[i, j] * B[j, k]
"""
SUM = """
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "total") as [i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[i, j]
"""
DOT = """
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    X = T.sp.match_buffer(b, (N,), "float32")
    C = T.sp.match_buffer(c, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "total") as [i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[i, j] * X[j]
"""
STORED = """
    O = T.sp.dense_fixed(1)
    I = T.sp.compressed_varied(O, (m, r), (o, s))
    J = T.sp.compressed_varied(I, (n, nnz), (p, q))
    M = T.sp.dense_fixed(m)
    A = T.sp.match_buffer(a, (O, I, J), "float32")
    C = T.sp.match_buffer(c, (M,), "float32")
    with T.sp.iteration([O, I, J], "SSR", "total") as [z, i, j]:
        with T.init():
            C[i] = 0.0
        C[i] = C[i] + A[z, i, j]
"""
HEAD = """
@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle, o: T.handle, s: T.handle, p: T.handle, q: T.handle,
         m: T.int64, n: T.int64, nnz: T.int64, w: T.int64, f: T.int64, r: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
"""


def module_of(body, **sizes):
    return specialize(parse_module(HEAD + body), sizes)


def rows_of(mean, longest=1000):
    return Stats(100, 100, int(mean * 100), longest, 0)


SCALED = """
    N = T.sp.dense_fixed(n)
    A = T.sp.match_buffer(a, (I, J), "float32")
    C = T.sp.match_buffer(c, (I, J), "float32")
    R = T.sp.match_buffer(o, (I,), "float32")
    X = T.sp.match_buffer(b, (N,), "float32")
    with T.sp.iteration([I, J], "SS", "scaled") as [i, j]:
        C[i, j] = VALUE
"""


def scaled(axes, value):
    return AXES[axes] + SCALED.replace("VALUE", value)


WIDE, NARROW = Machine(), machine("vector_bits=128")


def as_lowered(module: Module) -> Module:
    """The program of the loop stage, with the names of buffers that lowering gives."""
    return parse_module(
        re.sub(r"\b([ABCXY])\b(?=\[| = T\.match)", r"\1_data", print_module(module))
    )
