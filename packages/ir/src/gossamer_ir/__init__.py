"""The gossamer language: nodes, script text, wire format, verifiers, proofs, reference interpreter.

Everything here is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer_ir.nodes import FormatDescription, Function, Module
    from gossamer_ir.script.namespace import T
    from gossamer_ir.script.parse import parse_expr, parse_function, parse_module
    from gossamer_ir.script.print import print_expr, print_module

_HOMES = {
    "FormatDescription": "nodes",
    "Function": "nodes",
    "Module": "nodes",
    "T": "script.namespace",
    "parse_expr": "script.parse",
    "parse_function": "script.parse",
    "parse_module": "script.parse",
    "print_expr": "script.print",
    "print_module": "script.print",
}

__all__ = [
    "FormatDescription", "Function", "Module", "T", "parse_expr", "parse_function", "parse_module",
    "print_expr", "print_module",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gossamer_ir' has no attribute '{name}'")
    return getattr(import_module(f"gossamer_ir.{_HOMES[name]}"), name)
