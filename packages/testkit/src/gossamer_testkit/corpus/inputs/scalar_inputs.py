"""Scalar parameters of every dtype."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gossamer_testkit.corpus.case import Case, Options
from gossamer_testkit.corpus.inputs.pairs import special_values


def scalar_values(options: Options) -> Iterator[Case]:
    """Yield a case for each special value `s` of the dtype, which the program writes to Y."""
    dtype = options["dtype"]
    values = [False, True] if dtype == "bool" else special_values(dtype).tolist()
    for value in dict.fromkeys(values):
        if dtype == "uint64" and value >= 2**63:
            continue  # scalar arguments are passed as int64_t
        yield Case(f"{value}", {"y": np.zeros(1, dtype), "s": value})
