"""V:N:M sparsity: blocks of V rows share some of M columns, of which each row has N slots."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.pruning.rules import LARGEST_IN_CHOSEN_COLUMNS
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def v_n_m(
    data: T.handle, columns: T.handle, indices: T.handle,
    m: T.int64, n: T.int64, rows: T.int64, group: T.int64, chosen: T.int64, slots: T.int64,
) -> None:
    IO = T.sp.dense_fixed((m + rows - 1) // rows)
    G = T.sp.dense_fixed((n + group - 1) // group, parent=IO)
    II = T.sp.dense_fixed(rows, parent=G)
    J = T.sp.compressed_fixed(II, (chosen, slots), indices, "uint8")
    A = T.sp.match_buffer(data, (IO, G, II, J), "float32")
    COLUMNS = T.match_buffer(
        columns, ((m + rows - 1) // rows, (n + group - 1) // group, chosen), "int32"
    )
    T.sp.map(
        lambda io, g, ii, j: (io * rows + ii, g * group + T.int64(COLUMNS[io, g, j])), shape=(m, n)
    )
"""


@lru_cache(maxsize=MAX_VARIANTS)
def v_n_m(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix in V:N:M sparsity (VENOM, Castro and others, 2023).

    V is `rows`, M is `group`, N is `slots`, of `chosen` columns. Its arrays are `columns` (blocks of rows
    by groups by chosen), the columns within each group that a block of rows uses, `indices` (uint8) and
    `data` (blocks of rows by groups by rows by slots). The index of a slot is a place in `columns`; unused
    slots have the index `chosen`. The default is 64:2:8 with 4 chosen columns.

    >>> v_n_m().buffer.axes
    ('IO', 'G', 'II', 'J')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format(
    "v_n_m",
    v_n_m,
    parameters={"rows": 64, "group": 8, "chosen": 4, "slots": 2},
    example_parameters={"rows": 2},
    adapters=(LARGEST_IN_CHOSEN_COLUMNS,),
)
