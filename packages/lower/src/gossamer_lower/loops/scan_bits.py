"""Replaces the position of the s-th bit of a word, in a loop over s, by a scan of the bits.

`find_nth_bit(word, s)` takes dozens of instructions without machine support. The positions for s = 0, 1, ...
are found by two instructions each: the number of zeros below the lowest bit, and `rest & (rest - 1)`, which
clears that bit (strength reduction).
"""

from __future__ import annotations

from msgspec.structs import replace

from gossamer_ir.analysis.proofs.program_point import is_invariant
from gossamer_ir.arith.affine import distance
from gossamer_ir.core.build import ONE, ZERO, index_var, sub
from gossamer_ir.nodes import (
    Allocate,
    Binary,
    Buffer,
    Call,
    Expr,
    For,
    Function,
    Let,
    Load,
    Module,
    Node,
    Stmt,
    Store,
    Var,
)
from gossamer_ir.traversal.node_index import nodes_in_body
from gossamer_ir.traversal.rewrite import rewrite
from gossamer_ir.traversal.walk import collect
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.rebuild import Stmts, with_body
from gossamer_lower.statements.serial_loops import SerialLoopVisitor, if_iterated


@lowering_pass(
    takes=("loop",),
    acts_on="bits of words",
    without=("blocks",),
    after={
        "vectorize_loops": "an iteration of a scan needs the result of the one before",
        "insert_bounds_checks": "nothing is proved about the position of a bit that a scan finds",
    },
    before={"outline_parallel": "it proves that the word may be read before the loop"},
)
def scan_bits(module: Module) -> Module:
    """Find the bits of a word one after the other, in serial loops that count them.

    It runs after vectorization, since each iteration needs the rest of the one before. The word must be the
    same in all iterations, and what it reads must be in bounds whenever the loop has an iteration.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(n):
    ...     for s in T.serial(T.popcount(P[i])):
    ...         Y[i] = Y[i] + X[T.find_nth_bit(P[i], s)]
    ... ''')
    >>> print(body_text(scan_bits(before)))
    for i in T.serial(n):
        if T.popcount(P[i]) > 0:
            rest = T.alloc_buffer((1,), "int64", scope="local")
            rest[0] = P[i]
            for s in T.serial(T.popcount(P[i])):
                bit: T.int64 = T.ctz(rest[0])
                Y[i] = Y[i] + X[bit]
                rest[0] = rest[0] & rest[0] - 1
    """
    return map_functions(module, _scan_function)


def _scan_function(function: Function) -> Function:
    if not any(call.function == "find_nth_bit" for call in nodes_in_body(function, Call)):
        return function
    return with_body(function, _BitScanner(function).body(function.body))


class _BitScanner(SerialLoopVisitor):
    """Rewrites the loops of one function."""

    def serial_loop(self, loop: For) -> Stmts:
        calls = self._calls(loop)
        if not calls:
            return (self.inside(loop),)
        starts: list[Stmt] = []
        bits: list[Stmt] = []
        steps: list[Stmt] = []
        bit_vars: dict[Expr, Var] = {}
        for call in calls:
            rest = Buffer(self.namer.fresh("rest"), (ONE,), "int64", scope="local")
            left = Load(rest.name, (ZERO,), "int64")
            bit_vars[call] = index_var(self.namer.fresh("bit"))
            starts += [Allocate(rest), Store(rest.name, left.indices, call.args[0])]
            # `ctz` of 0 is the number of bits, which `find_nth_bit` also returns after the last bit.
            bits.append(Let(bit_vars[call], Call("ctz", (left,), "int64")))
            # Not `build.sub`: the least number wraps.
            lower = Binary("sub", left, ONE)
            steps.append(Store(rest.name, left.indices, Binary("bitand", left, lower)))
        body = tuple(rewrite(stmt, lambda node: _bit(node, bit_vars)) for stmt in loop.body)
        scanned = replace(loop, body=(*bits, *body, *steps))
        # The element that the word loads exists only if the loop has an iteration.
        return if_iterated(loop, (*starts, self.inside(scanned)))

    def _calls(self, loop: For) -> list[Call]:
        """Return the calls that find the bit with the number of the iteration, each once."""
        calls = [
            call
            for call in dict.fromkeys(collect(Call, *loop.body))
            if call.function == "find_nth_bit"
            and call.dtype == "int64"
            and _counts(loop, call.args[1])
        ]
        invariant = [call for call in calls if is_invariant(call.args[0], (loop,), self.function)]
        if not invariant:
            return []
        with self.point.inside(loop):
            return [call for call in invariant if self._exists(call.args[0])]

    def _exists(self, word: Expr) -> bool:
        """Return whether all reads of an expression are in bounds, given that the loop has an iteration."""
        return all(
            load.predicate is None
            and load.buffer in self.constant_shapes
            and self.is_in_bounds(load, load.indices)
            for load in collect(Load, word)
        )


def _counts(loop: For, number: Expr) -> bool:
    """Return whether a number is that of the iteration: 0, 1, ..."""
    return distance(sub(index_var(loop.var), loop.start), number) == 0


def _bit(node: Node, bits: dict[Expr, Var]) -> Var | None:
    return bits.get(node) if isinstance(node, Call) else None
