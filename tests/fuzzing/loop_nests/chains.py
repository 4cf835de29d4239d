"""Random producer and consumer blocks at the loop stage: reductions with epilogues, and sliding windows.
Every element is written before it is read.
"""

from __future__ import annotations

from random import Random

from gossamer_ir.interpret import InterpreterError
from tests.fuzzing.loop_nests.nests import called, under
from tests.fuzzing.programs.program import Program

HEADER = """
@T.prim_func
def main(x: T.handle, p: T.handle, v: T.handle, w: T.handle, n: T.int64) -> None:
    T.func_attr({"sparse_tir_level": 0})
    X = T.match_buffer(x, (8, 8), "int32")
    P = T.match_buffer(p, (9,), "int32")
    V = T.match_buffer(v, (64,), "int32")
    W = T.match_buffer(w, (64,), "int32")
    T.assume(in_range(P, 0, 4))
"""
OPERATIONS = {
    "+": "{} + {}",
    "-": "{} - {}",
    "*": "{} * {}",
    "min": "T.min({}, {})",
    "max": "T.max({}, {})",
}
OPERANDS = ("W[vk]", "W[vk] + 1", "W[T.int64(P[vk])]", "T.int32(vk)")
SOMETIMES, SELDOM = 0.3, 0.15


def draw_chain(rng: Random) -> Program:
    """A chain, called with a size from 0 to 3."""
    while True:
        lines = (_epilogue if rng.random() < 0.6 else _windows)(rng)
        if rng.random() < SELDOM:
            top = [line for line in lines if "T.decl_buffer" in line]
            lines = [*top, *under("for r in T.serial(2):", lines[len(top) :])]
        program = called(rng, HEADER + "\n".join(under("", lines)) + "\n")
        try:
            program.meaning  # noqa: B018 - it stops where an index is wrong
        except InterpreterError:
            continue
        return program


def _epilogue(rng: Random) -> list[str]:
    """A reduction, and an epilogue that combines each result with another value."""
    op, other = rng.choice((*"++*", "min", "max")), rng.choice([*OPERATIONS])
    extent, terms = rng.choice(("4", "n", "n + 1")), rng.choice(("3", "n", "T.int64(P[i])"))
    start = rng.choice(("0", "0", "1", "T.int32(vi)"))
    term = OPERATIONS[op].format("S[vi]", "X[vi % 8, vj % 8]")
    block = [f"vi = T.axis.spatial({extent}, i)"]
    domain = terms.replace("[i]", "[vi]")
    block += [f"vj = T.axis.reduce({domain}, j)", *_where(rng, ("vj != 1", "vi != 1"))]
    block += under("with T.init():", [f"S[vi] = {start}"])
    block.append(f"S[vi] = {term}")
    inner = under(f"for j in T.serial({terms}):", under('with T.block("sum"):', block))
    lines = under(f"for i in T.serial({extent}):", inner)
    if rng.random() < SELDOM:
        lines.append(rng.choice(("W[1] = 7", "V[2] = V[2] + 1", "W[3] = V[3]", "W[0] = S[0]")))
    around = rng.random() < SOMETIMES and len(lines) > 1 and lines[-1].startswith(" ")
    own_var = "i" if around else "k"
    fewer = extent if rng.random() > SELDOM else rng.choice(("4", "n", "2"))
    operand = rng.choice(OPERANDS if rng.random() > SELDOM else ("V[vk]", "S[vk]"))
    used = ["S[vk]", operand] if rng.random() < 0.7 else [operand, "S[vk]"]
    shown = OPERATIONS[op if rng.random() < 0.85 else other].format(*used)
    target = rng.choice((*["V[vk]"] * 12, "W[vk]", "V[vk + 1]", "V[vk // 2]"))
    after = [
        f"vk = T.axis.spatial({fewer}, {own_var})",
        *_where(rng, ("vk != 1",)),
        f"{target} = {shown}",
    ]
    after = under('with T.block("after"):', after)
    is_partial = fewer != extent or any("T.where" in line or "W[0] = S" in line for line in lines)
    if is_partial:
        lines = [f"for f in T.serial({extent}):", "    S[f] = 5", *lines]
    lines = [f'S = T.decl_buffer(({extent},), "int32")', *lines]
    if around:
        return [*lines, *("    " + line for line in after)]
    return [*lines, *under(f"for k in T.serial({fewer}):", after)]


def _where(rng: Random, conditions: tuple[str, ...]) -> list[str]:
    return [f"T.where({rng.choice(conditions)})"] if rng.random() < SELDOM else []


def _windows(rng: Random) -> list[str]:
    """Windows of a buffer, each computed anew, and the sums of their elements."""
    width, step = rng.choice((3, 4, 5)), rng.choice((1, 1, 2, 3))
    begin = rng.choice(("0", "0", "1", "1", "2", "n"))
    extent, element = (
        rng.choice(("4", "6", "T.min(n, 5)")),
        rng.choice(("i",) * 6 + (f"({width - 1} - i)",)),
    )
    size = "40" if rng.random() > SELDOM else "4 * n + 30"
    condition = "{} != 3" if rng.random() < SOMETIMES else ""
    same = ("W[vi] * 2", "X[vi % 8, 1] + T.int32(vi)", "W[vi + 1] - W[vi]")
    value = rng.choice(same if rng.random() > SELDOM else ("W[vi] + T.int32(t)", "W[vi] + V[0]"))
    made = [f"vi = T.axis.spatial({size}, t * {step} + {begin} + {element})"]
    made += [f"T.where({condition.format('vi')})"] if condition else []
    made.append(f"M[vi] = {value}")
    if not condition and rng.random() < SOMETIMES:
        made = [made[0], "vj = T.axis.reduce(n, j)", *under("with T.init():", ["M[vi] = 1"])]
        made.append("M[vi] = M[vi] + X[vi % 8, vj]")
        nest = under("for j in T.serial(n):", under('with T.block("made"):', made))
        nest = under(f"for i in T.serial({width}):", nest)
    else:
        nest = under(f"for i in T.serial({width}):", under('with T.block("made"):', made))
    places = [
        f"vt * {step} + {begin} + {rng.randrange(width)}" for _ in range(rng.choice((1, 2, 3)))
    ]
    loads = [f"M[{at}]" for at in places]
    if condition:
        loads = [f"T.if_then_else({condition.format(f'({at})')}, M[{at}], 0)" for at in places]
    target = rng.choice((*["V[vt]"] * 4, "V[vt + 8]", f"W[vt * {step} + {begin} + 2]"))
    used = under(
        'with T.block("used"):',
        [f"vt = T.axis.spatial({extent}, t)", f"{target} = {' + '.join(loads)}"],
    )
    inside = [f'M = T.alloc_buffer(({size},), "int32")', *nest, *used]
    return under(f"for t in T.serial({extent}):", inside)
