"""`compress` and `decompress` as programs of the language, for data that is already where kernels run."""

from __future__ import annotations

from gossamer_cuda_mma_sp.n_m.metadata_words import groups_of_word
from gossamer_cuda_mma_sp.n_m.operand_dtypes import OperandDType, operand_dtype_named
from gossamer_ir import parse_module
from gossamer_ir.nodes import Module
from gossamer_support.typed_calls import typed

_COMPRESS = """
@T.prim_func
def compress(
    x: T.handle, values: T.handle, metadata: T.handle, excess: T.handle,
    m: T.int64, n: T.int64, words: T.int64,
) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    W = T.sp.dense_fixed(words)
    G = T.sp.dense_fixed({groups})
    U = T.sp.dense_fixed({units})
    P = T.sp.dense_fixed({unit_columns})
    S = T.sp.dense_fixed({slots})
    X = T.sp.match_buffer(x, (I, J), "{dtype}")
    VALUES = T.sp.match_buffer(values, (I, W, G, S, P), "{dtype}")
    METADATA = T.sp.match_buffer(metadata, (I, W), "{word_dtype}")
    EXCESS = T.sp.match_buffer(excess, (I,), "int64")
    KEPT = T.sp.alloc_buffer((I, W, G, U), "int64")
    UNITS = T.sp.alloc_buffer((I, W, G), "int64")
    NIBBLE = T.sp.alloc_buffer((I, W, G), "int64")
    with T.sp.iteration([I, W, G, U, P], "SSSSR", "kept") as [i, w, g, u, p]:
        with T.init():
            KEPT[i, w, g, u] = 0
        if {start} + u * {unit_columns} + p < n:
            if X[i, {start} + u * {unit_columns} + p]{magnitude} != {zero}:
                KEPT[i, w, g, u] = T.max(KEPT[i, w, g, u], 1)
    with T.sp.iteration([I, W, G, U], "SSSR", "units") as [i, w, g, u]:
        with T.init():
            UNITS[i, w, g] = 0
        UNITS[i, w, g] = UNITS[i, w, g] + (KEPT[i, w, g, u] << u)
    with T.sp.iteration([I, W, G], "SSS", "nibbles") as [i, w, g]:
        NIBBLE[i, w, g] = T.int64({nibbles}) >> 4 * UNITS[i, w, g] & 15
    with T.sp.iteration([I, W, G], "SRR", "excess") as [i, w, g]:
        with T.init():
            EXCESS[i] = 0
        if NIBBLE[i, w, g] == 0:
            EXCESS[i] = EXCESS[i] + 1
    with T.sp.iteration([I, W, G, S, P], "SSSSS", "values") as [i, w, g, s, p]:
        VALUES[i, w, g, s, p] = {zero}
        if {start} + {unit} * {unit_columns} + p < n:
            if X[i, {start} + {unit} * {unit_columns} + p]{magnitude} != {zero}:
                VALUES[i, w, g, s, p] = X[i, {start} + {unit} * {unit_columns} + p]
    with T.sp.iteration([I, W, G], "SSR", "metadata") as [i, w, g]:
        with T.init():
            METADATA[i, w] = T.{word_dtype}(0)
        METADATA[i, w] = METADATA[i, w] + T.{word_dtype}(NIBBLE[i, w, g] << 4 * g)
"""

_DECOMPRESS = """
@T.prim_func
def decompress(
    values: T.handle, metadata: T.handle, x: T.handle, illegal: T.handle,
    m: T.int64, n: T.int64, words: T.int64,
) -> None:
    I = T.sp.dense_fixed(m)
    J = T.sp.dense_fixed(n)
    W = T.sp.dense_fixed(words)
    G = T.sp.dense_fixed({groups})
    S = T.sp.dense_fixed({slots})
    P = T.sp.dense_fixed({unit_columns})
    VALUES = T.sp.match_buffer(values, (I, W, G, S, P), "{dtype}")
    METADATA = T.sp.match_buffer(metadata, (I, W), "{word_dtype}")
    X = T.sp.match_buffer(x, (I, J), "{dtype}")
    ILLEGAL = T.sp.match_buffer(illegal, (I,), "int64")
    NIBBLE = T.sp.alloc_buffer((I, W, G), "int64")
    with T.sp.iteration([I, W, G], "SSS", "nibbles") as [i, w, g]:
        NIBBLE[i, w, g] = T.int64(METADATA[i, w]) >> 4 * g & 15
    with T.sp.iteration([I, W, G], "SRR", "illegal") as [i, w, g]:
        with T.init():
            ILLEGAL[i] = 0
        if {legal} >> NIBBLE[i, w, g] & 1 == 0:
            ILLEGAL[i] = ILLEGAL[i] + 1
    with T.sp.iteration([I, J], "SS", "elements") as [i, j]:
        X[i, j] = {zero}
{slot_stores}
"""

