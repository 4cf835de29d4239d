"""Converts a storage to another format by the two descriptions: by kernels, or by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.by_numpy.store_elements import store_elements
from gossamer_formats.conversion.by_numpy.stored_elements import (
    select_elements,
    sorted_elements,
    stored_elements,
)
from gossamer_formats.conversion.conversion_history import ConversionHistory, conversion_history
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.conversion.destination.conversion_options import (
    DEFAULT_OPTIONS,
    ConversionOptions,
)
from gossamer_formats.conversion.destination.converted_storage import ConvertedStorage
from gossamer_formats.registry.compiler import find_compiler, find_machine, thread_count
from gossamer_formats.storage import Storage, with_values_in
from gossamer_formats.value_dtypes import is_encoded
from gossamer_ir.errors import FormatError
from gossamer_support.message_texts import amount

MIN_COMPILED = 2**17
"""The number of values from which kernels are compiled: NumPy takes about as long as loading a kernel.
Those of earlier conversions between the same formats count, too."""

VALUES_PER_THREAD = 2**17
"""The number of values from which a thread pays: to store the slots of elements, and to load them again, is
work that one thread saves."""


def convert_storage(
    source: Storage,
    destination: Destination,
    *,
    options: ConversionOptions = DEFAULT_OPTIONS,
) -> ConvertedStorage:
    """Return a storage in another format.

    Compiled kernels convert large storages, and small ones after many of the same formats, if distribution
    `gossamer` is installed; NumPy converts all others.
    Raises `FormatError` if the destination, or the memory, cannot hold the elements.

    >>> from gossamer_formats.descriptions.csr import csr
    >>> from gossamer_formats.descriptions.dia import dia
    >>> arrays = {"indptr": np.array([0, 1, 2]), "indices": np.array([1, 0]), "data": np.array([5.0, 6.0])}
    >>> source = Storage(csr("float64"), {"m": 2, "n": 2, "nnz": 2}, arrays)
    >>> converted = convert_storage(source, Destination(dia()))
    >>> converted.storage.arrays["offsets"], converted.storage.values, converted.permutation
    (array([-1,  1], dtype=int32), array([6., 0., 0., 5.]), array([ 1, -1, -1,  0]))
    """
    try:
        return _convert(source, destination, options)
    except MemoryError as error:
        raise _memory_error(source, destination, error) from error


def _memory_error(source: Storage, destination: Destination, error: MemoryError) -> FormatError:
    parameters = ", ".join(f"{name}={value}" for name, value in destination.parameters.items())
    return FormatError(
        "format.memory",
        f"The tensor with {amount(source.values.size, 'value')} does not fit in memory in the format "
        f"'{destination.description.name}'{parameters and ' with '}{parameters}: {error}.",
        hint="Choose a format, or parameters, with fewer slots without elements.",
    )


def _convert(
    source: Storage, destination: Destination, options: ConversionOptions
) -> ConvertedStorage:
    history = conversion_history(source, destination, options)
    # Two threads may count at once; a conversion that is not counted changes nothing.
    history.value_count += source.values.size
    compile = find_compiler() if history.value_count >= MIN_COMPILED else None
    if compile is not None:
        kernel_options = _kernel_options(history, source.values.size)
        converted = _converter_by_kernels()(source, destination, compile, kernel_options)
        if converted is not None:
            return converted
    dtype = source.description.buffer.dtype
    if is_encoded(dtype):
        # NumPy cannot add such values: those of a float32 are rounded once.
        wide = convert_storage(with_values_in(source, "float32"), destination, options=options)
        return wide._replace(storage=with_values_in(wide.storage, dtype))
    elements = stored_elements(source)
    drops_zeros = history.kernel_options.drops_zeros
    if drops_zeros:
        elements = select_elements(elements, np.flatnonzero(source.values[elements.value_indices]))
    elements = sorted_elements(elements)
    return store_elements(source, elements, destination, options=options, drops_zeros=drops_zeros)


def _kernel_options(history: ConversionHistory, values: int) -> KernelOptions:
    """Return the options for the machine and the number of threads that pays for this many values."""
    # Small tensors are converted in some 30 microseconds, so that each call counts.
    threads = values // VALUES_PER_THREAD
    threads = min(thread_count(), threads) if threads > 1 else 1
    options = history.options_by_threads.get(threads)
    if options is None:
        options = history.kernel_options._replace(threads=threads, machine=find_machine())
        history.options_by_threads[threads] = options
    return options


@cache
def _converter_by_kernels() -> Callable[..., ConvertedStorage | None]:
    """Return the function that converts by kernels. Most processes convert no large storage, so that they
    need not import it."""
    from gossamer_formats.conversion.by_kernels.convert_by_kernels import convert_by_kernels

    return convert_by_kernels
