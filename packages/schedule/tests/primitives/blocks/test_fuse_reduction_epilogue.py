"""`fuse_reduction_epilogue`: programs that it refuses."""

from __future__ import annotations

import pytest
from nest_programs import SUM
from refused import reason_of
from refused_programs import EPILOGUE

from gossamer_ir.interchange.records import Step
from gossamer_schedule import apply

AFTER = {"block": "sum", "epilogue": "after"}
SMALL = EPILOGUE.replace("decl_buffer((8,)", "decl_buffer((n,)")
NO_INIT = EPILOGUE.replace("            with T.init():\n                Q[vi] = 0.0\n", "")
TWICE = EPILOGUE.replace("Q[vk] + W[vk]", "Q[vk] + Q[vk]")
PREFIX = EPILOGUE.replace("T.axis.spatial(8, k)", "T.axis.spatial(4, k)").replace(
    "for k in T.serial(8)", "for k in T.serial(4)"
)
NOT_ALL = EPILOGUE.replace("for k in T.serial(8)", "for k in T.serial(4)")
EVEN = EPILOGUE.replace("        V[vk] =", "        T.where(vk != 3)\n        V[vk] =")
FIRST = """
Q = T.decl_buffer((8,), "float32")
for k in T.serial(8):
    with T.block("after"):
        vk = T.axis.spatial(8, k)
        V[vk] = Q[vk] + W[vk]
""" + SUM.replace("V[", "Q[")
PARTIAL = """
Q = T.decl_buffer((8,), "float32")
for j in T.serial(8):
    for i in T.serial(8):
        with T.block("sum"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                Q[vi] = 0.0
            Q[vi] = Q[vi] + X[vi, vj]
    for k in T.serial(8):
        with T.block("after"):
            vk = T.axis.spatial(8, k)
            V[vk] = Q[vk] + W[vk]
"""
CHANGED_BETWEEN = EPILOGUE.replace("for k in", "W[0] = 1.0\nfor k in")
REFUSED = [
    ("fuse_reduction_epilogue.form", EPILOGUE, {"block": "sum", "epilogue": "sum"}),
    ("fuse_reduction_epilogue.reduction", NO_INIT, AFTER),
    ("fuse_reduction_epilogue.operation", TWICE, AFTER),
    ("fuse_reduction_epilogue.element", PREFIX, AFTER),
    ("fuse_reduction_epilogue.predicate", EVEN, AFTER),
    ("fuse_reduction_epilogue.scope", FIRST, AFTER),
    ("fuse_reduction_epilogue.scope", PARTIAL, AFTER),
    ("fuse_reduction_epilogue.other_access", CHANGED_BETWEEN, AFTER),
    ("fuse_reduction_epilogue.other_access", EPILOGUE + "W[0] = Q[0]", AFTER),
    ("fuse_reduction_epilogue.not_proved", NOT_ALL, AFTER),
    ("fuse_reduction_epilogue.not_proved", SMALL, AFTER),
]


@pytest.mark.parametrize(("code", "body", "arguments"), REFUSED, ids=[code for code, *_ in REFUSED])
def test_refusals(program, code, body, arguments):
    assert reason_of(apply, program(body), Step("fuse_reduction_epilogue", arguments)) == code
