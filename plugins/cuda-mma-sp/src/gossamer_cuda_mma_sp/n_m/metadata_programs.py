"""`decode_metadata` and `encode_metadata` as programs of the language, for metadata that is already where
kernels run."""

from __future__ import annotations

from gossamer_cuda_mma_sp.n_m.metadata_words import UNUSED_NIBBLE, groups_of_word
from gossamer_cuda_mma_sp.n_m.n_m_patterns import NMPattern
from gossamer_cuda_mma_sp.n_m.operand_dtypes import operand_dtype_named
from gossamer_ir import parse_module
from gossamer_ir.nodes import Module
from gossamer_support.typed_calls import typed

_DECODE = """
@T.prim_func
def decode_metadata(
    metadata: T.handle, indices: T.handle, illegal: T.handle, m: T.int64, words: T.int64,
) -> None:
    I = T.sp.dense_fixed(m)
    W = T.sp.dense_fixed(words)
    Q = T.sp.dense_fixed(words * {groups})
    S = T.sp.dense_fixed({slots})
    METADATA = T.sp.match_buffer(metadata, (I, W), "{word_dtype}")
    INDICES = T.sp.match_buffer(indices, (I, Q, S), "uint8")
    ILLEGAL = T.sp.match_buffer(illegal, (I,), "int64")
    NIBBLE = T.sp.alloc_buffer((I, Q), "int64")
    with T.sp.iteration([I, Q], "SS", "nibbles") as [i, q]:
        NIBBLE[i, q] = T.int64(METADATA[i, q // {groups}]) >> 4 * (q % {groups}) & 15
    with T.sp.iteration([I, Q, S], "SSS", "indices") as [i, q, s]:
        INDICES[i, q, s] = T.uint8({unit})
    with T.sp.iteration([I, Q], "SR", "illegal") as [i, q]:
        with T.init():
            ILLEGAL[i] = 0
        if {legal} >> NIBBLE[i, q] & 1 == 0:
            ILLEGAL[i] = ILLEGAL[i] + 1
"""
_UNITS = {
    # The nibble of a pattern with one slot names two halves of an element, as if they were two elements.
    1: "NIBBLE[i, q] >> 1 & 1",
    2: "NIBBLE[i, q] >> 2 * s & 3",
}
"""The unit of a slot, by the number of slots."""

_ENCODE = """
@T.prim_func
def encode_metadata(
    indices: T.handle, metadata: T.handle, illegal: T.handle,
    m: T.int64, groups: T.int64, words: T.int64,
) -> None:
    I = T.sp.dense_fixed(m)
    Q = T.sp.dense_fixed(groups)
    W = T.sp.dense_fixed(words)
    G = T.sp.dense_fixed({groups})
    S = T.sp.dense_fixed({slots})
    INDICES = T.sp.match_buffer(indices, (I, Q, S), "uint8")
    METADATA = T.sp.match_buffer(metadata, (I, W), "{word_dtype}")
    ILLEGAL = T.sp.match_buffer(illegal, (I,), "int64")
    NIBBLE = T.sp.alloc_buffer((I, W, G), "int64")
    with T.sp.iteration([I, W, G], "SSS", "nibbles") as [i, w, g]:
        NIBBLE[i, w, g] = {unused}
        if w * {groups} + g < groups:
            NIBBLE[i, w, g] = {nibble}
    with T.sp.iteration([I, W, G], "SSR", "metadata") as [i, w, g]:
        with T.init():
            METADATA[i, w] = T.{word_dtype}(0)
        METADATA[i, w] = METADATA[i, w] + T.{word_dtype}((NIBBLE[i, w, g] & 15) << 4 * g)
    with T.sp.iteration([I, Q], "SR", "illegal") as [i, q]:
        with T.init():
            ILLEGAL[i] = 0
        if {is_wrong}:
            ILLEGAL[i] = ILLEGAL[i] + 1
"""
_INDEX = "T.int64(INDICES[i, {group}, {slot}])"


