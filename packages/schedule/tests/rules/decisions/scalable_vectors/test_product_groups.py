"""Groups of the elements of a row whose dot products share the row."""

from __future__ import annotations

import pytest

from gossamer_ir.interchange.records import Stats
from gossamer_machine import Machine
from gossamer_schedule.rules.decisions.scalable_vectors.product_groups import GROUPS, product_groups


def rows_of(length):
    return Stats(rows=10, columns=100, nnz=10 * length, longest_row=length, empty_rows=0)


@pytest.mark.parametrize(
    ("registers", "stats", "groups"),
    [
        (32, None, GROUPS),
        (16, None, (8, 4, 2)),
        (32, rows_of(7), (4, 2)),
        (32, rows_of(8), (8, 4, 2)),
        (32, rows_of(1), ()),
    ],
)
def test_groups_fit_registers_and_rows(registers, stats, groups):
    machine = Machine(min_vector_bits=128, is_scalable=True, vector_registers=registers)
    assert product_groups(machine, stats) == groups
