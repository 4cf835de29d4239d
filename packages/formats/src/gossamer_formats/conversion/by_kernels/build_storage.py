"""Builds the storage of a tensor in another format by kernels that loop over its elements.

The axes of the destination are built from the outermost to the innermost, as by NumPy. A kernel of its own
finds properties of all elements that an axis needs (how many a fiber has, which coordinates occur); the last
kernel stores indices and values. The statements of an axis bind `t_AXIS`, the element's slot, and
the kernels of the axes after it repeat them.

The queries are those of Chou, Kjolstad and Amarasinghe, "Automatic generation of efficient sparse tensor
format conversion routines" (PLDI 2020).
"""

from __future__ import annotations

from gossamer_formats.axis_order import require_nested_axes
from gossamer_formats.conversion.by_kernels.axes.compressed_axes import add_compressed
from gossamer_formats.conversion.by_kernels.axes.dense_axes import add_dense_varied, add_fixed
from gossamer_formats.conversion.by_kernels.axes.slot_axes import add_slots
from gossamer_formats.conversion.by_kernels.build_state.axis_queries import (
    coordinate_along,
    length_of_axis,
)
from gossamer_formats.conversion.by_kernels.build_state.build_state import (
    AxisResult,
    BuildState,
    CompressedAxis,
    Requirements,
    with_axis,
    with_bindings,
)
from gossamer_formats.conversion.by_kernels.build_state.element_bindings import (
    AxisCoordinate,
    ElementBindings,
)
from gossamer_formats.conversion.by_kernels.coordinates.element_coordinates import with_coordinates
from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.by_kernels.kernels.shared_arguments import SharedArguments
from gossamer_formats.conversion.by_kernels.recording.conversion_errors import UnsortedFibersError
from gossamer_formats.conversion.by_kernels.recording.recorded_storage import (
    RecordedConversion,
    RecordedStorage,
)
from gossamer_formats.conversion.by_kernels.recording.recorder import Recorder
from gossamer_formats.conversion.by_kernels.results.last_kernel import run_last_kernel
from gossamer_formats.conversion.by_kernels.source.element_loop import ElementLoop, element_loop
from gossamer_formats.conversion.by_kernels.source.element_order import (
    ElementOrder,
    declared_order,
    is_unordered_list,
    needs_order,
    order_of_loop,
)
from gossamer_formats.conversion.by_kernels.source.loop_order import layout_sizes
from gossamer_formats.conversion.by_kernels.source.observed_order import observed_order
from gossamer_formats.conversion.by_kernels.source.sorted_slots import sorted_slots
from gossamer_formats.conversion.destination.conversion_destination import Destination
from gossamer_formats.conversion.destination.known_sizes import KnownSizes
from gossamer_formats.description_sizes import shape_of
from gossamer_ir.core.axis_kinds import Indices, Indptr, indices_of, indptr_of
from gossamer_ir.core.build import ZERO, integer_value
from gossamer_ir.nodes import Axis


def build_storage(
    recorder: Recorder, source: RecordedStorage, destination: Destination, options: KernelOptions
) -> RecordedConversion:
    """Return the storage.

    Raises `NotDirectError` if it cannot be built from the elements in their order.
    """
    description = source.description
    layout = layout_sizes(description, source.sizes)
    are_distinct = declared_order(description, layout, description.buffer.axes).are_distinct
    loop = element_loop(
        SharedArguments(recorder),
        source,
        drops_zeros=options.drops_zeros,
        in_storage_order=are_distinct and is_unordered_list(destination.description),
    )
    order = order_of_loop(loop, source)
    if options.requires_order and not order.are_distinct:
        order = observed_order(order, loop, options.machine)
    try:
        with recorder.attempt():
            return _built_storage(source, destination, options, loop=loop, order=order)
    except UnsortedFibersError:
        slots = sorted_slots(recorder, source)
    # New arguments: those of the first attempt are of other loops.
    arguments = SharedArguments(recorder)
    loop = element_loop(arguments, source, drops_zeros=options.drops_zeros, sorted_slots=slots)
    order = order_of_loop(loop, source, are_sorted=True)
    return _built_storage(source, destination, options, loop=loop, order=order)


def _built_storage(
    source: RecordedStorage,
    destination: Destination,
    options: KernelOptions,
    *,
    loop: ElementLoop,
    order: ElementOrder,
) -> RecordedConversion:
    description = destination.description
    require_nested_axes(description)
    # Distinct elements may be stored in their order if the destination has any.
    needs = options.requires_order and (not order.are_distinct or needs_order(description))
    requirements = Requirements(
        requires_order=needs,
        needs_one_kernel=options.needs_one_kernel,
        threads=options.threads,
        machine=options.machine,
    )
    sizes = KnownSizes(description, destination.sizes)
    for expr, size in zip(shape_of(description), source.shape, strict=True):
        sizes.bind(expr, size)
    axes = with_coordinates(BuildState(source, loop, order, destination, requirements, sizes))
    for name in description.buffer.axes:
        axes = _with_next_axis(axes, axes.by_name[name])
    return run_last_kernel(axes, options)


def _with_next_axis(state: BuildState, axis: Axis) -> BuildState:
    """Return the axes with the next one in the order of the buffer."""
    indptr, indices = indptr_of(axis), indices_of(axis)
    if axis.name not in state.elements.coordinates and indices is None:
        if integer_value(axis.length) != 1 or indptr is not None:
            return with_axis(state, axis, add_slots(state, axis, indptr))
        state = with_bindings(state, ElementBindings({axis.name: AxisCoordinate(ZERO)}))
    return with_axis(state, axis, _axis_result(state, axis, indptr, indices))


def _axis_result(
    state: BuildState, axis: Axis, indptr: Indptr | None, indices: Indices | None
) -> AxisResult:
    parent = state.axis_slots[axis.parent]
    if indices is not None:
        return add_compressed(state, CompressedAxis(axis, indptr, indices, parent))
    if indptr is not None:
        return add_dense_varied(state, axis, indptr=indptr, parent=parent)
    position = coordinate_along(state, axis.name)
    return add_fixed(state, axis, position=position, width=length_of_axis(state, axis))
