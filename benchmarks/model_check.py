"""The model of formats, rated by the times of a stored run: what it chooses now, and its errors.

A change of the model is tried on all stored runs in seconds, and before anything is measured again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from msgspec.structs import replace

from benchmarks.gossamer_operators import takes_vectors
from benchmarks.matrices import load_matrix
from benchmarks.parts.choice import CHOICE_FEATURES, ChoiceTime
from benchmarks.parts.processes.choice import CHOICE_CALLS
from benchmarks.text_tables import Sheet
from gossamer.operator_calls.prepared_formats.row_order import properties_for
from gossamer.targets.resolve_target import machine_for
from gossamer_formats import SparseTensor
from gossamer_machine.machine import Machine
from gossamer_tune import MatrixProperties, Workload, choose_format


def with_present_choices(times: Sequence[ChoiceTime], target: str) -> list[ChoiceTime]:
    """Return stored times with the present choice for a target, and the cycles that the model expects.

    A case without a time of the present choice is left out: the run says nothing about it. The matrices are
    those of the benchmark; `MissingMatrixError` names one that is not available.
    """
    machine = machine_for(target)
    rechosen = (_with_present_choice(one, machine) for one in times)
    return [one for one in rechosen if one.chosen in one.times_ms]


def _with_present_choice(one: ChoiceTime, machine: Machine) -> ChoiceTime:
    features = None if takes_vectors(one.op) else one.features
    workload = Workload(features, one.dtype, machine, one.threads)
    choice = choose_format(properties_of_named(one.matrix, machine), workload, calls=CHOICE_CALLS)
    expected = {estimate.text: estimate.cycles for estimate in choice.estimates}
    return replace(one, chosen=choice.chosen.text, expected_cycles=expected)


@cache
def properties_of_named(name: str, machine: Machine) -> MatrixProperties:
    """Return the properties of a matrix, with those of another order of the rows if any product may gain."""
    workloads = (Workload(features, machine=machine) for features in CHOICE_FEATURES)
    return properties_for(SparseTensor(load_matrix(name).csr), *workloads)


def model_errors_sheet(times: Sequence[ChoiceTime]) -> Sheet:
    """Return, for each format, the measured speedup over CSR in proportion to the expected one: its median
    over cases, and the deciles at both ends."""
    sheet = Sheet(
        "measured speedup over CSR / expected speedup",
        ("format", "op", "K", "cases", "lowest decile", "median", "highest decile"),
        words=2,
    )
    ratios: dict[tuple[str, str, str], list[float]] = {}
    for one in times:
        for name, ratio in _speedup_ratios(one):
            ratios.setdefault((name, one.op, str(one.features)), []).append(ratio)
    for case, case_ratios in sorted(ratios.items()):
        figures = (f"{value:.2f}" for value in np.quantile(case_ratios, (0.1, 0.5, 0.9)))
        sheet.rows.append((*case, str(len(case_ratios)), *figures))
    return sheet


def _speedup_ratios(one: ChoiceTime) -> Iterator[tuple[str, float]]:
    """Yield the formats with a time and an expectation, and the measured speedup over the expected one."""
    csr_ms, csr_cycles = one.times_ms["csr"], one.expected_cycles["csr"]
    for name, cycles in one.expected_cycles.items():
        if name in one.times_ms and name != "csr":
            yield name, (csr_ms / one.times_ms[name]) / (csr_cycles / cycles)
