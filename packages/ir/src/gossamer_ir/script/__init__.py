"""Script text: Python syntax for modules, read and written exactly."""

from gossamer_ir.script.limits import MAX_DEPTH, MAX_INDENT
from gossamer_ir.script.namespace import T
from gossamer_ir.script.parse import parse_expr, parse_function, parse_module, parse_source
from gossamer_ir.script.print import print_expr, print_module, print_with_places

__all__ = [
    "MAX_DEPTH", "MAX_INDENT", "T", "parse_expr", "parse_function", "parse_module", "parse_source",
    "print_expr", "print_module", "print_with_places",
]  # fmt: skip
