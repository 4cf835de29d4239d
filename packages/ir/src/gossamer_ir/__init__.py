"""The gossamer language: nodes, script text, wire format, verifiers, proofs, reference interpreter.

The names below are imported on first access, which keeps `import gossamer_ir` fast. Functions with the same
name as their module are not among them; import them from that module:
`gossamer_ir.transform.specialize.specialize`, `gossamer_ir.verify.verify`,
`gossamer_ir.arith.simplify.simplify`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_ir.interchange.scratch_layout import scratch_layout
    from gossamer_ir.interchange.serialization import dumps, loads
    from gossamer_ir.interchange.signature import signature_of
    from gossamer_ir.interpret import run
    from gossamer_ir.nodes import FormatDescription, Function, Module
    from gossamer_ir.script.formats import parse_format, print_format
    from gossamer_ir.script.namespace import T
    from gossamer_ir.script.parse import parse_function, parse_module
    from gossamer_ir.script.parse_expressions import parse_expr
    from gossamer_ir.script.print import print_expr, print_module
    from gossamer_ir.script.render import render
    from gossamer_ir.traversal.equality import structural_equal, structural_hash
    from gossamer_ir.verify import diagnostics

_HOMES = {
    "FormatDescription": "gossamer_ir.nodes",
    "Function": "gossamer_ir.nodes",
    "Module": "gossamer_ir.nodes",
    "T": "gossamer_ir.script.namespace",
    "diagnostics": "gossamer_ir.verify",
    "dumps": "gossamer_ir.interchange.serialization",
    "loads": "gossamer_ir.interchange.serialization",
    "parse_expr": "gossamer_ir.script.parse_expressions",
    "parse_format": "gossamer_ir.script.formats",
    "parse_function": "gossamer_ir.script.parse",
    "parse_module": "gossamer_ir.script.parse",
    "print_expr": "gossamer_ir.script.print",
    "print_format": "gossamer_ir.script.formats",
    "print_module": "gossamer_ir.script.print",
    "render": "gossamer_ir.script.render",
    "run": "gossamer_ir.interpret",
    "scratch_layout": "gossamer_ir.interchange.scratch_layout",
    "signature_of": "gossamer_ir.interchange.signature",
    "structural_equal": "gossamer_ir.traversal.equality",
    "structural_hash": "gossamer_ir.traversal.equality",
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
    "scratch_layout",
    "signature_of",
    "structural_equal",
    "structural_hash",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
