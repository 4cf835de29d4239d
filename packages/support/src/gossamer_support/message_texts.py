"""The words of messages: numbers with nouns, lists of words, sizes in bytes, names with parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def amount(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun, in the plural unless the number is 1.

    >>> amount(1, "vector"), amount(3, "vector"), amount(0, "axis", "axes")
    ('1 vector', '3 vectors', '0 axes')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"


def readable_size(size: int) -> str:
    """Return a number of bytes in the unit that suits it.

    >>> readable_size(72), readable_size(1_234_567), readable_size(2 << 20)
    ('72 bytes', '1.18 MiB', '2 MiB')
    """
    if size < 1024:
        return f"{size} bytes"
    number, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1000:
            break
        number, unit = number / 1024, larger
    return f"{number:.3g} {unit}"


def with_parameters(name: str, parameters: Mapping[str, int]) -> str:
    """Return a name, followed by the parameters if there are any.

    >>> with_parameters("ell_rows", {"width": 2}), with_parameters("csr", {})
    ('ell_rows (width=2)', 'csr')
    """
    texts = [f"{parameter}={value}" for parameter, value in parameters.items()]
    return f"{name} ({', '.join(texts)})" if texts else name


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
