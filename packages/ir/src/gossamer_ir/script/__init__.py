"""Script text: a Python syntax for modules and formats. Reading what was written gives an equal module.

The names below are imported on first access: a program that is only parsed needs no printer.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer_ir.script.formats import parse_format, print_format
    from gossamer_ir.script.limits import MAX_DEPTH, MAX_INDENT
    from gossamer_ir.script.namespace import T
    from gossamer_ir.script.parse import parse_expr, parse_function, parse_module, parse_source
    from gossamer_ir.script.parser.modules import Parsed
    from gossamer_ir.script.print import Printed, print_expr, print_module, print_with_places

_HOMES = {
    "MAX_DEPTH": "limits",
    "MAX_INDENT": "limits",
    "Parsed": "parser.modules",
    "Printed": "print",
    "T": "namespace",
    "parse_expr": "parse",
    "parse_format": "formats",
    "parse_function": "parse",
    "parse_module": "parse",
    "parse_source": "parse",
    "print_expr": "print",
    "print_format": "formats",
    "print_module": "print",
    "print_with_places": "print",
}

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
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gossamer_ir.script' has no attribute '{name}'")
    value = getattr(import_module(f"gossamer_ir.script.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
