"""The cost of a load of one element of a dense vector, by the cache that holds the vector."""

from __future__ import annotations

from gossamer_tune.model.operand_loads import mean_over_levels
from gossamer_tune.model.per_cpu import PerCpu
from gossamer_tune.model.workload import Workload
from gossamer_tune.properties.matrix_properties import MatrixProperties

LATE_CYCLES = PerCpu((0.0, 0.78, 3.1, 8.0), (0.0, 0.19, 0.82, 8.0))
"""Cycles that a load takes longer than one from the first-level cache while others are under way, if the
vector is in the first, the second or the third level (fitted to graphs and meshes in CSR and in SELL, in both
precisions, on Emerald Rapids) or in memory (in the proportion of `LOAD_CYCLES`)."""


def late_cycles(matrix: MatrixProperties, workload: Workload) -> float:
    """Return the mean cycles by which elements of the vector are late, in the order of the rows of a matrix.

    Elements that a neighboring row has used are still in the first-level cache; others are anywhere in the
    vector.

    >>> from gossamer_tune.properties.matrix_properties import GroupedColumns, RowLengths
    >>> lengths, groups = RowLengths(2.0, 0.0, 2, 0), GroupedColumns(1.0, 16.0)
    >>> matrix = MatrixProperties(8, 1 << 18, 16, lengths, {}, 0.5, groups, groups, {8: 1.0}, {})
    >>> late_cycles(matrix._replace(columns=1000), Workload())
    0.0
    >>> near = matrix._replace(groups=groups._replace(fresh=0.1))
    >>> round(late_cycles(matrix, Workload()) / late_cycles(near, Workload()), 3)
    10.0
    """
    size = matrix.columns * workload.element_bytes
    return matrix.groups.fresh * mean_over_levels(
        LATE_CYCLES.on(workload.machine), size, workload.machine
    )
