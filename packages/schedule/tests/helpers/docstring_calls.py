"""The calls of primitives in the examples of their docstrings, as cases for tests."""

from __future__ import annotations

import doctest
import importlib
import os
from collections.abc import Iterator
from functools import cache, wraps
from typing import Any, TypeAlias

from gossamer_ir.nodes import Module
from gossamer_schedule import PRIMITIVES
from gossamer_schedule.definition.arguments import INTRINSICS, arguments_by_name

Call: TypeAlias = tuple[Module, tuple[Any, ...], dict[str, Any]]
"""The module, the positional arguments after it, and the keywords."""


@cache
def docstring_calls(op: str) -> tuple[Call, ...]:
    """The direct calls of a primitive in the example of its docstring; there must be one."""
    primitive, calls = PRIMITIVES[op], []

    @wraps(primitive)
    def recording(module, /, *args, **keywords):
        result = primitive(module, *args, **keywords)
        calls.append((module, args, keywords))
        return result

    names = vars(importlib.import_module(primitive.__module__)) | {op: recording}
    example = doctest.DocTestParser().get_doctest(primitive.__doc__, names, op, None, None)
    with open(os.devnull, "w") as nowhere:
        doctest.DocTestRunner(verbose=False).run(example, out=nowhere.write)
    assert calls, f"the docstring of {op} has no example that calls it"
    return tuple(calls)


def example_of(op: str) -> tuple[Module, dict[str, Any]]:
    """The module and the arguments by name of the first call, as a step has them."""
    module, args, keywords = docstring_calls(op)[0]
    keyword_arguments = {name: value for name, value in keywords.items() if name != INTRINSICS}
    return module, arguments_by_name(PRIMITIVES[op], args) | keyword_arguments


def all_calls() -> Iterator[tuple[str, Call]]:
    """Each call in the docstrings, with the name of its primitive."""
    for op in sorted(PRIMITIVES):
        for call in docstring_calls(op):
            yield op, call
