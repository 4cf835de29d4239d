"""What the printer knows while it writes one function: buffers' dtypes and the loops around."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import AnyBuffer, Expr, For, Range
from gossamer_ir.script.parser.coercion import load_dtype
from gossamer_ir.script.printer.writer import Writer


class Printer:
    """A writer, the dtypes of the buffers seen so far, and the loops around."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self.loops: list[For] = []
        self._dtypes: dict[str, str] = {}

    def declare(self, buffer: AnyBuffer) -> None:
        """Remembers a buffer."""
        self._dtypes[buffer.name] = buffer.dtype

    def store_dtype(self, buffer: str, indices: Sequence[Expr]) -> str | None:
        """The dtype that is stored to a buffer at indices; None for an unknown buffer."""
        dtype = self._dtypes.get(buffer)
        return None if dtype is None else load_dtype(dtype, indices)

    def range_of(self, loop: str) -> Range | None:
        """The range of a loop around, by its variable."""
        for found in self.loops:
            if found.var == loop:
                return Range(found.start, found.extent)
        return None
