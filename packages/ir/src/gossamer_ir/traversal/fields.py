"""The fields of each type of node that hold nodes or names, derived from the annotations in `nodes.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gossamer_ir.nodes import Const, Lanes, Node, Var, VScale

# Annotations are matched as text, since evaluating all of them would add about 20 ms to an
# import. A test compares the result with the evaluated types, so that a new alias cannot be forgotten.
_LEAF_TYPES = re.compile(
    r"(Name|Label|str|int|bool|None|Scope|StageName|SearchKind|RelationKind|ThreadTag"
    r"|ReduceOp|AtomicOp|ShuffleOp|UnaryOp|BinaryOp|CompareOp|Annotations"
    r"|Literal\[.*\]|tuple\[(Name|str), \.\.\.\])( \| None)?"
)

_NAME_TYPES = re.compile(r"(Name|tuple\[Name, \.\.\.\])( \| None)?")
_STMT_TYPES = re.compile(r"tuple\[(Stmt|Store), \.\.\.\]")

# Other expressions: none lacks operands but these, which walks may skip.
LEAVES: frozenset[type[Any]] = frozenset({Const, Lanes, Var, VScale, type(None)})
"""Field types that contain no further nodes."""


class _Fields(dict[type[Node], tuple[str, ...]]):
    """Some fields of each type of node, computed on first use. A dict because a lookup is faster than a
    call of a cached function."""

    def __init__(self, find: Callable[[type[Node]], tuple[str, ...]]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, kind: type[Node]) -> tuple[str, ...]:
        self[kind] = names = self._find(kind)
        return names


def _holding_nodes(kind: type[Node]) -> tuple[str, ...]:
    return tuple(name for name, text in _types(kind).items() if _LEAF_TYPES.fullmatch(text) is None)


def _holding_stmts(kind: type[Node]) -> tuple[str, ...]:
    return tuple(name for name, text in _types(kind).items() if _STMT_TYPES.fullmatch(text))


def _types(kind: type[Node]) -> dict[str, str]:
    """Return the fields in order, and the text of their annotations."""
    types = {
        name: str(text)
        for base in reversed(kind.__mro__)
        for name, text in getattr(base, "__annotations__", {}).items()
    }
    return {name: types[name] for name in kind.__struct_fields__}


FIELDS = _Fields(_holding_nodes)
"""The fields that may hold nodes, in order of declaration."""
FIELDS_BACKWARDS = _Fields(lambda kind: FIELDS[kind][::-1])
"""The same fields, last one first: the order in which a stack is filled."""
NAME_FIELDS = _Fields(
    lambda kind: tuple(name for name, text in _types(kind).items() if _NAME_TYPES.fullmatch(text))
)
"""The fields that hold names, or tuples of them, which may be replaced throughout a function."""
LABEL_FIELDS = _Fields(
    lambda kind: tuple(name for name, text in _types(kind).items() if text == "Label")
)
"""The fields that hold the label of a statement."""
BODIES_BACKWARDS = _Fields(lambda kind: _holding_stmts(kind)[::-1])
"""The fields that hold statements, last one first."""


def name_fields(kind: type[Node]) -> frozenset[str]:
    """Return the fields of a type of node that hold names which may be replaced throughout a function.

    >>> from gossamer_ir.nodes import Load
    >>> name_fields(Load)
    frozenset({'buffer'})
    """
    return frozenset(NAME_FIELDS[kind])


def has_bodies(kind: type[Node]) -> bool:
    """Return whether statements of a type have bodies."""
    return bool(BODIES_BACKWARDS[kind])


def body_fields(kind: type[Node]) -> tuple[str, ...]:
    """Return the fields of a type of statement, or of a function, that hold statements.

    >>> from gossamer_ir.nodes import If, Let
    >>> body_fields(If), body_fields(Let)
    (('then_body', 'else_body'), ())
    """
    return BODIES_BACKWARDS[kind][::-1]
