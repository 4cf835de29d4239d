"""Programs that search an array."""

from __future__ import annotations

from gossamer_ir.nodes import Search
from gossamer_ir.script import parse_module
from gossamer_ir.traversal.walk import walk

HEADER = """
@T.prim_func
def f(x: T.handle, y: T.handle, p: T.handle, n: T.int64, c: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    P = T.match_buffer(p, (n,), "INT")
    X = T.match_buffer(x, (c,), "int64")
    Y = T.match_buffer(y, (c,), "int64")
"""


def program(body, index="int32"):
    lines = body.strip("\n").splitlines()
    return parse_module(HEADER.replace("INT", index) + "\n".join("    " + x for x in lines) + "\n")


def searches(module):
    return [node for node in walk(module) if isinstance(node, Search)]
