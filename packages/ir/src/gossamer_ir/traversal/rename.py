"""Other names in a node, by the fields that `nodes.py` declares as names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from gossamer_ir.nodes import Node
from gossamer_ir.traversal.fields import LABEL_FIELDS, NAME_FIELDS

N = TypeVar("N", bound=Node)


def with_names(node: N, names: Mapping[str, str]) -> N:
    """Return the node with other names in its own fields. The nodes below it, and labels, stay as they are.

    >>> from gossamer_ir.nodes import Iteration, OverAxis
    >>> inner = Iteration("i", (OverAxis("I"),), "S", ("i",), ())
    >>> with_names(inner, {"i": "j", "I": "J"}) == Iteration("i", (OverAxis("I"),), "S", ("j",), ())
    True
    """
    return _with_texts(node, NAME_FIELDS[type(node)], names)


def with_labels(node: N, labels: Mapping[str, str]) -> N:
    """Return the node with another label, if it has one.

    >>> from gossamer_ir.nodes import Block
    >>> with_labels(Block("b", (), ()), {"b": "c"}).name
    'c'
    """
    return _with_texts(node, LABEL_FIELDS[type(node)], labels)


def _with_texts(node: N, fields: tuple[str, ...], texts: Mapping[str, str]) -> N:
    changed: dict[str, Any] = {}
    for field in fields:
        old = getattr(node, field)
        new = _each_text(old, texts) if type(old) is tuple else texts.get(old, old)
        if new != old:
            changed[field] = new
    return replace(node, **changed) if changed else node


def _each_text(old: tuple[str, ...], texts: Mapping[str, str]) -> tuple[str, ...]:
    return tuple([texts.get(text, text) for text in old])
