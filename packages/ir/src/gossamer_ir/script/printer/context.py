"""The state of the printer while it writes one function: dtypes of buffers and enclosing loops."""

from __future__ import annotations

from collections.abc import Sequence

from gossamer_ir.nodes import AnyBuffer, Expr, For, Range
from gossamer_ir.script.parser.arguments.coercion import load_dtype
from gossamer_ir.script.printer.writer import Writer


class Printer:
    """A writer, the dtypes of the buffers declared so far, and the enclosing loops."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self.loops: list[For] = []
        self._dtypes: dict[str, str] = {}

    def declare(self, buffer: AnyBuffer) -> None:
        """Record the dtype of a buffer."""
        self._dtypes[buffer.name] = buffer.dtype

    def store_dtype(self, buffer_name: str, indices: Sequence[Expr]) -> str | None:
        """Return the dtype of values stored to a buffer at indices; None for an unknown buffer."""
        dtype = self._dtypes.get(buffer_name)
        return None if dtype is None else load_dtype(dtype, indices)

    def range_of(self, loop_name: str) -> Range | None:
        """Return the range of an enclosing loop, by its variable."""
        for enclosing in self.loops:
            if enclosing.var == loop_name:
                return Range(enclosing.start, enclosing.extent)
        return None
