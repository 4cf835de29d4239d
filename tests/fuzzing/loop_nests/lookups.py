"""Random blocks of the loop stage with indices from an array, guarded by the conditions under which they
exist.
"""

from __future__ import annotations

from random import Random

from gossamer_ir.interpret import InterpreterError
from tests.fuzzing.loop_nests.nests import HEADER, SOMETIMES, called, under
from tests.fuzzing.programs.program import Program

PLACES = ("vi", "vi + 4", "vi - 1", "vi * 3", "T.int64(P[vi % 9]) + 6", "n + vi", "8 - vi")
CONDITIONS = ("vi + vj < 6", "vi * 3 + vj < 9", "vj > 0 and vi < 5", "vi != vj", "vi + vj > 1")


def draw_lookup(rng: Random) -> Program:
    """A block in two loops or three, called with a size from 0 to 3."""
    while True:
        text = HEADER + "\n".join(under("", _lines(rng))) + "\n"
        try:
            program = called(rng, text)
            program.meaning  # noqa: B018 - it stops where an index is wrong
        except InterpreterError:
            continue
        return program


def _lines(rng: Random) -> list[str]:
    loops = [("i", rng.choice(("4", "9", "12", "n", "n + 4"))), ("j", rng.choice(("2", "3", "n")))]
    if rng.random() < SOMETIMES:
        loops.append(("k", rng.choice(("2", "3"))))
    body = [f"vi = T.axis.spatial({loops[0][1]}, i)", f"vj = T.axis.reduce({loops[1][1]}, j)"]
    body += [f"vk = T.axis.reduce({extent}, k)" for _, extent in loops[2:]]
    if rng.random() > SOMETIMES:
        body.append(f"T.where({rng.choice(CONDITIONS)})")
    if rng.random() > SOMETIMES:
        body += under("with T.init():", ["W[vi] = 0"])
    looked_up = f"X[T.int64(P[{rng.choice(PLACES)}]), vj]"
    body.append(f"W[vi] = W[vi] + {looked_up}")
    lines = under('with T.block("b"):', body)
    rng.shuffle(loops)
    for name, extent in loops:
        lines = under(f"for {name} in T.serial({extent}):", lines)
    return lines
