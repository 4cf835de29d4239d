"""Script text: a Python syntax for modules and formats. Reading what was written gives an equal module.

The names below are imported on first access: a program that is only parsed needs no printer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer_support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from gossamer_ir.core.limits import MAX_DEPTH
    from gossamer_ir.script.formats import parse_format, print_format
    from gossamer_ir.script.limits import MAX_INDENT
    from gossamer_ir.script.namespace import T
    from gossamer_ir.script.parse import parse_function, parse_module, parse_source
    from gossamer_ir.script.parse_expressions import parse_expr
    from gossamer_ir.script.parser.modules import ParsedModule
    from gossamer_ir.script.print import PrintedModule, print_expr, print_module, print_with_places

_HOMES = {
    "MAX_DEPTH": "gossamer_ir.core.limits",
    "MAX_INDENT": "gossamer_ir.script.limits",
    "ParsedModule": "gossamer_ir.script.parser.modules",
    "PrintedModule": "gossamer_ir.script.print",
    "T": "gossamer_ir.script.namespace",
    "parse_expr": "gossamer_ir.script.parse_expressions",
    "parse_format": "gossamer_ir.script.formats",
    "parse_function": "gossamer_ir.script.parse",
    "parse_module": "gossamer_ir.script.parse",
    "parse_source": "gossamer_ir.script.parse",
    "print_expr": "gossamer_ir.script.print",
    "print_format": "gossamer_ir.script.formats",
    "print_module": "gossamer_ir.script.print",
    "print_with_places": "gossamer_ir.script.print",
}

__all__ = [
    "MAX_DEPTH",
    "MAX_INDENT",
    "ParsedModule",
    "PrintedModule",
    "T",
    "parse_expr",
    "parse_format",
    "parse_function",
    "parse_module",
    "parse_source",
    "print_expr",
    "print_format",
    "print_module",
    "print_with_places",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
