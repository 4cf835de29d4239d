"""Programs that write their own indices, bounds, conditions and sizes keep their meaning when lowered."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gossamer_ir.interpret import run
from gossamer_ir.interpret.interpreter_errors import GuardFailed, InterpreterError
from gossamer_ir.script import parse_module
from gossamer_ir.verify import diagnostics
from gossamer_lower.pipelines.flat_passes import FLAT_PASSES

HEADER = """
@T.prim_func
def f(
    x: T.handle, y: T.handle, p: T.handle, q: T.handle, s: T.handle, n: T.int64, m: T.int64
) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    P = T.match_buffer(p, (n,), "int64")
    Q = T.match_buffer(q, (n,), "int64")
    S = T.match_buffer(s, (4,), "int64")
    T.assume(in_range(P, 0, n))
    T.assume(monotone(P))
"""
MAX_INT64 = 2**63 - 1

PROGRAMS = {
    "a buffer whose index counts": """
W = T.decl_buffer((8,), "float32", scope="local")
for i in T.serial(4):
    W[S[0]] = X[i]
    S[0] = S[0] + 1
S[0] = 0
for i_2 in T.serial(4):
    Y[i_2] = W[S[0]]
    S[0] = S[0] + 1
""",
    "a buffer whose offset changes with the loop": """
W = T.decl_buffer((16,), "float32", scope="local")
for i in T.serial(4):
    W[i + S[0]] = X[i]
    S[0] = S[0] + 1
    if i > 1:
        Y[i] = W[i + S[0] - 3]
""",
    "a buffer whose offset is read in the loop": """
W = T.decl_buffer((8,), "float32", scope="local")
for i in T.serial(2):
    if i == 0:
        W[i - Q[i]] = X[i]
    if i == 1:
        Y[i] = W[i - Q[i]]
""",
    "a buffer whose index wraps in a loop": """
W = T.decl_buffer((8,), "float32", scope="local")
for i in T.serial(5):
    if i == 0:
        W[i * 4611686018427387904] = X[i]
    if i == 4:
        Y[i] = W[i * 4611686018427387904]
""",
    "a buffer up to a bound that wraps": """
