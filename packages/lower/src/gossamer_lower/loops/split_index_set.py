"""Index-set splitting: a loop that chooses between two bodies by a bound becomes two loops.

The first loop ends at the bound, and the second, which often has one iteration, starts there. LLVM does not
split the loop itself: it cannot prove that the bound is invariant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gossamer_ir.analysis.accesses.linear_form import slack_along
from gossamer_ir.analysis.proofs.program_point import is_invariant, is_speculatable_before
from gossamer_ir.arith.affine import Affine, expr_of
from gossamer_ir.core.build import ONE, add, floordiv, index, index_var, sub
from gossamer_ir.nodes import Binary, Compare, Expr, For, Function, If, Let, Module, Stmt, Var
from gossamer_ir.traversal.node_index import nodes_of_type
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_lower.lowering_pass import lowering_pass, map_functions
from gossamer_lower.statements.point_visitor import PointVisitor
from gossamer_lower.statements.rebuild import Stmts, with_body


@lowering_pass(
    takes=("loop",),
    without=("blocks",),
    after={
        "hoist_invariant_loads": "both loops use the vectors that are loaded before the first",
        "expand_search": "both loops would scan the window from its start",
    },
)
def split_index_set(module: Module) -> Module:
    """Split a serial loop whose body is one `If` by a loop-invariant affine bound.

    >>> from gossamer_testkit.examples import program
    >>> from gossamer_testkit.show import body_text
    >>> before = program('''
    ... if n > 0:
    ...     for i in T.serial((n + 3) // 4):
    ...         if i * 4 + 3 < n:
    ...             Y[i * 4] = X[i * 4] + X[i * 4 + 3]
    ...         else:
    ...             Y[i * 4] = X[i * 4]
    ... ''')
    >>> print(body_text(split_index_set(before)))
    if n > 0:
        for i in T.serial(n // 4):
            Y[i * 4] = X[i * 4] + X[i * 4 + 3]
        if n // 4 < (n + 3) // 4:
            i_1: T.int64 = n // 4
            Y[i_1 * 4] = X[i_1 * 4]
    """
    return map_functions(module, _split_function)


def _split_function(function: Function) -> Function:
    if not any(map(_branch_of, nodes_of_type(function, For))):
        return function
    return with_body(function, _IndexSetSplitter(function).body(function.body))


class _IndexSetSplitter(PointVisitor):
    """Splits the loops of one function."""

    def stmt(self, stmt: Stmt) -> Iterable[Stmt]:
        # Inner loops first: a loop that was split inside is no longer a single `If`.
        inner = self.inside(stmt)
        return self._split_loop(inner) if isinstance(inner, For) else (inner,)

    def _split_loop(self, loop: For) -> Iterator[Stmt]:
        branch = _branch_of(loop)
        bound = None if branch is None else _bound_of(branch.condition, loop.var)
        end = add(loop.start, loop.extent)
        if (
            branch is None
            or bound is None
            or not self._is_as_computed(branch.condition, loop, bound)
        ):
            yield loop
            return
        # The bound may lie outside of the loop; one of the two loops then has no iteration.
        bound = self._greater(self._less(bound, end), loop.start)
        first = sub(bound, loop.start)
        yield replace(loop, extent=first, body=branch.then_body)
        yield self._loop_from(loop, branch.else_body, bound=bound, end=end)

    def _is_as_computed(self, condition: Expr, loop: For, bound: Expr) -> bool:
        """Return whether the bound, solved from the condition, is equivalent to it in all iterations.

        The condition, the bound and the end of the loop must not overflow, and must be loop invariant: the
        second loop evaluates them again.
        """
        end = add(loop.start, loop.extent)
        with self.point.inside(loop):
            is_exact = self.point.is_exact(condition, bound, end)
        is_same = is_invariant(end, loop.body, self.function)
        return is_exact and is_same and is_speculatable_before(bound, loop, self.function)

    def _loop_from(self, loop: For, body: Stmts, *, bound: Expr, end: Expr) -> Stmt:
        """Return the loop from the bound on; a statement under a condition if it has at most one
        iteration."""
        # Names are unique in a function.
        var, left = self.namer.fresh(loop.var), sub(end, bound)
        body = substitute_body(body, {loop.var: index_var(var)})
        # Straight-line code for the remainder: LLVM would keep the test of a loop that it cannot bound.
        if self.point.is_at_most(left, ONE):
            return If(Compare("lt", bound, end), (Let(Var(var, "int64"), bound), *body))
        return replace(loop, var=var, start=bound, extent=left, body=body)

    def _less(self, one: Expr, other: Expr) -> Expr:
        """Return the smaller of two values."""
        return one if self.point.is_at_most(one, other) else Binary("min", one, other)

    def _greater(self, one: Expr, other: Expr) -> Expr:
        """Return the larger of two values."""
        return one if self.point.is_at_most(other, one) else Binary("max", one, other)


def _branch_of(loop: For) -> If | None:
    """Return the `If` that is the whole body of a serial loop; None if the body is anything else."""
    branch = loop.body[0] if len(loop.body) == 1 else None
    # Another statement in the body would have to be copied into both loops.
    is_branch = isinstance(branch, If) and branch.else_body and loop.kind == "serial"
    return branch if is_branch and isinstance(branch, If) else None


def _bound_of(condition: Expr, var_name: str) -> Expr | None:
    """Return the least value of a variable for which a condition fails, if it holds for all smaller values;
    None if the condition is not such a bound."""
    parts = slack_along(condition, var_name)
    # A positive coefficient would mean that the condition holds from the bound on.
    if parts is None or not parts[0].is_constant or parts[0].constant >= 0:
        return None
    step = -parts[0].constant
    return floordiv(expr_of(parts[1] + Affine({}, step)), index(step))
