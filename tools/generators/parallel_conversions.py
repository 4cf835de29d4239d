"""The table of kernels of conversions with parallel loops in `docs/formats.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gossamer_formats import SparseTensor, format_named, format_names, from_arrays
from gossamer_formats.conversion.by_kernels.convert_by_kernels import convert_by_kernels
from gossamer_formats.conversion.by_kernels.kernel_options import KernelOptions
from gossamer_formats.conversion.destination.conversion_destination import conversion_destination
from gossamer_formats.description_sizes import shape_of
from gossamer_ir.analysis.axes.logical_elements import stores_only_elements
from gossamer_ir.interpret import run
from gossamer_ir.nodes import For, Module
from gossamer_ir.traversal.walk import every_stmt
from gossamer_ir.verify import verify
from gossamer_schedule.internal_api import parallel_outer_loops
from tools import ROOT, with_table

DOCUMENT = ROOT / "docs/formats.md"
HEADER = "| format | from CSR | to CSR |"
SIZES = {"n_m": {"group": 4, "slots": 4}, "v_n_m": {"rows": 2, "group": 4, "chosen": 4, "slots": 4}}
"""The sizes of formats that cannot store every matrix with those of their example."""


class _CountedKernel:
    """A kernel that the interpreter runs."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def run_trusted(self, *arguments: Any) -> None:
        names = [param.name for param in self._module.functions[0].params]
        run(self._module, dict(zip(names, arguments, strict=True)))


def files() -> dict[Path, str]:
    """Return the document with its table as it should be."""
    return {DOCUMENT: with_table(DOCUMENT.read_text(), header=HEADER, rows=_rows())}


def _rows() -> Iterator[str]:
    """Yield the row of each format of matrices."""
    csr = _matrix().asformat("csr")
    for name in format_names():
        described = format_named(name)
        if name == "csr" or len(shape_of(described.describe("float64"))) != 2:
            continue
        sizes: Mapping[str, Any] = SIZES.get(name, described.example_parameters)
        there = _parallel_kernels(csr, name, sizes)
        back = _parallel_kernels(csr.asformat(name, **sizes), "csr", {})
        yield f"| `{name}` | {there} | {back} |"


def _matrix() -> SparseTensor:
    """Return a matrix with enough elements in each column for parts of them."""
    rows, columns = np.nonzero(np.random.default_rng(0).random((20, 24)) < 0.5)
    values = np.arange(1.0, rows.size + 1)
    return from_arrays("coo", (20, 24), indices_0=rows, indices_1=columns, data=values)


def _parallel_kernels(tensor: SparseTensor, target: str, sizes: Mapping[str, int]) -> str:
    """Convert a matrix by kernels for several threads, and say how many of them have parallel loops."""
    are_parallel: list[bool] = []

    def count(module: Module) -> _CountedKernel:
        scheduled = parallel_outer_loops(verify(module))
        stmts = every_stmt(scheduled.functions[0])
        are_parallel.append(
            any(isinstance(each, For) and each.kind == "parallel" for each in stmts)
        )
        return _CountedKernel(scheduled)

    drops_zeros = not stores_only_elements(tensor.description)
    options = KernelOptions(drops_zeros, index_dtype=None, wants_permutation=False, threads=2)
    wanted = conversion_destination(target, sizes, ndim=2, order=None)
    convert_by_kernels(tensor.storage, wanted, count, options)
    return f"{sum(are_parallel)} of {len(are_parallel)}" if are_parallel else "no kernel"
