"""Arguments from a closed set of words, which the annotation of the argument lists: `Literal["a", "b"]`."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from gossamer_support.message_texts import either, nearest

_LITERAL = re.compile(r"Literal\[(.+)\]")


def choice_type(annotation: Any, names: Mapping[str, Any]) -> Any:
    """Return the type of an annotation if it is a closed set of words, or such a set with None; else None.

    The annotation is a text or, in a plugin that evaluates annotations, a type. `names` are those of its
    module, for a set that has a name.

    >>> words_of(choice_type('Literal["read", "write"] | None', {}))
    ('read', 'write')
    >>> words_of(choice_type("Side", {"Side": Literal["left", "right"]}))
    ('left', 'right')
    >>> choice_type("int", {}) is None
    True
    """
    choices = _evaluate_annotation(annotation, names) if isinstance(annotation, str) else annotation
    return choices if words_of(choices) else None


def _evaluate_annotation(text: str, names: Mapping[str, Any]) -> Any:
    """Return the set that a text writes or names. Only the two forms are read, as evaluating all annotations
    would need the names that a module imports for type checkers only."""
    base = text.removesuffix(" | None")
    written = _LITERAL.fullmatch(base)
    # A comma makes a tuple of a single word, too.
    words = literal_eval(f"{written[1]},") if written else ()
    choices: Any = Literal.__getitem__(words) if written else names.get(base)
    return choices if base == text or choices is None else choices | None


def words_of(declared: Any) -> tuple[str, ...]:
    """Return the words of an argument's type; none if it is not a closed set of words.

    >>> words_of(Literal["scalar", "masked"]), words_of(str)
    (('scalar', 'masked'), ())
    """
    is_union = get_origin(declared) in (Union, UnionType)
    members = [x for x in get_args(declared) if x is not NoneType] if is_union else [declared]
    if len(members) != 1 or get_origin(members[0]) is not Literal:
        return ()
    return get_args(members[0])


def expected_words(word: str, words: Iterable[str]) -> str:
    """Return the hint for a word that is not one of `words`: all of them, and the nearest one.

    >>> print(expected_words("maskd", ("masked", "scalar")))
    Expected 'masked' or 'scalar'. Did you mean 'masked'?
    >>> print(expected_words("x", ("int8", "int16", "int32")))
    Expected 'int8', 'int16' or 'int32'.
    """
    near = nearest(word, words)
    listed = either(f"'{choice}'" for choice in words)
    return f"Expected {listed}." + (f" Did you mean '{near}'?" if near else "")