_SLOT_STORE = """\
        if {unit} == j % {group} // {unit_columns}:
            X[i, j] = VALUES[{at}, {slot}, j % {unit_columns}]"""


@typed
def compress_program(dtype: str, *, metadata_dtype: str = "int16") -> Module:
    """Return the program that computes what `compress` does, at the coordinate stage.

    Its arguments are `x`, m by n; `values`, m by `words` by groups of a word by slots by columns of a unit,
    or flat; `metadata`, m by `words`, of unsigned integers with as many bits as `metadata_dtype`; `excess`
    (int64, m elements); and the sizes `m`, `n` and `words`. `x` and `values` are float16, bfloat16,
    float32, int8 (also for int4) or uint8 (also for uint4 and float8). The program cannot raise an error:
    `excess` is the number of groups in each row that do not have the pattern, and the results are those of
    `compress` where it is 0.

    Raises `ArgumentError`: `n_m.dtype`, `n_m.metadata_dtype`.

    >>> import numpy as np
    >>> from gossamer_cuda_mma_sp.n_m.compress import compress
    >>> from gossamer_ir.interpret import run
    >>> x = np.array([[0, 5, 0, 7]], np.int8)
    >>> values, metadata, excess = np.zeros((1, 4), "int8"), np.zeros((1, 1), "uint8"), np.zeros(1, "int64")
    >>> arrays = {"x": x, "values": values, "metadata": metadata, "excess": excess}
    >>> run(compress_program("int8", metadata_dtype="int8"), arrays | {"m": 1, "n": 4, "words": 1})
    >>> values, metadata == compress(x, metadata_dtype="int8").metadata.view("uint8")
    (array([[5, 7, 0, 0]], dtype=int8), array([[ True]]))
    """
    operand = operand_dtype_named(dtype)
    parts = _parts(operand, metadata_dtype)
    unit = "(NIBBLE[i, w, g] >> 2 * s & 3)" if parts["slots"] == 2 else "(NIBBLE[i, w, g] >> 1 & 1)"
    start = f"w * {parts['word_columns']} + g * {parts['group']}"
    nibbles = sum(nibble << 4 * units for units, nibble in enumerate(operand.pattern.nibbles))
    text = _COMPRESS.format(
        **parts,
        start=start,
        unit=unit,
        nibbles=nibbles,
        units=operand.pattern.units,
        magnitude=" & T.uint8(127)" if dtype.startswith("float8") else "",
    )
    return parse_module(text)


@typed
def decompress_program(dtype: str, *, metadata_dtype: str = "int16") -> Module:
    """Return the program that computes what `decompress` does, at the coordinate stage.

    Its arguments are `values`, `metadata`, `x`, `illegal` (int64, m elements) and the sizes `m`, `n` and
    `words`, with the shapes and dtypes of `compress_program`. `illegal` is the number of illegal nibbles in
    each row.

    Raises `ArgumentError`: `n_m.dtype`, `n_m.metadata_dtype`.

    >>> import numpy as np
    >>> from gossamer_ir.interpret import run
    >>> x, illegal = np.zeros((1, 4), "int8"), np.zeros(1, "int64")
    >>> values, metadata = np.array([[5, 7, 0, 0]], "int8"), np.array([[0x4D]], "uint8")
    >>> arrays = {"values": values, "metadata": metadata, "x": x, "illegal": illegal}
    >>> run(decompress_program("int8", metadata_dtype="int8"), arrays | {"m": 1, "n": 4, "words": 1})
    >>> x, illegal
    (array([[0, 5, 0, 7]], dtype=int8), array([0]))
    """
    operand = operand_dtype_named(dtype)
    parts = _parts(operand, metadata_dtype)
    at = f"i, j // {parts['word_columns']}, j % {parts['word_columns']} // {parts['group']}"
    nibble = f"NIBBLE[{at}]"
    units = [f"{nibble} & 3", f"{nibble} >> 2"] if parts["slots"] == 2 else [f"{nibble} >> 1 & 1"]
    stores = [
        _SLOT_STORE.format(**parts, unit=f"({unit})", at=at, slot=slot)
        for slot, unit in enumerate(units)
    ]
    legal = sum(1 << nibble for nibble in operand.pattern.legal)
    return parse_module(_DECOMPRESS.format(**parts, legal=legal, slot_stores="\n".join(stores)))


def _parts(operand: OperandDType, metadata_dtype: str) -> dict[str, str | int]:
    """Return the parts of both scripts that depend on the dtypes."""
    pattern, groups = operand.pattern, groups_of_word(metadata_dtype)
    dtype = "bfloat16" if operand.name == "bfloat16" else operand.stored_as
    return {
        "dtype": dtype,
        "word_dtype": f"u{metadata_dtype}",
        "zero": f"T.{dtype}(0)",
        "groups": groups,
        "group": pattern.group,
        "word_columns": groups * pattern.group,
        "slots": pattern.slots,
        "unit_columns": pattern.unit_columns,
    }
