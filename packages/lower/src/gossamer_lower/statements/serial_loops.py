"""The base of passes that evaluate before a serial loop what its iterations would evaluate each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import Buffer, Compare, Expr, For, Function, If, Load, Stmt
from gossamer_ir.traversal.walk import stmts
from gossamer_lower.statements.point_visitor import PointVisitor
from gossamer_lower.statements.rebuild import Stmts


class SerialLoopVisitor(PointVisitor):
    """Rewrites the loops of one function that are serial and contain serial loops only; a pass overrides
    `serial_loop`.

    A parallel loop becomes a function of its own, to which neither a vector nor a local buffer can be passed.
    `constant_shapes` are those of the arrays that the function does not write, so that loads from them have
    the same value before a loop as inside.
    """

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        written = self.point.written
        # A buffer without a handle is scratch: it may be in registers.
        self.constant_shapes: Mapping[str, tuple[Expr, ...]] = {
            buffer.name: buffer.shape
            for buffer in function.buffers
            if isinstance(buffer, Buffer) and buffer.handle and buffer.name not in written
        }

    def stmt(self, stmt: Stmt) -> Iterable[Stmt]:
        if isinstance(stmt, For) and _is_serial_nest(stmt):
            return self.serial_loop(stmt)
        return (self.inside(stmt),)

    def serial_loop(self, loop: For) -> Stmts:
        """Return the statements that replace a serial loop."""
        return (self.inside(loop),)

    def is_in_bounds(self, load: Load, indices: Iterable[Expr]) -> bool:
        """Return whether these indices are proved to be in bounds of the array that is loaded from."""
        extents = self.constant_shapes[load.buffer]
        return all(
            self.point.is_in_range(index, extent)
            for index, extent in zip(indices, extents, strict=True)
        )


def _is_serial_nest(loop: For) -> bool:
    """Return whether a loop and all loops inside it are serial."""
    return all(stmt.kind == "serial" for stmt in stmts((loop,)) if isinstance(stmt, For))


def if_iterated(loop: For, body: Stmts) -> Stmts:
    """Return a loop and the statements before it, which must not run unless the loop has an iteration.

    >>> from gossamer_ir.core.build import ONE, index_var
    >>> from gossamer_ir.nodes import Store
    >>> loop = For("i", ZERO, index_var("n"), (Store("Y", (ZERO,), ONE),))
    >>> (branch,) = if_iterated(loop, (loop,))
    >>> branch.condition == Compare("gt", index_var("n"), ZERO)
    True
    """
    if (integer_value(loop.extent) or 0) > 0:
        return body
    return (If(Compare("gt", loop.extent, ZERO), body),)
