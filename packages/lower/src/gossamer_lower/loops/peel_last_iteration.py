"""Peels the last iteration of an annotated loop over tiles, so that all other tiles need no conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gossamer_ir.arith.simplify import simplify_body
from gossamer_ir.core.annotations import PEEL
from gossamer_ir.core.build import add, index, integer_value
from gossamer_ir.core.conditions import TRUE, conjunction, conjuncts
from gossamer_ir.nodes import Expr, For, If, Module, Stmt
from gossamer_ir.transform.clone_with_fresh_names import with_fresh_names
from gossamer_lower.lowering_pass import lowering_pass
from gossamer_lower.statements.point_visitor import PointVisitor, rewrite_annotated
from gossamer_lower.statements.rebuild import with_hoisted_start

PEEL_LAST = (PEEL, "last")
"""The annotation of a loop to peel: a serial loop with a constant trip count."""


@lowering_pass(
    takes=("loop",),
    acts_on="loops to peel",
    without=("blocks",),
    before={"vectorize_loops": "vectors would turn the conditions that it removes into masks"},
)
def peel_last_iteration(module: Module) -> Module:
    """Peel the last iteration of loops with the annotation `peel="last"`, and remove the conditions that
    hold in all others.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... for i in T.serial(5, annotations={"peel": "last"}):
    ...     for j in T.vectorized(4):
    ...         if i * 4 + j < 18:
    ...             Y[i * 4 + j] = X[i * 4 + j]
    ... ''')
    >>> print(body_text(peel_last_iteration(before)))
    for i in T.serial(4):
        for j in T.vectorized(4):
            Y[i * 4 + j] = X[i * 4 + j]
    for j_1 in T.vectorized(4):
        if j_1 + 16 < 18:
            Y[j_1 + 16] = X[j_1 + 16]
    """
    return rewrite_annotated(module, PEEL, _LastIterationPeeler)


class _LastIterationPeeler(PointVisitor):
    """Peels the loops of one function."""

    def stmt(self, stmt: Stmt) -> Iterable[Stmt]:
        inner = self.inside(stmt)
        if isinstance(inner, For) and PEEL_LAST in inner.annotations:
            return self._peel_loop(inner)
        return (inner,)

    def _peel_loop(self, loop: For) -> Iterator[Stmt]:
        count = integer_value(loop.extent)
        kept = tuple(annotation for annotation in loop.annotations if annotation != PEEL_LAST)
        # Other kinds have no last iteration in time, and one iteration leaves nothing to simplify;
        # the annotation is only a request, so it is dropped.
        if loop.kind != "serial" or count is None or count < 2:
            yield replace(loop, annotations=kept)
            return
        last = index(count - 1)
        # The start is evaluated again for the last iteration, after the loop may have written what
        # it reads.
        starts, loop = with_hoisted_start(loop, self.function, self.namer)
        yield from starts
        whole = replace(loop, extent=last, annotations=kept)
        yield self._without_conditions(whole)
        values = {loop.var: add(loop.start, last)}
        yield from simplify_body(with_fresh_names(loop.body, self.namer, values=values))

    def _without_conditions(self, loop: For) -> For:
        """Return a loop without the conditions that are proved to hold in it."""
        with self.point.inside(loop):
            body = tuple(inner for stmt in loop.body for inner in self._unconditional(stmt))
        return replace(loop, body=body)

    def _unconditional(self, stmt: Stmt) -> tuple[Stmt, ...]:
        match stmt:
            case For():
                return (self._without_conditions(stmt),)
            # Not into `else`: it runs where the condition fails, which the proof would exclude.
            case If():
                parts = conjuncts(stmt.condition)
                left = [part for part in parts if not self.point.proves(part)]
                body = tuple(
                    kept for inner in stmt.then_body for kept in self._unconditional(inner)
                )
                condition: Expr = conjunction(*left) or TRUE
                return body if condition == TRUE else (If(condition, body, stmt.else_body),)
        return (stmt,)
