"""`reindex`: accesses by the iterators of a block compute the same."""

from __future__ import annotations

import pytest

from gossamer_schedule import ScheduleBuilder
from gossamer_testkit import examples

OPTIONS = {
    "gathered rows": {"buffer": "B"},
    "gathered rows, transposed": {"buffer": "B", "order": ("vk", "vj")},
    "values by elements": {"buffer": "A"},
    "results, transposed": {"buffer": "C", "order": ("vk", "vi")},
}


@pytest.mark.parametrize("module", [examples.SPMM, examples.SPMM_POSITION])
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(("rows", "columns", "features"), [(0, 3, 2), (5, 4, 0), (7, 5, 3)])
def test_spmm_with_a_reindexed_buffer(require_spmm, module, name, rows, columns, features):
    builder = ScheduleBuilder(module).split("k", factors=(None, 2))
    builder.reindex("csrmm", **OPTIONS[name])
    require_spmm(builder.module, features, rows=rows, columns=columns)
