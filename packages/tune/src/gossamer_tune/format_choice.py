"""The choice of the format in which a matrix is multiplied fastest, with its conversion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gossamer_support.typed_calls import typed
from gossamer_tune.cost_models import estimates_of
from gossamer_tune.model.estimate import Estimate
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

MIN_GAIN = 1.05
"""Expected speedup over CSR from which another format is chosen: the model is not more exact than that.
(Measured in 176 cases on Emerald Rapids: chosen formats take 1.1 percent longer than the fastest ones on
average, 1.2 percent with 1.07, 1.7 percent with 1.1.)"""


class FormatChoice(NamedTuple):
    """The chosen format for a number of calls, and the estimates for all formats, the fastest call first.
    `seconds` has the measured time of a call by the text of an estimate, for those that were measured.

    >>> fast, slow = Estimate("bsr", {}, 10.0, 300.0, "full blocks"), Estimate("csr", {}, 40.0, 0.0, "rows")
    >>> choice = FormatChoice(fast, (fast, slow), calls=100)
    >>> choice.speedup, choice.paying_calls
    (4.0, 11)
    >>> print(choice)
    bsr, expected to be 4 times as fast as csr, and to pay from 11 calls on
      bsr: 10 cycles a call, 300 for the conversion; full blocks
      csr: 40 cycles a call; rows
    """

    chosen: Estimate
    estimates: tuple[Estimate, ...]
    calls: int
    seconds: Mapping[str, float] = {}

    @property
    def csr(self) -> Estimate:
        """The estimate for CSR."""
        return next(estimate for estimate in self.estimates if estimate.format == "csr")

    @property
    def speedup(self) -> float:
        """The expected speedup of a call over CSR, without the conversion."""
        return self.csr.cycles / self.chosen.cycles if self.chosen.cycles else 1.0

    @property
    def paying_calls(self) -> int | None:
        """The number of calls from which the conversion to the chosen format is expected to pay; None for
        CSR."""
        gain = self.csr.cycles - self.chosen.cycles
        return None if gain <= 0 else int(self.chosen.conversion_cycles / gain) + 1

    def __str__(self) -> str:
        chosen = f"{self.chosen.text}, expected to be {self.speedup:.3g} times as fast as csr"
        if self.paying_calls is not None:
            chosen += f", and to pay from {self.paying_calls:,} calls on"
        return "\n".join([chosen, *map(self._line, self.estimates)])

    def _line(self, estimate: Estimate) -> str:
        costs = f"{estimate.cycles:.3g} cycles a call"
        if estimate.conversion_cycles:
            costs += f", {estimate.conversion_cycles:.3g} for the conversion"
        if estimate.text in self.seconds:
            costs += f", measured {self.seconds[estimate.text] * 1e3:.3g} ms"
        return f"  {estimate.text}: {costs}; {estimate.reason}"


@typed
def choose_format(
    matrix: MatrixProperties, workload: Workload, *, calls: int, adds_zeros: bool = True
) -> FormatChoice:
    """Return the format with the least expected time of its conversion and this many calls.

    Unless it `adds_zeros`, the format has no slots filled up with zeros, so that results are the same for
    infinite operands.

    >>> from scipy.sparse import block_diag
    >>> import numpy as np
    >>> from gossamer_tune import Workload, properties_of
    >>> blocks = block_diag([np.ones((4, 4))] * 100, format="csr")
    >>> matrix = properties_of(blocks.shape, blocks.indptr, blocks.indices)
    >>> choose_format(matrix, Workload(features=64), calls=10_000).chosen.text
    'bsr (block_rows=4, block_columns=4)'
    >>> choose_format(matrix, Workload(features=64), calls=1).chosen.text
    'csr'
    """
    estimates = estimates_of(matrix, workload)
    allowed = [estimate for estimate in estimates if adds_zeros or not estimate.adds_zeros]
    # With the conversion, which few calls do not pay back.
    best = min(allowed, key=lambda estimate: estimate.total(calls))
    csr = next(estimate for estimate in estimates if estimate.format == "csr")
    chosen = best if best.total(calls) * MIN_GAIN <= csr.total(calls) else csr
    return FormatChoice(
        chosen, tuple(sorted(estimates, key=lambda estimate: estimate.cycles)), calls
    )


@typed
def measure_formats(
    choice: FormatChoice, seconds_of: Callable[[Estimate], float], *, most: int = 4
) -> FormatChoice:
    """Return the choice by the measured times of CSR and of the formats that are expected to be fastest.

    `seconds_of` converts the matrix and returns the seconds of a call. At most this many formats are measured
    besides CSR. Conversions count as the model expects, in proportion to the measured time of CSR.

    >>> fast, slow = Estimate("bsr", {}, 9.0, 0.0, ""), Estimate("csr", {}, 10.0, 0.0, "")
    >>> choice = FormatChoice(fast, (fast, slow), 100)
    >>> measure_formats(choice, lambda estimate: {"bsr": 3.0, "csr": 2.0}[estimate.format]).chosen.format
    'csr'
    """
    candidates = [estimate for estimate in choice.estimates if estimate.format != "csr"][:most]
    seconds = {estimate.text: seconds_of(estimate) for estimate in (choice.csr, *candidates)}
    per_cycle = seconds[choice.csr.text] / max(choice.csr.cycles, 1.0)

    def total(estimate: Estimate) -> float:
        return estimate.conversion_cycles * per_cycle + choice.calls * seconds[estimate.text]

    best = min((choice.csr, *candidates), key=total)
    return choice._replace(chosen=best, seconds=seconds)
