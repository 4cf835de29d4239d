"""The form in which a product with an N:M matrix is computed: by the kernel, by a library, or in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from gossamer.targets.parse_target import DEFAULT_TARGET, is_default_target
from gossamer.targets.resolve_target import machine_for
from gossamer_formats.internal_api import VALUE_DTYPES
from gossamer_heuristics.n_m_tiles import ProductSizes
from gossamer_ir.interchange.records import Decision, Target
from gossamer_machine import Machine
from gossamer_machine.intrinsics.n_m_operands import n_m_operands
from gossamer_tune.internal_api import FormChoice, choose_cpu_form, choose_grid_form


def decide_form(dtype: str, sizes: Mapping[str, int], target: str | Target) -> Decision | None:
    """Return how the product of a tensor is computed for a target."""
    groups, rows, features = (sizes.get(name) for name in ("groups", "m", "feat_size"))
    columns = None if groups is None else n_m_operands(dtype).group * groups
    machine = machine_for(target)
    if machine.grid is not None:
        all_sizes = None
        if rows is not None and columns is not None and features is not None:
            all_sizes = ProductSizes(rows, columns, features)
        return choose_form_on_grid(dtype, all_sizes, machine=machine).decision
    if not is_default_target(target):
        return None
    return choose_cpu_form(
        dtype, columns=columns, features=features, is_tensor=True, machine=machine
    ).decision


@lru_cache(maxsize=256)
def choose_form_here(dtype: str, columns: int, features: int, *, is_tensor: bool) -> FormChoice:
    """Return the form for the CPU of this machine."""
    machine = machine_for(DEFAULT_TARGET)
    return choose_cpu_form(
        dtype, columns=columns, features=features, is_tensor=is_tensor, machine=machine
    )


def choose_form_on_grid(dtype: str, sizes: ProductSizes | None, *, machine: Machine) -> FormChoice:
    """Return the form for a tensor on a machine with grids of threads."""
    return choose_grid_form(
        dtype, sizes, is_tensor=True, machine=machine, block_dtypes=VALUE_DTYPES
    )