@typed
def decode_metadata_program(dtype: str, *, metadata_dtype: str = "int16") -> Module:
    """Return the program that computes what `decode_metadata` does, at the coordinate stage.

    Its arguments are `metadata`, m by `words`, of unsigned integers with as many bits as `metadata_dtype`;
    `indices` (uint8), m by groups of all words by slots; `illegal` (int64, m elements); and the sizes `m` and
    `words`. The program cannot raise an error: `illegal` is the number of illegal nibbles
    in each row, and the results are those of `decode_metadata` where it is 0.

    Raises `ArgumentError`: `n_m.dtype`, `n_m.metadata_dtype`.

    >>> import numpy as np
    >>> from gossamer_ir.interpret import run
    >>> indices, illegal = np.zeros((1, 2, 2), "uint8"), np.zeros(1, "int64")
    >>> arrays = {"metadata": np.array([[0x4E]], "uint8"), "indices": indices, "illegal": illegal}
    >>> run(decode_metadata_program("float16", metadata_dtype="int8"), arrays | {"m": 1, "words": 1})
    >>> indices.tolist(), illegal
    ([[[2, 3], [0, 1]]], array([0]))
    """
    pattern, groups = operand_dtype_named(dtype).pattern, groups_of_word(metadata_dtype)
    text = _DECODE.format(
        groups=groups,
        slots=pattern.slots,
        word_dtype=f"u{metadata_dtype}",
        unit=_UNITS[pattern.slots],
        legal=sum(1 << nibble for nibble in pattern.legal),
    )
    return parse_module(text)


@typed
def encode_metadata_program(dtype: str, *, metadata_dtype: str = "int16") -> Module:
    """Return the program that computes what `encode_metadata` does, at the coordinate stage.

    Its arguments are `indices` (uint8), m by `groups` by slots; `metadata`, m by `words`, of unsigned
    integers with as many bits as `metadata_dtype`; `illegal` (int64, m elements); and the sizes `m`, `groups`
    and `words`. The program cannot raise an error: `illegal` is the number of groups in each row whose
    indices do not increase, or are out of range, and the results are those of `encode_metadata` where it
    is 0.

    Raises `ArgumentError`: `n_m.dtype`, `n_m.metadata_dtype`.

    >>> import numpy as np
    >>> from gossamer_ir.interpret import run
    >>> metadata, illegal = np.zeros((1, 1), "uint8"), np.zeros(1, "int64")
    >>> indices = np.array([[[2, 3], [0, 1]]], "uint8")
    >>> arrays = {"indices": indices, "metadata": metadata, "illegal": illegal}
    >>> sizes = {"m": 1, "groups": 2, "words": 1}
    >>> run(encode_metadata_program("float16", metadata_dtype="int8"), arrays | sizes)
    >>> metadata == 0x4E, illegal
    (array([[ True]]), array([0]))
    """
    pattern, groups = operand_dtype_named(dtype).pattern, groups_of_word(metadata_dtype)
    text = _ENCODE.format(
        groups=groups,
        slots=pattern.slots,
        word_dtype=f"u{metadata_dtype}",
        unused=UNUSED_NIBBLE,
        nibble=_nibble(pattern, f"w * {groups} + g"),
        is_wrong=_is_wrong(pattern),
    )
    return parse_module(text)


def _nibble(pattern: NMPattern, group: str) -> str:
    """Return the script of the nibble of a group."""
    low, high = (_INDEX.format(group=group, slot=slot) for slot in (0, pattern.slots - 1))
    if pattern.slots == 1:
        return f"{low} * 2 | ({low} * 2 + 1) << 2"
    return f"{low} | {high} << 2"


def _is_wrong(pattern: NMPattern) -> str:
    """Return the script of the condition that indices do not increase, or are out of range."""
    low, high = (_INDEX.format(group="q", slot=slot) for slot in (0, pattern.slots - 1))
    is_beyond = f"{high} >= {pattern.units}"
    return is_beyond if pattern.slots == 1 else f"{low} >= {high} or {is_beyond}"
