"""Damaged scripts are either parsed (and survive a round trip) or rejected with an error of gossamer."""

import ast
import copy
import random

import pytest

from gossamer_ir.errors import ParseError
from gossamer_ir.script import parse_module, print_module

pytestmark = pytest.mark.no_error_examples

BASE = """
@T.prim_func
def f(a: T.handle, p: T.handle, q: T.handle, n: T.int64, x: T.float32):
    T.func_attr({"sparse_tir_level": 1})
    I = T.sp.dense_fixed(n)
    J = T.sp.compressed_varied(I, (n, n + 1), (p, q), "int32")
    A = T.sp.match_buffer(a, (I, J), "float32")
    P = T.match_buffer(p, (n + 1,), "int32")
    T.assume(in_range(P, 0, n))
    for i in T.serial(n):
        y: T.float32 = x * 2.0
        if i < n and not n == 4:
            A[i, 0] = T.Select(x < 1.0, y, -y)
        for j in T.parallel(0, P[i + 1] - P[i], weight=P[j], grain=16):
            with T.block("b"):
                vi, vj = T.axis.remap("SR", [i, j])
                vk = T.axis.spatial((1, n), i * 2)
                T.where(vi < n - 1)
                T.reads(A[vi, 0:n])
                with T.init():
                    A[vi, vj] = 0.0
                A[vi, vj] += T.exp(T.float32(vk)) + T.load(A, vi, 0, predicate=True, passthrough=x)
                z = T.ramp(n, 1, 4 * T.vscale())
                T.store(A, vi, T.search("lower", P, begin=0, end=n, value=5), value=1.0)
    while n < 10:
        T.prefetch(A[0, n])
"""

STRANGE = (
    "None", "1j", 'b"x"', "...", 'f"{n}"', "-1", "1.5", "True", "[]", "{}", "()", "lambda *a: 1",
    "[*n]", "T", "T.sp", "T()", "n.x", "n()()", '"x"', 'T.float32("x")', "T.load()", "T.load(A)",
    'T.search("exact")', "T.ramp(0, 1, 0)", "T.ramp(0, 1, 10**30)", 'T.cast(n, "handle")',
    "A[T.ramp(0, 1, 4), T.ramp(0, 1, 4)]", "T.broadcast(T.broadcast(n, 4), 4)", "1e400", "A[:]",
    "T.float16(1e10)", "T.int8(300)", "A[()]", "x and x", "10 ** 10 ** 10", "n := 1", "T.exp(1)",
)  # fmt: skip


class Replace(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def damaged(seed):
    choice = random.Random(seed)
    tree = ast.parse(BASE)
    kind = ast.expr if choice.random() < 0.75 else ast.stmt
    nodes = [node for node in ast.walk(tree) if isinstance(node, kind)]
    old, new = choice.choice(nodes), copy.deepcopy(choice.choice(nodes))
    if kind is ast.expr and choice.random() < 0.5:
        new = ast.parse(f"({choice.choice(STRANGE)})", mode="eval").body
    return ast.unparse(Replace(old, new).visit(tree))


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_script_is_read_or_refused(seed):
    read = refused = 0
    for number in range(40):
        try:
            module = parse_module(damaged(seed * 1000 + number))
        except ParseError:
            refused += 1
        else:
            read += 1
            assert parse_module(print_module(module)) == module
    assert read + refused == 40
