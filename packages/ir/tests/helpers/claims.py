"""Claims as script texts: the dtypes of their names, common premises, and a prover that assumes some."""

from __future__ import annotations

from proofs import FACTS

from gossamer_ir.arith.prover import Prover
from gossamer_ir.script import parse_expr

DTYPES = dict.fromkeys(("a", "i", "j", "k", "l", "m", "n", "nnz", "t", "x", "y", "V"), "int64")
DTYPES |= dict.fromkeys(("P", "O", "S", "Q", "D", "R", "Z", "W"), "int32") | {"B": "uint8"}
M = ("i", "0", "m")
FIBER = ("j", "0", "T.int64(P[i + 1]) - T.int64(P[i])")


def prover_of(premises):
    prover = Prover(FACTS)
    for part in premises:
        if isinstance(part, str):
            prover.assume(parse_expr(part, DTYPES))
        else:
            var, start, extent = part
            prover.assume_range(var, parse_expr(start, DTYPES), parse_expr(extent, DTYPES))
    return prover
