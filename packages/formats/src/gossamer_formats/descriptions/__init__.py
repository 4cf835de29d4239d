"""The library of format descriptions, one file per format.

Each module has a function that describes the format, and a constant `FORMAT`. `python -m tools.generate
formats` writes `NAMES` from the files here."""

from __future__ import annotations

NAMES = (
    "bitmask",
    "blocked_sell",
    "bsr",
    "coo",
    "csc",
    "csf",
    "csr",
    "dbsr",
    "dcsr",
    "dia",
    "ell",
    "ell3d",
    "ell_rows",
    "n_m",
    "padded_csr",
    "ragged",
    "row_groups",
    "sell",
    "sliced_dia",
    "sr_bcrs",
    "tiled_csr",
    "v_n_m",
)
"""The names of the modules, which are those of the formats."""
