"""The verifiers, one for each stage.

A verifier reports all defects of a module at once, each with a place: a path into the module.
Passes and backends assume that their input has been verified.
"""

from gossamer_ir.core.limits import MAX_DEPTH
from gossamer_ir.verify.verify_module import diagnostics, verify

__all__ = ["MAX_DEPTH", "diagnostics", "verify"]
