"""The reference interpreter: runs a module of any stage on NumPy arrays.

It implements the definitions of the language and shares no formulas with the lowering. Hence its results
are an independent check of every pass and every backend. It is not optimized for speed.
"""

from gossamer_ir.interpret.interpreter_errors import GuardFailed, InterpreterError
from gossamer_ir.interpret.program import run

__all__ = ["GuardFailed", "InterpreterError", "run"]
