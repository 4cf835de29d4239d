"""The expected cost of a product in one format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gossamer_support.message_texts import with_parameters


class Estimate(NamedTuple):
    """A format with the parameters of a conversion to it, the expected cycles of one call, the cycles of
    the conversion (0 for CSR, which is given), and the reason in words. `adds_zeros` is true if the
    format fills up slots with zeros that take part in products, `is_ordered` if its rows are in an order of
    communities.

    >>> estimate = Estimate("bsr", {"block_rows": 4, "block_columns": 4}, 10.0, 300.0, "full blocks")
    >>> estimate.text, estimate.total(calls=2)
    ('bsr (block_rows=4, block_columns=4)', 320.0)
    """

    format: str
    parameters: Mapping[str, int]
    cycles: float
    conversion_cycles: float
    reason: str
    adds_zeros: bool = False
    is_ordered: bool = False

    def total(self, calls: int) -> float:
        """Return the cycles of a conversion and this many calls.

        >>> Estimate("csr", {}, 10.0, 0.0, "").total(3)
        30.0
        """
        return self.conversion_cycles + calls * self.cycles

    @property
    def text(self) -> str:
        """The format and its parameters in words.

        >>> Estimate("bsr", {"block_rows": 3, "block_columns": 3}, 1.0, 1.0, "").text
        'bsr (block_rows=3, block_columns=3)'
        """
        return with_parameters(self.format, self.parameters)
