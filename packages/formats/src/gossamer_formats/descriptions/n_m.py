"""N:M sparsity: of each M consecutive columns of a row, N slots."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.pruning.rules import LARGEST_OF_GROUPS
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def n_m(
    data: T.handle, indices: T.handle, m: T.int64, n: T.int64, slots: T.int64, group: T.int64
) -> None:
    I = T.sp.dense_fixed(m)
    G = T.sp.dense_fixed((n + group - 1) // group, parent=I)
    J = T.sp.compressed_fixed(G, (group, slots), indices, "uint8")
    A = T.sp.match_buffer(data, (I, G, J), "float32")
    T.sp.map(lambda i, g, j: (i, g * group + j), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def n_m(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix with `slots` slots for each `group` columns of a row.

    Its arrays are `indices` (uint8) and `data` (m by groups by slots). The index of a slot is the column
    within the group; unused slots have the index `group`. The default is 2:4.

    >>> n_m().buffer.axes
    ('I', 'G', 'J')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format(
    "n_m",
    n_m,
    parameters={"slots": 2, "group": 4},
    adapters=(LARGEST_OF_GROUPS,),
)
