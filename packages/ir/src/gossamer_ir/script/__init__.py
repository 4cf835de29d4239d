"""Script text: a Python syntax for modules and formats. Reading what was written gives an equal module."""

from gossamer_ir.script.formats import parse_format, print_format
from gossamer_ir.script.limits import MAX_DEPTH, MAX_INDENT
from gossamer_ir.script.namespace import T
from gossamer_ir.script.parse import parse_expr, parse_function, parse_module, parse_source
from gossamer_ir.script.parser.modules import Parsed
from gossamer_ir.script.print import Printed, print_expr, print_module, print_with_places
from gossamer_ir.script.render import render

__all__ = [
    "MAX_DEPTH",
    "MAX_INDENT",
    "Parsed",
    "Printed",
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
    "render",
]
