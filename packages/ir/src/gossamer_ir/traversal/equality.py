"""Structural equality up to renaming (alpha-equivalence), and a hash that agrees with it.

Parameters, axes, buffers and variables may be renamed one to one within each function. The names of
functions, blocks and iterations must match, because schedules and callers refer to them, and so must all
annotations and the order of everything. The nodes declare which of their fields may be renamed: those of
type `Name`.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, TypeAlias

import msgspec

from gossamer_ir.nodes import Function, Node
from gossamer_ir.traversal.fields import name_fields
from gossamer_support.typed_calls import typed

NameNumbers: TypeAlias = dict[str, int]


def structural_equal(left: Node, right: Node) -> bool:
    """Return whether two modules (or functions, statements, ...) are equal up to renaming.

    >>> from gossamer_ir.nodes import Const, Let, Var
    >>> one = Const("int64", "1")
    >>> structural_equal(Let(Var("a", "int64"), one), Let(Var("b", "int64"), one))
    True
    """
    return left is right or canonical_bytes(left) == canonical_bytes(right)


@typed
def structural_hash(node: Node) -> str:
    """Return the SHA-256 digest of the canonical form, in hex. Nodes that are `structural_equal` have equal
    digests, in every process.

    >>> from gossamer_ir.nodes import Param
    >>> structural_hash(Param("a", "int64")) == structural_hash(Param("b", "int64"))
    True
    """
    return hashlib.sha256(canonical_bytes(node)).hexdigest()


def canonical_bytes(node: Node) -> bytes:
    """Return a node as canonical JSON, with each name replaced by its order of first occurrence in the
    function."""
    tokens: list[Any] = []
    _write(node, tokens, {})
    return msgspec.json.encode(tokens)


@cache
def _plan(kind: type[Node]) -> tuple[tuple[str, bool], ...]:
    names = name_fields(kind)
    return tuple((field, field in names) for field in kind.__struct_fields__)


def _write(node: Node, tokens: list[Any], numbers: NameNumbers) -> None:
    kind = type(node)
    # Names are unique within a function only: the first name of each is number 0.
    if kind is Function:
        numbers = {}
    tokens.append(kind.__name__)
    for field, is_name in _plan(kind):
        value = getattr(node, field)
        if is_name:
            tokens.append(_number_names(value, numbers))
        elif isinstance(value, Node):
            _write(value, tokens, numbers)
        elif type(value) is tuple and value and isinstance(value[0], Node):
            # The length, or items of two adjacent fields could be mistaken for each other.
            tokens.append([len(value)])
            for item in value:
                _write(item, tokens, numbers)
        else:
            tokens.append(value)


def _number_names(value: Any, numbers: NameNumbers) -> Any:
    if value is None:
        return None
    if type(value) is tuple:
        return [numbers.setdefault(name, len(numbers)) for name in value]
    return numbers.setdefault(value, len(numbers))
