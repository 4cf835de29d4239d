"""Random loop nests around reductions with conditions and other statements between the loops, which no
program of the coordinate stage lowers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from gossamer_ir.interpret import InterpreterError
from gossamer_ir.script import parse_module
from tests.fuzzing.programs.handwritten import Written
from tests.fuzzing.programs.program import Program

HEADER = """
@T.prim_func
def main(x: T.handle, p: T.handle, v: T.handle, w: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (8, 8), "int32")
    P = T.match_buffer(p, (9,), "int32")
    V = T.match_buffer(v, (64,), "int32")
    W = T.match_buffer(w, (64,), "int32")
"""
ELEMENTS, TERMS = (4, 8, "n", "T.int64(P[n])"), (3, 8, "n")
SOMETIMES, SELDOM = 0.3, 0.1


def draw_nest(rng: Random) -> Program:
    """One or two nests, in a loop or not, called with a size from 0 to 3."""
    while True:
        lines = _nest(rng, "a")
        if rng.random() < SOMETIMES:
            lines = [*lines, *_padded(rng)] if rng.random() < SOMETIMES else [*_padded(rng), *lines]
        if rng.random() < SOMETIMES:
            lines += _nest(rng, "b")
            if rng.random() < SOMETIMES:
                lines = under("for t in T.serial(2):", lines)
        program = called(rng, HEADER + "\n".join(under("", lines)) + "\n")
        try:
            program.meaning  # noqa: B018 - it stops where a bound or an index is wrong
        except InterpreterError:
            continue
        return program


def called(rng: Random, text: str) -> Written:
    """The script with arrays of small numbers (those of `p` are at most 3) and a size."""
    arrays = {
        "x": _numbers(rng, 64, least=-3),
        "p": _numbers(rng, 9, least=0),
        "v": _numbers(rng, 64, least=-3),
        "w": _numbers(rng, 64, least=-3),
    }
    return Written(parse_module(text), arrays, {"n": rng.choice((0, 1, 2, 3))})


def _numbers(rng: Random, count: int, *, least: int) -> np.ndarray:
    return np.array([rng.randint(least, 3) for _ in range(count)], np.int32)


def _nest(rng: Random, tag: str) -> list[str]:
    """A block in loops over elements, over terms, and over neither."""
    elements = [(f"i{tag}", rng.choice(ELEMENTS))]
    terms = [(f"j{tag}", rng.choice(TERMS))]
    others = [(f"k{tag}", rng.choice((1, 2, "n")))] if rng.random() < SOMETIMES else []
    if rng.random() < SOMETIMES:
        elements.append((f"l{tag}", 3))
    if rng.random() < SOMETIMES:
        terms.append((f"m{tag}", 2))
    loops = [*elements, *terms, *others]
    rng.shuffle(loops)
    if rng.random() < SOMETIMES:
        loops[-1] = (loops[-1][0], f"{loops[0][0]} + 1")
    body = _block(rng, tag, _digits(elements, 3), _digits(terms, 2))
    for at in reversed(range(len(loops))):
        name, extent = loops[at]
        if rng.random() < SOMETIMES:
            body = _conditioned(rng, [var for var, _ in loops[: at + 1]], body)
        if rng.random() < SELDOM:
            body = [rng.choice(("W[60] = W[60] + 1", f"T.prefetch(X, {name}, 0)")), *body]
        body = under(f"for {name} in T.serial({extent}):", body)
    return body


def _padded(rng: Random) -> list[str]:
    """A copy with padding, chosen by a condition on one or both of its iterators."""
    extents = {"ip": rng.choice(("4", "n")), "jp": rng.choice(("3", "n", "ip + 1"))}
    inside = " and ".join(
        rng.choice(("vip >= 1", "vip < 3", "vjp >= n", "1 < vjp", "vjp <= vip", "vip < n - 1"))
        for _ in range(rng.choice((1, 2, 3)))
    )
    element = rng.choice(("vip * 4 + vjp", "vip * 4 + vjp", "vip + vjp"))
    padding = rng.choice(("7", "T.int32(vjp)"))
    body = [
        f"vip = T.axis.spatial({extents['ip']}, ip)",
        f"vjp = T.axis.spatial({extents['jp'].replace('ip', 'vip')}, jp)",
        f"W[{element}] = T.if_then_else({inside}, X[vip % 8, vjp % 8], {padding})",
    ]
    body = under('with T.block("padded"):', body)
    for name, extent in reversed(extents.items()):
        body = under(f"for {name} in T.serial({extent}):", body)
    return body


def _digits(loops: Sequence[tuple[str, object]], base: int) -> str:
    return f" * {base} + ".join(name for name, _ in loops)


def _conditioned(rng: Random, loops: Sequence[str], body: list[str]) -> list[str]:
    condition = " and ".join(_condition(rng, loops) for _ in range(rng.choice((1, 1, 2))))
    if rng.random() < SELDOM:
        return [*under(f"if {condition}:", ["W[63] = 1"]), *under("else:", body)]
    return under(f"if {condition}:", body)


def _condition(rng: Random, loops: Sequence[str]) -> str:
    loop, other = rng.choice(loops), rng.choice(loops)
    return rng.choice(
        (f"{loop} != {rng.randint(0, 3)}", f"{loop} < 2 * n", f"{loop} + {other} < 5", "n > 0")
    )


def _block(rng: Random, tag: str, element: str, term: str) -> list[str]:
    buffer = rng.choice("VW")
    terms = (f"{buffer}[vi] + X[vi % 8, vj % 8]", f"T.max({buffer}[vi], X[vi % 8, vj % 8])",
             f"{buffer}[vi] * 2 + T.int32(vj)")  # fmt: skip
    body = [f"vi = T.axis.spatial(64, {element})", f"vj = T.axis.reduce(64, {term})"]
    if rng.random() < SOMETIMES:
        body.append(f"T.where({rng.choice(('vi != 1', 'vj != 1', 'vi + vj < 6', 'vi < 5'))})")
    if rng.random() > SOMETIMES:
        body += under("with T.init():", [f"{buffer}[vi] = {rng.choice(('0', 'T.int32(vi)'))}"])
    body.append(f"{buffer}[vi] = {rng.choice(terms)}")
    return under(f'with T.block("b{tag}"):', body)


def under(head: str, body: Sequence[str]) -> list[str]:
    """The lines, indented below another one if there is one."""
    inside = ["    " + line for line in body]
    return [head, *inside] if head else inside
