"""Arrays that cannot be written to."""

from __future__ import annotations

import numpy as np

from gossamer_formats.memory import ownership as module
from gossamer_formats.memory.ownership import adopt_array, is_owned, owned_array


def test_views_that_no_longer_live_are_forgotten():
    kept = [adopt_array(np.arange(3)) for _ in range(10)]
    for _ in range(5000):
        adopt_array(np.arange(3))
    assert all(map(is_owned, kept))
    assert len(module._views) <= module._max_views < 5000


def test_many_views_may_live():
    kept = [adopt_array(np.arange(3)) for _ in range(3000)]
    assert all(map(is_owned, kept))


def test_a_part_or_a_view_of_the_same_form_is_not_owned():
    owned = adopt_array(np.arange(3))
    assert not is_owned(owned[1:])
    assert not is_owned(np.asarray(np.arange(3).data.toreadonly()))
    assert owned_array(owned) is owned
