"""CSR matrices of tests."""

import numpy as np

from gossamer_testkit import from_mask


def test_a_matrix_from_a_mask_has_no_zeros():
    matrix = from_mask("all", np.ones((20, 20), bool))
    assert (matrix.data != 0).all()
