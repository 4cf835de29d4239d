"""Identifiers, and fresh names that are unique in a function."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from gossamer_ir.core.statement_kinds import NAME_BINDING_STMTS, STMT_KINDS
from gossamer_ir.nodes import Function, Stmt
from gossamer_ir.traversal.fields import LABEL_FIELDS
from gossamer_ir.traversal.statement_queries import declared_names, vars_bound
from gossamer_ir.traversal.walk import every_stmt, stmts

_NOT_IDENTIFIER = re.compile(r"\W", re.ASCII)

# Each primitive asks for all names of a function, and most statements declare none.
_DECLARING_STMTS = NAME_BINDING_STMTS | {kind for kind in STMT_KINDS if LABEL_FIELDS[kind]}


def is_identifier(name: str) -> bool:
    """Return whether a name is valid in a module: an ASCII identifier that is not a Python keyword."""
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def to_identifier(text: str) -> str:
    """Return a valid identifier that resembles a text: other characters become underscores.

    >>> to_identifier("rgcn-forward")
    'rgcn_forward'
    """
    name = _NOT_IDENTIFIER.sub("_", text) or "_"
    # Texts of modules are Python, which reserves these.
    if name[0].isdigit() or keyword.iskeyword(name):
        name = "_" + name
    return name


class Namer:
    """Generates names that are not taken yet.

    >>> namer = Namer(["j"])
    >>> namer.fresh("j"), namer.fresh("j"), namer.fresh("k")
    ('j_1', 'j_2', 'k')
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._given = taken
        self._counts: dict[str, int] = {}

    @cached_property
    def _taken_names(self) -> set[str]:
        """The names that are taken; collected on first use, since many passes create a namer and never
        need a name."""
        return set(self._given)

    def fresh(self, base: str) -> str:
        """Return `base` itself if it is free, else the first free one of `base_1`, `base_2`, ..."""
        taken = self._taken_names
        count = self._counts.get(base, 0)  # lower numbers are taken, and names are never released
        name = f"{base}_{count}" if count else base
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        taken.add(name)
        self._counts[base] = count
        return name


def namer_of(function: Function) -> Namer:
    """Return a namer for names that are not taken in a function.

    >>> from gossamer_ir.nodes import Function
    >>> namer_of(Function("scale", (), ())).fresh("scale")
    'scale_1'
    """
    return Namer(names_in(function))


def names_in(function: Function) -> Iterator[str]:
    """Yield every name that a function declares, its own included."""
    declared = (*function.params, *function.axes, *function.buffers, *function.reducers)
    yield from (function.name, *[declaration.name for declaration in declared])
    for reducer in function.reducers:
        yield from [var.name for var in (*reducer.lhs, *reducer.rhs)]
    for stmt in every_stmt(function):
        if type(stmt) in _DECLARING_STMTS:
            yield from declared_names(stmt)


def bound_vars(body: Iterable[Stmt]) -> set[str]:
    """Return the names of all variables that statements bind."""
    return {name for stmt in stmts(body) for name in vars_bound(stmt)}
