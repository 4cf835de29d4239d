"""The gossamer language: nodes, script text, wire format, verifiers, proofs, reference interpreter.

The names below are imported on first access, which keeps `import gossamer_ir` fast. Functions with the same
name as their module are not among them; import them from that module:
`gossamer_ir.transform.specialize.specialize`, `gossamer_ir.verify.verify`,
`gossamer_ir.arith.simplify.simplify`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer_ir.interchange.serialization import dumps, loads
    from gossamer_ir.interchange.signature import signature_of
    from gossamer_ir.interpret import run
    from gossamer_ir.nodes import FormatDescription, Function, Module
    from gossamer_ir.script.formats import parse_format, print_format
    from gossamer_ir.script.namespace import T
    from gossamer_ir.script.parse import parse_expr, parse_function, parse_module
    from gossamer_ir.script.print import print_expr, print_module
    from gossamer_ir.script.render import render
    from gossamer_ir.traversal.equality import structural_equal, structural_hash
    from gossamer_ir.verify import diagnostics

_HOMES = {
    "FormatDescription": "nodes",
    "Function": "nodes",
    "Module": "nodes",
    "T": "script.namespace",
    "diagnostics": "verify",
    "dumps": "interchange.serialization",
    "loads": "interchange.serialization",
    "parse_expr": "script.parse",
    "parse_format": "script.formats",
    "parse_function": "script.parse",
    "parse_module": "script.parse",
    "print_expr": "script.print",
    "print_format": "script.formats",
    "print_module": "script.print",
    "render": "script.render",
    "run": "interpret",
    "signature_of": "interchange.signature",
    "structural_equal": "traversal.equality",
    "structural_hash": "traversal.equality",
}

__all__ = [
    "FormatDescription",
    "Function",
    "Module",
    "T",
    "diagnostics",
    "dumps",
    "loads",
    "parse_expr",
    "parse_format",
    "parse_function",
    "parse_module",
    "print_expr",
    "print_format",
    "print_module",
    "render",
    "run",
    "signature_of",
    "structural_equal",
    "structural_hash",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gossamer_ir' has no attribute '{name}'")
    value = getattr(import_module(f"gossamer_ir.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
