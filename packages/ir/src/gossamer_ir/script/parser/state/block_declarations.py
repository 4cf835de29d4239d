"""The declarations of a block or iteration, collected while its body is parsed."""

from __future__ import annotations

from gossamer_ir.nodes import Annotations, BlockIter, Expr, Region, Stmt


class BlockDeclarations:
    """The declarations by `T.axis`, `T.where`, `T.reads`, `T.writes`, `T.block_attr` and `T.init`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.iters: list[BlockIter] = []
        self.predicate: Expr | None = None
        self.reads: tuple[Region, ...] | None = None
        self.writes: tuple[Region, ...] | None = None
        self.init: tuple[Stmt, ...] | None = None
        self.annotations: Annotations | None = None
