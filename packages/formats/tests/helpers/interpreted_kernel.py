"""Programs of conversions without a compiler."""

from __future__ import annotations

from typing import Any

from gossamer_ir.interpret import program
from gossamer_ir.nodes import Module
from gossamer_ir.verify import verify


class InterpretedKernel:
    """A kernel that the reference interpreter runs, parallel loops in some number of chunks."""

    chunks = 1

    def __init__(self, module: Module) -> None:
        self.module = verify(module)
        self._program = program.InterpretedKernel(self.module, vscale=1, chunks=self.chunks)
        self._names = [param.name for param in self.module.functions[0].params]

    def run_trusted(self, *arguments: Any) -> None:
        """Runs; the interpreter checks dtypes, sizes and facts of the arguments."""
        self._program.run(dict(zip(self._names, arguments, strict=True)))
