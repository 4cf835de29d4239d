"""Lists of words for messages, and the word that is meant by a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable


def either(words: Iterable[str]) -> str:
    """Return words as alternatives.

    >>> either(["'int8'"]), either(["'int8'", "'int16'", "'int32'"])
    ("'int8'", "'int8', 'int16' or 'int32'")
    """
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def in_quotes(words: Iterable[str]) -> str:
    """Return words in quotes, in their order.

    >>> in_quotes(["i", "j"])
    "'i', 'j'"
    """
    return ", ".join(f"'{word}'" for word in words)


def nearest(word: str, words: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the word that is most like a given one, None if none is; `cutoff` is the least likeness,
    from 0 to 1.

    >>> nearest("maskd", ["masked", "scalar"]), nearest("x", ["masked", "scalar"])
    ('masked', None)
    """
    from difflib import get_close_matches  # only for errors

    return next(iter(get_close_matches(word, list(words), n=1, cutoff=cutoff)), None)
