"""Bitmask: one bit for each column of a row says whether it is stored, and the values are packed."""

from __future__ import annotations

from functools import lru_cache

from gossamer_formats.format import MAX_VARIANTS, Format
from gossamer_formats.storage import with_value_dtype
from gossamer_ir.nodes import FormatDescription
from gossamer_ir.script import parse_format

_SCRIPT = """
@T.format
def bitmask(
    data: T.handle, indptr: T.handle, words: T.handle, m: T.int64, n: T.int64, nnz: T.int64,
) -> None:
    I = T.sp.dense_fixed(m)
    W = T.sp.dense_fixed((n + 63) // 64, parent=I)
    J = T.sp.bitmask_varied(W, (64, nnz), (indptr, words), "int32", words_dtype="uint64")
    A = T.sp.match_buffer(data, (I, W, J), "float32")
    T.sp.map(lambda i, w, j: (i, w * 64 + j), shape=(m, n))
"""


@lru_cache(maxsize=MAX_VARIANTS)
def bitmask(dtype: str = "float32") -> FormatDescription:
    """Return the description of an m by n matrix with a word of bits for each 64 columns of a row.

    Its arrays are `words` (m by n / 64, rounded up; uint64), `indptr` (words + 1) and `data` (nnz). Bit b of
    word w of a row is set if column 64 w + b is stored, `indptr` has the number of bits that are set before
    each word, and `data` the values in the order of the columns. A column of a row takes 1.5 bits, and a
    value no index.

    >>> bitmask().buffer.axes
    ('I', 'W', 'J')
    """
    return with_value_dtype(parse_format(_SCRIPT), dtype)


FORMAT = Format("bitmask", bitmask)
