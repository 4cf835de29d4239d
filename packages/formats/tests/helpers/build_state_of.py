"""The state of a conversion before its first axis is built, with kernels that the interpreter runs."""

from __future__ import annotations

from typing import Any

from interpreted_kernel import InterpretedKernel

from gossamer_formats.conversion.by_kernels.build_state.build_state import (
    BuildState,
    CompressedAxis,
    Requirements,
)
from gossamer_formats.conversion.by_kernels.coordinates.element_coordinates import with_coordinates
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SharedArguments
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import recorded_source
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.conversion.by_kernels.source.element_loop import element_loop
from gossamer_formats.conversion.by_kernels.source.element_order import order_of_loop
from gossamer_formats.conversion.by_kernels.source.observed_order import observed_order
from gossamer_formats.conversion.destination.conversion_destination import conversion_destination
from gossamer_formats.conversion.destination.known_sizes import KnownSizes
from gossamer_formats.description_sizes import shape_of
from gossamer_formats.storage import Storage
from gossamer_ir.core.axis_kinds import indices_of, indptr_of
from gossamer_machine.machine import Machine


def build_state_of(
    source: Storage, destination: Any, *, needs_one_kernel: bool = False, **parameters: int
) -> BuildState:
    """Returns the axes of a destination, of which none is built, with the coordinates of elements."""
    recorder = Recorder(InterpretedKernel, list(source.arrays.values()))
    recorded = recorded_source(recorder, source)
    wanted = conversion_destination(destination, parameters, ndim=len(recorded.shape))
    sizes = KnownSizes(wanted.description, wanted.sizes)
    for expr, size in zip(shape_of(wanted.description), recorded.shape, strict=True):
        sizes.bind(expr, size)
    loop = element_loop(SharedArguments(recorder), recorded, drops_zeros=False)
    requirements = Requirements(
        requires_order=True, needs_one_kernel=needs_one_kernel, threads=1, machine=Machine()
    )
    order = order_of_loop(loop, recorded)
    if not order.are_distinct:
        order = observed_order(order, loop, Machine())
    return with_coordinates(BuildState(recorded, loop, order, wanted, requirements, sizes))


def compressed(state: BuildState, name: str) -> CompressedAxis:
    """Returns an axis that stores coordinates, with its parent in the axes that are built."""
    axis = state.by_name[name]
    indices = indices_of(axis)
    assert indices is not None
    return CompressedAxis(axis, indptr_of(axis), indices, state.axis_slots[axis.parent])


def value_of(state: BuildState, recorded: Any) -> Any:
    """Returns the array or number of a recorded value."""
    return recorded if isinstance(recorded, int) else state.recorder.value(recorded)
