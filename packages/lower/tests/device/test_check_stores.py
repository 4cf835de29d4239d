"""Stores of several threads to one element, which are refused."""

import pytest

from gossamer_ir.errors import UnsupportedError
from gossamer_lower import check_stores, split_host_device


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (
            ('for t in T.thread_binding(4, thread="threadIdx.x"):', "    Y[0] = X[t]"),
            "lower.check_stores.reduction",
        ),
        (
            (
                'for t in T.thread_binding(4, thread="threadIdx.x"):',
                '    S = T.alloc_buffer((1,), "float32", scope="shared")',
                "    S[0] = X[t]",
                "    Y[t] = S[0]",
            ),
            "lower.check_stores.shared",
        ),
        (
            (
                'for t in T.thread_binding(4, thread="threadIdx.x"):',
                "    if t < 3:",
                '        S = T.alloc_buffer((1,), "float32", scope="shared")',
                "        S[0] = X[t]",
                "        Y[t] = S[0]",
            ),
            "lower.check_stores.shared",
        ),
    ],
)
def test_stores_of_several_threads_to_one_element_are_refused(lines, code, flat):
    split = split_host_device(flat(*lines))
    with pytest.raises(UnsupportedError) as caught:
        check_stores(split)
    assert caught.value.code == code


def test_a_kernel_whose_threads_store_to_elements_of_their_own_is_unchanged(flat):
    lines = ('for t in T.thread_binding(4, thread="threadIdx.x"):', "    Y[t] = X[0]")
    split = split_host_device(flat(*lines))
    assert check_stores(split) == split
