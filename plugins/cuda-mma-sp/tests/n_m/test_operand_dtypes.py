"""The dtypes of operands have the patterns of the language."""

from __future__ import annotations

import pytest

from gossamer_cuda_mma_sp.n_m.operand_dtypes import OPERAND_DTYPES
from gossamer_ir.core.dtypes import SUM_DTYPES
from gossamer_machine.intrinsics.n_m_operands import SPECIAL_OPERANDS, n_m_operands


@pytest.mark.parametrize(
    "name", [*SPECIAL_OPERANDS, *(name for name in SUM_DTYPES if name in OPERAND_DTYPES)]
)
def test_patterns_and_limits_are_those_of_programs(name):
    operand, read = OPERAND_DTYPES[name], n_m_operands(name)
    pattern = operand.pattern
    assert (pattern.name, pattern.slots, pattern.units) == (read.pattern, read.slots, read.units)
    assert (pattern.unit_columns, operand.limits) == (read.unit_columns, read.limits)
