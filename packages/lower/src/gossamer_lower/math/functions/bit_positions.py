"""The position of the n-th bit of a word that is set, by halving the word."""

from __future__ import annotations

from gossamer_ir.core.dtypes import DType
from gossamer_lower.math.term_builder import Term


def find_nth_bit(word: Term, number: Term) -> Term:
    """Return the position of the set bit with `number` set bits below it; the number of bits if there is
    none.

    Each step counts the set bits in the lower half of what is left, and goes on in the half with the bit.
    There are no branches, so lanes can do it, too: `select` of S. Vigna, "Broadword implementation of
    rank/select queries" (2008).
    """
    width = DType.parse(word.dtype).bits
    # Unsigned: a shift to the right brings in zeros, and the number is an unsigned one.
    bits, rest = (value.to(f"uint{width}") for value in (word, number))
    code = word.code
    is_missing = rest >= code.call("popcount", bits)
    position, half = bits.constant_like(0), width // 2
    while half:
        below = code.call("popcount", (bits >> position) & ((1 << half) - 1))
        is_above = rest >= below
        position = code.select(is_above, position + half, position)
        rest = code.select(is_above, rest - below, rest)
        half //= 2
    return code.select(is_missing, width, position).to(word.scalar)
