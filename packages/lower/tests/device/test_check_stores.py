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
        (
            (
                'for t in T.thread_binding(4, thread="threadIdx.x"):',
                "    if t < 3:",
                "        Y[0] = X[t]",
            ),
            "lower.check_stores.condition",
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


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("t >= 2", "0"),
        ("t != 3", "0"),
        ("X[t] > 0.0", "0"),
        ("t % 2 == 0", "0"),
        ("t == u", "0"),
        ("t + u == 1", "0"),
        ("t == i", "0"),
    ],
)
def test_conditions_that_may_select_several_threads_are_refused(condition, index, flat):
    with pytest.raises(UnsupportedError) as caught:
        check_stores(split_host_device(stores_under(condition, index, flat)))
    assert caught.value.code == "lower.check_stores.condition"


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("t == 2 and u == 0", "0"),
        ("t >= 3 and u < 1", "0"),
        ("t + u == 0", "0"),
        ("t == n and u == 1", "0"),
        ("t * 2 == 6 and u == 0", "0"),
        ("t == u", "u"),
        ("t == i", "i + u * 8"),
    ],
)
def test_conditions_that_select_one_thread_are_accepted(condition, index, flat):
    split = split_host_device(stores_under(condition, index, flat))
    assert check_stores(split) == split


def stores_under(condition, index, flat):
    return flat(
        'for t in T.thread_binding(4, thread="threadIdx.x"):',
        '    for u in T.thread_binding(2, thread="threadIdx.y"):',
        "        for i in T.serial(8):",
        f"            if {condition}:",
        f"                Y[{index}] = X[t]",
    )
