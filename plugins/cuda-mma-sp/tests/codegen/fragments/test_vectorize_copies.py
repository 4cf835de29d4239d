"""Copies of consecutive elements in pipelined loops are vectors, across rows of slots, too."""

import re

import pytest
from warpgroup_programs import PIPELINED, compiled, ptx_of

COPY = "X[t // 2, t % 2 * 8 + v] = A[t // 2, k * 8 + t % 2 * 4 + v // 2, v % 2]"


def sizes_of_copies(text):
    """The bytes of the asynchronous copies."""
    assert COPY in PIPELINED
    copies = re.findall(
        r"cp\.async\.c[ag]\.shared\.global \[.*?\], \[.*?\], (\d+)", ptx_of(compiled(text))
    )
    return set(map(int, copies))


def test_slots_of_consecutive_groups_are_copied_together():
    assert sizes_of_copies(PIPELINED.replace("STAGES", "4")) == {16}


@pytest.mark.parametrize(
    "other",
    [
        # Every other element; a row of four slots; an unaligned tile; a loop that does not go along a row.
        COPY.replace("v // 2, v % 2", "v, v % 2"),
        COPY.replace("v // 2, v % 2", "v // 4, v % 2"),
        COPY.replace("t % 2 * 8 + v", "(t % 2 * 8 + v + 1) % 16"),
        COPY.replace("k * 8 + t % 2 * 4 + v // 2, v % 2", "k * 8 + t % 2 * 4 + v // 2, 0"),
    ],
)
def test_other_copies_are_of_single_elements(other):
    assert sizes_of_copies(PIPELINED.replace("STAGES", "4").replace(COPY, other)) == set()


def test_copies_outside_of_pipelined_loops_stay_as_they_are():
    plain = PIPELINED.replace(', annotations={"pipeline": STAGES}', "")
    assert sizes_of_copies(plain) == set()
