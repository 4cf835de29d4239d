"""Conversions between two formats with equal options: whether they are possible, and how many there were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec

from gossamer_formats.checks.array_checks import INDEX_DTYPES
from gossamer_formats.checks.storage_checks import require_one_buffer
from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.conversion.destination.conversion_options import (
    ConversionOptions,
    Duplicates,
    Zeros,
)
from gossamer_formats.description_sizes import shape_of
from gossamer_formats.storage import Storage
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements
from gossamer_ir.errors import FormatError
from gossamer_ir.nodes import FormatDescription
from gossamer_support.bounded_dict import put_bounded
from gossamer_support.message_texts import amount, either


class ConversionHistory(msgspec.Struct, eq=False):
    """The conversions between two formats with equal options. `value_count` is the number of values that they
    have converted so far, by which NumPy or kernels are chosen: NumPy takes at most as much time as not
    compiling sooner has saved. `options_by_threads` are the options of kernels on this machine, by the number
    of threads."""

    kernel_options: KernelOptions
    value_count: int = 0
    options_by_threads: dict[int, KernelOptions] = {}


MAX_CONVERSION_HISTORIES = 64
"""The number of histories that are kept for a destination."""


def conversion_history(
    source: Storage, destination: Destination, options: ConversionOptions
) -> ConversionHistory:
    """Return the history of conversions like this one; one object for equal arguments.

    Raises `FormatError` if the conversion is not possible: `format.dimensions`, `format.index_dtype`,
    `format.parameter.value`.
    """
    key = (source.description, options)
    history: ConversionHistory | None = destination.memo.get(key)
    if history is None:
        # Checked once: whatever the checks depend on is in the key.
        require_ndim(destination.description, len(source.shape))
        require_one_buffer(destination.description)
        _require_index_dtype(options.index_dtype)
        _require_word("duplicates", options.duplicates, get_args(Duplicates))
        _require_word("zeros", options.zeros, (None, *get_args(Zeros)))
        is_filled = not stores_only_elements(source.description)
        history = ConversionHistory(
            KernelOptions(
                drops_zeros=options.zeros == "drop" or (options.zeros is None and is_filled),
                index_dtype=options.index_dtype,
                wants_permutation=options.wants_permutation,
                adds_repeated=options.duplicates == "sum",
            )
        )
        put_bounded(destination.memo, key, history, limit=MAX_CONVERSION_HISTORIES)
    return history


def _require_index_dtype(dtype: str | None) -> None:
    if dtype not in (None, *INDEX_DTYPES):
        raise FormatError(
            "format.index_dtype",
            f"The dtype of indices is {dtype!r}; expected {either(INDEX_DTYPES)}.",
        )


def _require_word(option: str, word: str | None, expected: Sequence[str | None]) -> None:
    if word not in expected:
        words = ", ".join(map(repr, expected))
        raise FormatError(
            "format.parameter.value", f"The option '{option}' is {word!r}; expected one of {words}."
        )


def require_ndim(destination: FormatDescription, ndim: int) -> None:
    """Refuse a tensor with another number of dimensions than a format: `format.dimensions`.

    >>> from gossamer_formats.descriptions.csr import csr
    >>> require_ndim(csr(), 2)
    """
    if len(shape_of(destination)) != ndim:
        raise FormatError(
            "format.dimensions",
            f"The tensor has {amount(ndim, 'dimension')}, but the format '{destination.name}' has "
            f"{len(shape_of(destination))}.",
        )
