"""The parsed scripts of operators and checks in `gossamer/operator_calls/parsed_programs`, as code that
makes their modules.

The first calls of an operator take them from there, so that they need not import the parser: importing it and
parsing a script takes ten times as long as importing the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from gossamer.operator_calls.fast_path.index_checks import PARSED_CHECKS, index_tests
from gossamer.operator_calls.operator_contract import require_operator_contract
from gossamer.operators import ALL_NAMES, operator_named
from gossamer_backend.compiled_checks.check_program import program_of_checks
from gossamer_ir.nodes import Module, Node
from gossamer_ir.script import parse_module
from tools import ROOT

PACKAGE = ROOT / "packages/gossamer/src/gossamer/operator_calls/parsed_programs"
_WIDTH = 100
_HEADER = '''\
"""The module of {of}; `python -m tools.generate parsed_programs` writes this file."""

from gossamer_ir.nodes import (
{imports})

PARSED = {module}
'''


def files() -> dict[Path, str]:
    """Return the text of the file of each operator, and of each check of index arrays."""
    operators = {name: _code_of_operator(name) for name in ALL_NAMES}
    checks = {
        home.rpartition(".")[2]: module_code(
            f"the check of {dtype} arrays", program_of_checks(index_tests(dtype, dtype))
        )
        for dtype, home in PARSED_CHECKS.items()
    }
    return {PACKAGE / f"{name}.py": code for name, code in (operators | checks).items()}


def _code_of_operator(name: str) -> str:
    """Return the code of an operator's file, after a check of all its scripts."""
    program = operator_named(name).program
    module = parse_module(program.script)
    require_operator_contract(program, module)
    for _, special in program.special or ():
        require_operator_contract(special)
    return module_code(f"the script of `{name}`", module)


def module_code(of: str, module: Module) -> str:
    """Return Python code that makes the module of an operator or of a check."""
    types = {type(node).__name__ for node in _nodes(module)}
    imports = "".join(f"    {each},\n" for each in sorted(types))
    return _HEADER.format(of=of, imports=imports, module=code_of(module, column=len("PARSED = ")))


def _nodes(value: object) -> Iterator[Node]:
    """Yield the node, or those of a tuple, and all nodes in their fields: `walk` leaves declarations out."""
    if isinstance(value, Node):
        yield value
    for _, item in _items(value):
        yield from _nodes(item)


def code_of(value: object, *, column: int = 0, indent: int = 0) -> str:
    """Return the expression for a value, formatted as `ruff` does. It begins at a column, and its lines after
    the first one are indented.

    >>> code_of(Module("flat", (), "main"))
    "Module('flat', (), 'main')"
    """
    line = _one_line(value)
    # A comma or a bracket may follow.
    if column + len(line) < _WIDTH or not _items(value):
        return line
    inner = indent + 4
    items = "".join(
        f"{' ' * inner}{key}{code_of(item, column=inner + len(key), indent=inner)},\n"
        for key, item in _items(value)
    )
    name = "" if isinstance(value, tuple) else type(value).__name__
    return f"{name}(\n{items}{' ' * indent})"


def _one_line(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    items = [f"{key}{_one_line(item)}" for key, item in _items(value)]
    if isinstance(value, tuple):
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return f"{type(value).__name__}({', '.join(items)})" if isinstance(value, Node) else repr(value)


def _items(value: object) -> list[tuple[str, object]]:
    """Return the items of a tuple, or the fields of a node with the beginning of their keywords: without
    fields that have their default."""
    if isinstance(value, tuple):
        return [("", item) for item in value]
    if not isinstance(value, Node):
        return []
    fields = [(field, getattr(value, field.name)) for field in msgspec.structs.fields(type(value))]
    required = [("", item) for field, item in fields if field.required]
    return required + [
        (f"{field.name}=", item)
        for field, item in fields
        if not field.required and item != field.default
    ]
