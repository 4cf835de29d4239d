"""Conversions in one step or in several: elements that are not in an order in which the target can be built
directly are sorted first, in CSR and CSC."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from gossamer_formats.checks.coordinate_order import without_order
from gossamer_formats.conversion.build_storage import assemble
from gossamer_formats.conversion.recording.branch import PlanValue
from gossamer_formats.conversion.recording.not_direct import NotDirectError
from gossamer_formats.conversion.recording.recorded_storage import (
    PlannedConversion,
    PlannedStorage,
)
from gossamer_formats.conversion.recording.recorder import Recorder
from gossamer_formats.conversion.target.conversion_target import ConversionTarget
from gossamer_formats.conversion.target.element_options import ElementOptions
from gossamer_formats.descriptions.coo import coo
from gossamer_formats.descriptions.csc import csc
from gossamer_formats.descriptions.csr import csr
from gossamer_formats.permutation import compose
from gossamer_formats.storage import shape_of

_CSR, _CSC = ConversionTarget(csr()), ConversionTarget(csc())
_BY_COLUMN = ConversionTarget(without_order(csc()))
"""CSC with the elements of a column in any order: CSR that is made from it is sorted."""


def plan_conversion(
    recorder: Recorder, source: PlannedStorage, target: ConversionTarget, options: ElementOptions
) -> PlannedConversion | None:
    """Return a storage in another format; None if this is left to NumPy: repeated elements, and whatever
    cannot be stored."""
    if options.drop_zeros:
        return _without_zeros(recorder, source, target, options)
    try:
        with recorder.attempt():
            return assemble(recorder, source, target, options)
    except NotDirectError as error:
        if not error.needs_order or len(source.shape) != 2:
            return None
    for steps in ((_CSR,), (_CSC,), (_BY_COLUMN, _CSR)):
        try:
            with recorder.attempt():
                return _in_steps(recorder, source, (*steps, target), options)
        except NotDirectError:
            continue
    return None


def _in_steps(
    recorder: Recorder,
    source: PlannedStorage,
    targets: Sequence[ConversionTarget],
    options: ElementOptions,
) -> PlannedConversion:
    """Return the storage after several conversions."""
    first, *others = targets
    step = options._replace(requires_order=first is not _BY_COLUMN)
    if not others:
        return assemble(recorder, source, first, step)
    found = assemble(recorder, source, first, step._replace(index_dtype=None))
    after = _in_steps(recorder, found.storage, others, options)
    return after._replace(permutation=_composed(recorder, found, after))


def _without_zeros(
    recorder: Recorder, source: PlannedStorage, target: ConversionTarget, options: ElementOptions
) -> PlannedConversion | None:
    """Return the storage without zeros. Unless one program can store it, the elements are collected first: so
    values are compared with zero once."""
    once = options._replace(in_one_program=True)
    try:
        with recorder.attempt():
            return assemble(recorder, source, target, once)
    except NotDirectError:
        pass
    found = _collected(recorder, source, once._replace(index_dtype=None))
    if found is None:
        return None
    after = plan_conversion(recorder, found.storage, target, options._replace(drop_zeros=False))
    if after is None:
        return None
    return after._replace(permutation=_composed(recorder, found, after))


def _collected(
    recorder: Recorder, source: PlannedStorage, options: ElementOptions
) -> PlannedConversion | None:
    """Return the elements whose value is not zero, sorted if this takes one program."""
    for compact in (_CSR, _collection(len(source.shape))):
        if len(source.shape) == len(shape_of(compact.description)):
            step = options._replace(requires_order=compact is _CSR)
            try:
                with recorder.attempt():
                    return assemble(recorder, source, compact, step)
            except NotDirectError:
                continue
    return None


@cache
def _collection(dimensions: int) -> ConversionTarget:
    """Return the coordinates of elements, in any order."""
    return ConversionTarget(without_order(coo(dimensions=dimensions)))


def _composed(
    recorder: Recorder, first: PlannedConversion, second: PlannedConversion
) -> PlanValue | None:
    """Return the positions in the source of the first of two conversions."""
    if first.permutation is None or second.permutation is None:
        return second.permutation
    return recorder.compute(compose, first.permutation, second.permutation)
