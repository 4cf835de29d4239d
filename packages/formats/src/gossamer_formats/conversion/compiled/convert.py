"""Converts large storages by compiled programs."""

from __future__ import annotations

from functools import cache

from gossamer_formats.checks.coordinate_order import without_order
from gossamer_formats.conversion.compiled.assemble import Options, assemble_compiled
from gossamer_formats.conversion.compiled.assembly_state import NotDirectError
from gossamer_formats.conversion.compiled.program import Compile
from gossamer_formats.conversion.conversion_target import ConversionTarget
from gossamer_formats.conversion.converted_storage import ConvertedStorage
from gossamer_formats.descriptions.coo import coo
from gossamer_formats.descriptions.csc import csc
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.memory.ownership import adopt_array, is_owned
from gossamer_formats.permutation import compose
from gossamer_formats.storage import Array, Storage, shape_of


def convert_compiled(
    source: Storage, target: ConversionTarget, compile: Compile, options: Options
) -> ConvertedStorage | None:
    """Return a storage in another format; None if this is left to NumPy.

    Elements that are not in an order in which the target can be built directly are sorted first: they are
    stored in CSR and CSC. Repeated elements, and whatever cannot be stored, are left to NumPy.
    """
    if options.drop_zeros:
        return _without_zeros(source, target, compile, options)
    try:
        return assemble_compiled(source, target, compile, options)
    except NotDirectError as error:
        if not error.needs_order or len(source.shape) != 2:
            return None
    for steps in ((_CSR,), (_CSC,), (_BY_COLUMN, _CSR)):
        try:
            return _in_steps(source, (*steps, target), compile, options)
        except NotDirectError:
            continue
    return None


def _without_zeros(
    source: Storage, target: ConversionTarget, compile: Compile, options: Options
) -> ConvertedStorage | None:
    """Return the storage without zeros. Unless one program can store it, the elements are collected first: so
    values are compared with zero once."""
    once = options._replace(in_one_program=True)
    try:
        return assemble_compiled(source, target, compile, once)
    except NotDirectError:
        pass
    collected = None
    for compact in (_CSR, _collection(len(source.shape))):
        if len(source.shape) == len(shape_of(compact.description)):
            step = once._replace(index_dtype=None, requires_order=compact is _CSR)
            try:
                collected = assemble_compiled(source, compact, compile, step)
                break
            except NotDirectError:
                continue
    if collected is None:
        return None
    found = convert_compiled(
        _with_owned_arrays(collected.storage), target, compile, options._replace(drop_zeros=False)
    )
    if found is None:
        return None
    return found._replace(permutation=_composed(collected.permutation, found.permutation))


@cache
def _collection(dimensions: int) -> ConversionTarget:
    """Return the coordinates of elements, in any order."""
    return ConversionTarget(without_order(coo(dimensions=dimensions)))


_CSR, _CSC = ConversionTarget(csr()), ConversionTarget(csc())
_BY_COLUMN = ConversionTarget(without_order(csc()))
"""CSC with the elements of a column in any order: CSR that is made from it is sorted."""


def _in_steps(
    source: Storage, targets: tuple[ConversionTarget, ...], compile: Compile, options: Options
) -> ConvertedStorage:
    """Return the storage after several conversions."""
    permutation: Array | None = None
    storage = source
    for target in targets:
        step = options._replace(
            requires_order=target is not _BY_COLUMN,
            index_dtype=options.index_dtype if target is targets[-1] else None,
        )
        storage, found = assemble_compiled(_with_owned_arrays(storage), target, compile, step)
        permutation = _composed(permutation, found)
    return ConvertedStorage(storage, permutation)


def _composed(first: Array | None, second: Array | None) -> Array | None:
    """Return the positions in the source of the first of two conversions, of which the first may be none."""
    if first is None or second is None:
        return second
    return compose(first, second)


def _with_owned_arrays(storage: Storage) -> Storage:
    """Return a storage of which others may share the arrays."""
    arrays = {
        handle: array if is_owned(array) else adopt_array(array)
        for handle, array in storage.arrays.items()
    }
    return storage._replace(arrays=arrays)
