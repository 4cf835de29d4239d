"""The reference interpreter: runs a module of any stage on NumPy arrays, slowly and exactly.

It follows the definitions of the language rather than the formulas of the lowering, so that it is a
second opinion on every pass and every backend.
"""

from gossamer_ir.interpret.errors import GuardFailed, InterpreterError
from gossamer_ir.interpret.program import run

__all__ = ["GuardFailed", "InterpreterError", "run"]
