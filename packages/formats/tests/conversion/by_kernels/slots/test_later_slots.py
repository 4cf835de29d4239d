"""Kernels fetch the lines in which later elements are stored."""

from __future__ import annotations

import pytest
from interpreted_kernel import InterpretedKernel
from scipy import sparse

from gossamer_formats import convert, from_scipy
from gossamer_formats.conversion.by_kernels.convert_by_kernels import convert_by_kernels
from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.by_kernels.slots.later_slots import min_elements
from gossamer_formats.conversion.destination.conversion_destination import conversion_destination
from gossamer_ir.nodes import Prefetch
from gossamer_ir.traversal.walk import collect
from gossamer_machine.machine import Machine


@pytest.mark.parametrize(
    ("source", "destination", "arrays"),
    [
        ("csr", "csc", {"T_indices", "T_data"}),
        ("csc", "csr", {"T_indices", "T_data"}),
        ("coo", "csc", {"T_indices", "T_data"}),
        # The elements of a block are stored together.
        ("bsr", "csc", set()),
        # Elements are appended.
        ("coo", "csr", set()),
    ],
)
def test_lines_of_scattered_elements_are_fetched(source, destination, arrays):
    assert fetched_arrays(source, destination, Machine(gathers="fast")) == arrays


def test_lines_of_few_elements_are_not_fetched():
    assert fetched_arrays("csr", "csc", Machine()) == set()


@pytest.mark.parametrize(
    ("machine", "least"),
    [
        (Machine(gathers="fast"), 0),
        (Machine(gathers="moderate", private_cache=1 << 20), 3 << 17),
        (Machine(gathers="slow", private_cache=1 << 21), 3 << 18),
    ],
)
def test_elements_are_many_by_the_caches_and_the_kind_of_the_machine(machine, least):
    assert min_elements(machine) == least


def fetched_arrays(source, destination, machine):
    """The arrays of which the last kernel of a conversion fetches lines."""
    matrix = sparse.random_array((40, 30), density=0.2, format="csr", rng=0)
    sizes = {"block_rows": 2, "block_columns": 2} if source == "bsr" else {}
    tensor = convert(from_scipy(matrix), source, **sizes).tensor
    modules = []

    def compile(module):
        modules.append(module)
        return InterpretedKernel(module)

    options = KernelOptions(False, index_dtype=None, wants_permutation=False, machine=machine)
    convert_by_kernels(
        tensor.storage, conversion_destination(destination, {}, ndim=2), compile, options
    )
    prefetches = collect(Prefetch, modules[-1].functions[0])
    return {hint.buffer for hint in prefetches}
