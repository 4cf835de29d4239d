"""Reads subscripts such as `ij,jk->ik`."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from gossamer_ir.errors import ArgumentError
from gossamer_support.message_texts import amount, in_quotes

_TERM = re.compile(r"[a-zA-Z]*")


class Subscripts(msgspec.Struct, frozen=True):
    """The letters of each operand and of the result, one for each dimension."""

    operands: tuple[str, ...]
    result: str

    @property
    def letters(self) -> str:
        """All letters, in the order in which they occur."""
        return "".join(dict.fromkeys("".join(self.operands)))


def parse_subscripts(text: str) -> Subscripts:
    """Return the letters of subscripts. Without `->`, the result has the letters that occur once, in
    alphabetical order, as in NumPy.

    Raises `ArgumentError` (`einsum.subscripts`).

    >>> parse_subscripts("ij, jk -> ik")
    Subscripts(operands=('ij', 'jk'), result='ik')
    >>> parse_subscripts("ij,jk").result
    'ik'
    """
    left, arrow, result = text.replace(" ", "").partition("->")
    operands = tuple(left.split(","))
    if not arrow:
        counts = Counter("".join(operands))
        result = "".join(sorted(letter for letter, count in counts.items() if count == 1))
    for term in (*operands, result):
        if not _TERM.fullmatch(term):
            raise subscripts_error(text, f"'{term}' has other characters than letters")
    missing = sorted({*result} - {*"".join(operands)})
    if missing:
        raise subscripts_error(text, f"the result has {in_quotes(missing)}, which no operand has")
    if len({*result}) < len(result):
        raise subscripts_error(text, f"the result '{result}' has a letter twice")
    return Subscripts(operands, result)


def subscripts_error(text: str, problem: str) -> ArgumentError:
    """Return the error of subscripts."""
    return ArgumentError(
        "einsum.subscripts",
        f"The subscripts '{text}' cannot be read: {problem}.",
        hint="Write a letter for each dimension, such as 'ij,jk->ik'.",
    )


def require_operand_count(text: str, subscripts: Subscripts, count: int) -> None:
    """Raise `ArgumentError` (`einsum.subscripts`) unless there are subscripts for each operand."""
    if len(subscripts.operands) != count:
        terms = amount(len(subscripts.operands), "operand")
        raise subscripts_error(text, f"they are those of {terms}, and there are {count}")
