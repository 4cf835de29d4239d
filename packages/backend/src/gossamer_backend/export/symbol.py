"""The symbol under which a kernel is exported."""

from __future__ import annotations

import re

from gossamer_backend.artifact import Artifact
from gossamer_ir.errors import ArgumentError

PREFIX = "gossamer_"
# The name is also that of files, to which suffixes are added; file systems allow 255 bytes.
MAX_SYMBOL_LENGTH = 200

_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept
    const const_cast constexpr continue co_await co_return co_yield decltype default delete do double
    dynamic_cast else enum explicit export extern false float for friend goto if inline int long main
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    register reinterpret_cast requires restrict return short signed sizeof static static_assert
    static_cast struct switch template this thread_local throw true try typedef typeid typename typeof
    union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_KEYWORDS = frozenset(_WORDS.split())
_TAKEN = frozenset(
    PREFIX + name for name in ("workspace", "workspace_of", "one_thread", "status_text")
)


def symbol_for(artifact: Artifact, name: str | None = None) -> str:
    """Return the name, by default `gossamer_` and that of the kernel's function.

    `ArgumentError` (`export.name`) if it is not a valid name of a function in C and C++.

    >>> from gossamer_ir.interchange.records import Signature
    >>> symbol_for(Artifact("toy", "1.0", "toy", Signature("csrmm", (), (), ()), b""))
    'gossamer_csrmm'
    """
    symbol = PREFIX + artifact.signature.entry if name is None else name
    if (
        isinstance(symbol, str)
        and _SYMBOL.fullmatch(symbol)
        and len(symbol) <= MAX_SYMBOL_LENGTH
        and symbol not in _KEYWORDS | _TAKEN
        and not re.match("__|_[A-Z]", symbol)
    ):
        return symbol
    raise ArgumentError(
        "export.name",
        f"'{symbol}' cannot be the name of an exported kernel; expected an identifier of at most "
        f"{MAX_SYMBOL_LENGTH} characters that is not a word of C, of C++ or of the header.",
        hint="Give another name, such as my_kernel.",
    )
