"""The programs of the examples in docstrings, and the part of their text that passes change.

Examples use `program`, `body_text` and `ROW_SUMS` without an import: the test that runs them passes these
names.
"""

from __future__ import annotations

import re
from itertools import dropwhile
from textwrap import dedent, indent

from gossamer_ir.nodes import Module
from gossamer_ir.script import parse_module, print_module

ROW_SUMS = parse_module("""
@T.prim_func
def row_sums(a: T.handle, y: T.handle, p: T.handle, q: T.handle,
             m: T.int64, n: T.int64, nnz: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 2})
    I = T.sp.dense_fixed(m)
    J = T.sp.compressed_varied(I, (n, nnz), (p, q), "int64")
    A = T.sp.match_buffer(a, (I, J), "float32")
    Y = T.sp.match_buffer(y, (I,), "float32")
    with T.sp.iteration([I, J], "SR", "sums") as [i, j]:
        with T.init():
            Y[i] = 0.0
        Y[i] = Y[i] + A[i, j]
""")
"""The sum of each row of a CSR matrix, coordinate stage."""

_HEADER = """
@T.prim_func
def f(x: T.handle, y: T.handle, p: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (n,), "int64")
"""
_DECLARATION = re.compile(
    r" +(T\.(func_attr|stage|assume)\("
    r"|\w+ = T\.(match_buffer|decl_buffer|comm_reducer|sp\.(?!iteration)\w+)\()"
)


def program(body: str) -> Module:
    """Return a loop-stage function with these statements over X, Y (float32) and P (int64), of length n."""
    return parse_module(_HEADER + indent(dedent(body).strip("\n"), "    ") + "\n")


def body_text(module: Module) -> str:
    """Return the statements of a module with one function, without parameters and declarations.

    >>> print(body_text(program("for i in T.serial(n): Y[i] = X[i]")))
    for i in T.serial(n):
        Y[i] = X[i]
    """
    lines = print_module(module).partition(") -> None:\n")[2].splitlines()
    return dedent("\n".join(dropwhile(_DECLARATION.match, lines)))
