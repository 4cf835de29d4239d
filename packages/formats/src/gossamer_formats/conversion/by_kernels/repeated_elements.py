"""Sorts elements that may be repeated, and adds those with equal coordinates."""

from __future__ import annotations

from functools import reduce

import numpy as np

from gossamer_formats.conversion.by_kernels.build_storage import build_storage
from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.by_kernels.kernels.kernel_call import ArrayArgument, run_kernel
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SharedArguments
from gossamer_formats.conversion.by_kernels.kernels.statements import (
    compare,
    define_local,
    let,
    load_local,
    logical_or,
    select,
    store,
    store_local,
)
from gossamer_formats.conversion.by_kernels.recording.array_scalars import first_of
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import NotDirectError
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import (
    RecordedConversion,
    RecordedStorage,
    compose_value_indices,
)
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.conversion.by_kernels.sorting_formats import buckets_of_dimensions
from gossamer_formats.conversion.by_kernels.source.element_loop import ElementLoop, element_loop
from gossamer_formats.conversion.by_kernels.source.element_order import (
    declared_order,
    order_of_loop,
)
from gossamer_formats.conversion.by_kernels.source.loop_order import layout_sizes
from gossamer_formats.conversion.by_kernels.source.observed_order import observed_order
from gossamer_formats.conversion.destination.inverse_map import logical_var
from gossamer_formats.descriptions.coo import coo
from gossamer_formats.memory.new_arrays import without_end
from gossamer_ir.core.build import ONE, ZERO, add, index, index_var, sub
from gossamer_ir.nodes import Binary, Expr, Let, Load, Select, Stmt, Store, Var

COORDINATE_DTYPE = "int32"
"""The dtype of coordinates, to which the formats that sort them are limited, too."""

_SUMS, _TOTAL = "SUMS", "TOTAL"
_IS_NEW, _AT = Var("is_new", "bool"), index_var("at")


def declares_distinct_elements(source: RecordedStorage) -> bool:
    """Return whether the description of a source declares that no element is repeated."""
    layout = layout_sizes(source.description, source.sizes)
    return declared_order(source.description, layout, source.description.buffer.axes).are_distinct


def elements_in_order(
    recorder: Recorder, source: RecordedStorage, options: KernelOptions
) -> RecordedConversion:
    """Return the elements in lexicographic order; those with equal coordinates are in that of the source.

    Raises `NotDirectError`.
    """
    bucket_options = options._replace(index_dtype=None, requires_order=False)
    buckets = buckets_of_dimensions(len(source.shape))
    if not buckets:
        raise NotDirectError("there is no dimension besides that by which elements are sorted")
    in_buckets = build_storage(recorder, source, buckets[0], bucket_options)
    for bucket in buckets[1:]:
        after = build_storage(recorder, in_buckets.storage, bucket, bucket_options)
        in_buckets = after._replace(permutation=compose_value_indices(recorder, in_buckets, after))
    return in_buckets


def has_repeated_elements(
    recorder: Recorder, ordered: RecordedStorage, options: KernelOptions
) -> bool:
    """Return whether one of the elements in lexicographic order is repeated."""
    loop = _loop(recorder, ordered)
    order = observed_order(order_of_loop(loop, ordered), loop, options.machine)
    return not order.are_distinct


def with_sums(recorder: Recorder, ordered: RecordedStorage) -> RecordedStorage:
    """Return the list of elements in lexicographic order with the sums of those that are repeated."""
    loop, dtype = _loop(recorder, ordered), ordered.description.buffer.dtype
    ndim = len(ordered.shape)
    dtypes = {_coordinates(dimension): COORDINATE_DTYPE for dimension in range(ndim)} | {
        _SUMS: dtype
    }
    made = {
        name: recorder.compute(np.empty, ordered.value_count, array_dtype)
        for name, array_dtype in dtypes.items()
    }
    total = recorder.compute(np.zeros, 1, np.int64)
    arguments = {
        **loop.arguments.by_name,
        **{name: ArrayArgument(made[name], dtypes[name], (loop.size.expr,)) for name in made},
        "TOTALS": ArrayArgument(total, "int64", (ONE,)),
    }
    run_kernel(recorder, _add(loop, ndim, dtype), arguments)
    count = recorder.compute(first_of, total)
    used = {name: recorder.compute(without_end, array, count) for name, array in made.items()}
    arrays = {"data": used[_SUMS]}
    arrays |= {f"indices_{dimension}": used[_coordinates(dimension)] for dimension in range(ndim)}
    sizes = {f"n{dimension}": length for dimension, length in enumerate(ordered.shape)}
    described = coo(dtype, ndim=ndim)
    return RecordedStorage(described, sizes, arrays, count, are_new=True)


def _loop(recorder: Recorder, ordered: RecordedStorage) -> ElementLoop:
    arguments = SharedArguments(recorder)
    return element_loop(arguments, ordered, drops_zeros=False, in_storage_order=True)


def _add(loop: ElementLoop, ndim: int, dtype: str) -> list[Stmt]:
    """Return the kernel that lists an element, or adds it to the one before if that has its coordinates."""
    last = {f"LAST{dimension}": logical_var(dimension) for dimension in range(ndim)}
    differs: list[Expr] = [
        compare("ne", coordinate, load_local(name)) for name, coordinate in last.items()
    ]
    total = add(load_local(_TOTAL), select(_IS_NEW, ONE, ZERO))
    sums = Binary("add", Load(_SUMS, (_AT,), dtype), loop.value)
    body: list[Stmt] = [
        Let(_IS_NEW, reduce(logical_or, differs)),
        let(_AT.name, sub(total, ONE)),
        store_local(_TOTAL, add(_AT, ONE)),
        # Not the sum with 0, which would not be -0.0 for -0.0.
        Store(_SUMS, (_AT,), Select(_IS_NEW, loop.value, sums)),
    ]
    for dimension, (name, coordinate) in enumerate(last.items()):
        body += [
            store_local(name, coordinate),
            store(_coordinates(dimension), _AT, coordinate, COORDINATE_DTYPE),
        ]
    starts = [stmt for name in last for stmt in define_local(name, index(-1))]
    result = store("TOTALS", ZERO, load_local(_TOTAL))
    return [*starts, *define_local(_TOTAL, ZERO), *loop.around(body), result]


def _coordinates(dimension: int) -> str:
    """Return the name of the array of coordinates in a dimension."""
    return f"L{dimension}"