W = T.decl_buffer((20,), "float32", scope="local")
for j in T.serial(n // 4):
    for k in T.serial(4):
        if m + j * 4 + k < n:
            W[Q[0] + j * 4 + k] = X[j * 4 + k]
for j_2 in T.serial(n // 4):
    for k_2 in T.serial(4):
        if m + j_2 * 4 + k_2 < n:
            Y[j_2] = Y[j_2] + W[Q[0] + j_2 * 4 + k_2]
""",
    "a buffer that shrinks and is accessed out of bounds": """
W = T.decl_buffer((4,), "float32", scope="local")
W[S[1]] = X[0]
Y[0] = W[S[1]]
""",
    "a buffer that no loop accesses in bounds": """
W = T.decl_buffer((4,), "float32", scope="local")
for i in T.serial(8):
    W[i] = X[i]
    Y[i] = W[i]
""",
    "a size after a guard": """
for i in T.serial(4):
    Y[i] = X[S[i]]
    row = T.alloc_buffer((P[S[i]] + 1,), "float32")
    for j in T.serial(P[S[i]] + 1):
        row[j] = X[i]
    for k in T.serial(P[S[i]] + 1):
        Y[i] = Y[i] + row[k]
""",
    "a size that is read where a guard allows it": """
for i in T.serial(4):
    T.guard(S[i] >= 0 and S[i] < n, P)
    row = T.alloc_buffer((P[S[i]] + 1,), "float32")
    for j in T.serial(P[S[i]] + 1):
        row[j] = X[i]
    for k in T.serial(P[S[i]] + 1):
        Y[i] = Y[i] + row[k]
""",
    "a condition that its body makes false": """
if m < S[0]:
    S[0] = 0
    if S[0] <= n:
        for i in T.serial(n):
            if i < m:
                Y[i] = X[i]
            else:
                Y[i] = 2.0
""",
    "a condition of lanes that its body makes false": """
if n > 9:
    if S[0] < n:
        S[0] = n + 8
        for t in T.serial(2):
            for l in T.vectorized(4):
                if t * 4 + l < S[0] - n:
                    Y[0] = Y[0] + X[t * 4 + l]
""",
    "vectors under a condition that its body makes false": """
if S[1] > 7:
    S[1] = 0
    for i in T.serial(S[1] // 8):
        if P[0] > 0:
            Y[T.ramp(i * 8, 1, 8)] = X[T.ramp(0, 1, 8)]
""",
    "a search before a write of what it searches": """
at = T.search("lower", Q, begin=0, end=n, value=3)
Q[0] = 9
for i in T.serial(n):
    with T.block("sum"):
        vi = T.axis.spatial(n, i)
        with T.init():
            Y[vi] = 0.0
        Y[vi] = Y[vi] + T.float32(at)
""",
    "a buffer that is accessed far out of bounds": """
W = T.decl_buffer((4,), "float32", scope="local")
W[0] = 1.0
Y[0] = W[4611686018427387904]
""",
    "a loop of one iteration that starts where its body changes": """
for i in T.serial(S[0], S[0] + 1):
    for j in T.serial(3):
        S[0] = S[T.max(T.min(i, 3), 0)] + 1
""",
    "a size that is read where a loop runs": """
for i in T.serial(S[3]):
    row = T.alloc_buffer((P[S[2]], 3), "float32")
    for j in T.serial(P[S[2]]):
        row[j, 1] = X[j]
    Y[i] = row[0, 1]
""",
    "an unrolled loop that starts where its body changes": """
for i in T.unroll(S[0], S[0] + 3):
    S[T.max(T.min(i, 3), 0)] = 2
""",
    "lanes that start where their body changes": """
if S[0] < 3:
    for l in T.vectorized(S[0], S[0] + 4):
        Q[l] = 3
        S[l % 4] = 2
        Y[l] = X[l]
""",
    "sums of lanes that start where they change": """
if n > 9:
    for t in T.serial(3):
        for l in T.vectorized(T.int64(Y[0]) % 4, T.int64(Y[0]) % 4 + 4):
            Y[0] = Y[0] + X[l % 8]
""",
    "sums of lanes up to a bound where they start where they change": """
if n > 9:
    for t in T.serial(3):
        for l in T.vectorized(T.int64(Y[0]) % 4, T.int64(Y[0]) % 4 + 4):
            if t * 4 + l < n:
                Y[0] = Y[0] + X[(t * 4 + l) % 8]
""",
    "a loop that is parted and starts where its body changes": """
for i in T.serial(S[0], S[0] + 4):
    if i < m:
        S[T.max(T.min(i, 3), 0)] = 2
    else:
        S[0] = S[0] - 1
""",
    "a loop whose last iteration is peeled and that starts where its body changes": """
for i in T.serial(S[0], S[0] + 4, annotations={"peel": "last"}):
    S[T.max(T.min(i, 3), 0)] = 2
    if i + 1 < S[1]:
        Y[T.max(T.min(i, 3), 0)] = 1.0
""",
    "a loop whose last iteration is peeled and whose start its body writes": """
for i in T.serial(S[0], S[0] + 2, annotations={"peel": "last"}):
    Y[T.max(T.min(i, 3), 0)] = 1.0
    S[0] = 2
""",
    "a loop up to the largest integer": """
for i in T.serial(m, m + 2):
    Y[T.max(T.min(i, 3), 0)] = 3.0
""",
    "a buffer that is searched": """
R = T.decl_buffer((8,), "int64", scope="local")
for i in T.serial(8):
    R[i] = P[i] + 1
for k in T.serial(4):
    Y[k] = T.float32(T.search("lower", R, begin=0, end=8, value=k))
""",
    "a prefetch whose index reads out of bounds": """
T.prefetch(X, P[S[0]])
Y[0] = 1.0
""",
    "an index that wraps inside another": """
for i in T.serial(4, 4 + T.min(n, 1)):
    Y[i] = X[P[i * 4611686018427387904] - P[1]]
""",
    "an index that wraps": """
for i in T.serial(4, 4 + T.min(n, 1)):
    Y[i] = X[i * 4611686018427387904 + P[i] - P[1]]
""",
    "a bound that wraps": """
for i in T.serial(4):
    if i * 4 + m < S[2]:
        Y[i] = X[i]
    else:
        Y[i] = 2.0
""",
    "a group of a bound that wraps": """
for i in T.serial(2):
    for u in T.unroll(4):
        if m + i * 4 + u < S[2]:
            for j in T.serial(2):
                Y[i * 4 + u] = Y[i * 4 + u] + X[j]
""",
    "a mask that wraps": """
for i in T.serial(1):
    Y[T.ramp(0, 1, 4)] = T.Select(
        T.ramp(m, 1, 4) >= T.broadcast(m, 4), X[T.ramp(0, 1, 4)], X[T.ramp(4, 1, 4)])
""",
    "a denied condition that wraps": """
W = T.decl_buffer((4,), "float32", scope="local")
W[0] = 2.0
for i in T.serial(8):
    if not i * 2305843009213693952 >= i:
        W[i] = 1.0
Y[0] = W[0]
""",
    "sums of lanes up to a bound that wraps": """
if n > 9:
    for t in T.serial(2):
        for l in T.vectorized(4):
            if t * 4 + l + m < S[2]:
                Y[0] = Y[0] + X[t * 4 + l]
""",
}
SCALARS = [0, 1, 5, 20, -3, 2**62, MAX_INT64 - 2, MAX_INT64, -(2**63)]
UNGUARDED = ("expand_reducers", "lower_blocks", "contract_buffers", "unswitch_uniform_conditions")
"""Passes before the bounds checks are inserted: an access out of bounds is not stopped by a guard there."""


def outcome(module, *, m, s):
    """The arrays after a run, or the error that stopped it."""
    x = np.arange(1, 13, dtype=np.float32)
    p = np.array([0, 1, 1, 1, 2, 2, 2, 3, 3, 7, 8, 9])
    arrays = {"x": x, "y": np.zeros_like(x), "p": p, "q": p.copy(), "s": np.array(s)}
    try:
        run(module, {**arrays, "n": 12, "m": m})
    except (GuardFailed, InterpreterError) as error:
        return type(error).__name__
    return [array.tolist() for array in arrays.values()]


CASES = [
    (name, m)
    for name, text in PROGRAMS.items()
    for m in (SCALARS if re.search(r"\bm\b|S\[2\]", text) else [20])
]
"""Each program, with all scalars if it reads one of them."""


@pytest.mark.parametrize(("name", "m"), CASES)
def test_every_pass_keeps_what_a_program_does(name, m):
    body = "".join(f"    {line}\n" for line in PROGRAMS[name].strip().splitlines())
    module = parse_module(HEADER + body)
    assert diagnostics(module) == ()
    for s in ([0, 9, m, 0], [13, 2, MAX_INT64, 0], [30, 8, 40, m]):
        wanted = outcome(module, m=m, s=s)
        lowered = module
        for lower in FLAT_PASSES:
            lowered = lower(lowered)
            assert diagnostics(lowered) == (), lower.__name__
            actual = outcome(lowered, m=m, s=s)
            if isinstance(wanted, list):
                assert actual == wanted, lower.__name__
            elif lower.__name__ not in UNGUARDED:
                assert actual == "GuardFailed", lower.__name__
