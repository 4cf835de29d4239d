"""Inlines the lets above blocks, so that block bindings depend on loop variables directly.

Only then can the loops that feed a reduction be recognized, before which an init is hoisted.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from gossamer_ir.analysis.invariants import changing_buffers, is_constant
from gossamer_ir.errors import UnsupportedError
from gossamer_ir.nodes import Block, Function, Let, Stmt
from gossamer_ir.traversal.buffer_uses import buffers_read
from gossamer_ir.traversal.free_vars import free_vars
from gossamer_ir.traversal.statement_queries import vars_bound
from gossamer_ir.traversal.substitute import substitute_body
from gossamer_ir.traversal.walk import outermost, stmts
from gossamer_lower.statements.rebuild import with_bodies


def inline_lets(function: Function) -> tuple[Stmt, ...]:
    """Return the statements of a function with the lets above blocks that have an `init` inlined.

    A let that reads memory stays, too: the read may stop the program. A let of mutable memory is not inlined;
    that is an error (`lower.lower_blocks.let_above_block`) only if an init would be hoisted before it.
    """
    return _LetInliner(function).body(function.body, frozenset())


class _LetInliner(msgspec.Struct, frozen=True):
    """Inlines lets in the statements of one function."""

    function: Function

    # Other statements: stay, with the values of inlined lets in them.
    def body(self, body: tuple[Stmt, ...], loops: frozenset[str]) -> tuple[Stmt, ...]:
        """Return the statements; `loops` are the variables of the loops up to the enclosing block."""
        done: list[Stmt] = []
        while body:
            stmt, *rest = body
            body = tuple(rest)
            if not isinstance(stmt, Let) or stmt.var.name not in _vars_used_with_init(body):
                done.append(self._inside(stmt, loops))
            elif is_constant(stmt.value, function=self.function):
                body = substitute_body(body, {stmt.var.name: stmt.value})
                # The let stays for its read, which must still stop the program if it is out of bounds.
                done += [stmt] * bool(buffers_read(stmt.value))
            else:
                self._require_below_inits(stmt, body, loops)
                done.append(stmt)
        return tuple(done)

    def _inside(self, stmt: Stmt, loops: frozenset[str]) -> Stmt:
        if not _has_init(stmt):
            return stmt
        if isinstance(stmt, Block):  # no init is hoisted out of a block, or is in an init
            return replace(stmt, body=self.body(stmt.body, frozenset()))
        inner = loops.union(vars_bound(stmt))
        return with_bodies(stmt, lambda body: self.body(body, inner))

    def _require_below_inits(self, let: Let, body: tuple[Stmt, ...], loops: frozenset[str]) -> None:
        """Raise an error if an init after the let is to be hoisted before one of the enclosing loops."""
        moving = loops | {let.var.name}
        changed = changing_buffers(self.function.body, let.value, function=self.function)
        for block in _blocks_with_init(body):
            fed = (free_vars(iterator.value) for iterator in block.iters if iterator.kind == "R")
            if any(names & moving for names in fed):
                raise UnsupportedError(
                    "lower.lower_blocks.let_above_block",
                    f"The let '{let.var.name}' stands above a block with init and reads "
                    f"'{min(changed)}', which the function writes.",
                    hint="Use the value in place of the let.",
                )


# Other statements: use a variable with an init only if a block with an init is in them.
def _vars_used_with_init(body: tuple[Stmt, ...]) -> set[str]:
    """Return the variables that statements with an init use, also through lets between them. Others need
    not be inlined, which would multiply the expressions of lets that use each other."""
    used: set[str] = set()
    for stmt in reversed(body):
        if _has_init(stmt) or (isinstance(stmt, Let) and stmt.var.name in used):
            used |= free_vars(stmt)
    return used


def _blocks_with_init(body: tuple[Stmt, ...]) -> Iterator[Block]:
    """Yield the blocks with an init that are not inside another block."""
    return (block for block in outermost(Block, body) if block.init)


def _has_init(stmt: Stmt) -> bool:
    return any(isinstance(inner, Block) and inner.init for inner in stmts((stmt,)))
