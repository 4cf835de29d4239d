"""New arrays in one block of memory, which is used again after all of them are freed."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from gossamer_formats.memory import new_arrays as module
from gossamer_formats.memory.new_arrays import MIN_BLOCK, ArrayKind, new_arrays, without_end

SIZE = MIN_BLOCK // 2
KINDS = (ArrayKind("int32", is_zero=False), ArrayKind("float64", is_zero=True))
WANTED = (KINDS, SIZE, SIZE)

needs_huge_pages = pytest.mark.skipif(
    not hasattr(mmap, "MADV_HUGEPAGE"), reason="the system has no huge pages"
)


@pytest.fixture
def no_blocks(monkeypatch):
    """No block is kept yet."""
    monkeypatch.setattr(module, "_kept", [])


@needs_huge_pages
@pytest.mark.usefixtures("no_blocks")
def test_a_block_is_used_again_after_its_last_array():
    first, second = new_arrays(*WANTED)
    assert first.size == second.size == SIZE
    assert first.ctypes.data % 64 == second.ctypes.data % 64 == 0
    at = first.ctypes.data
    first[:], second[:] = 7, 8.0
    del first
    others = new_arrays(*WANTED)
    assert others[0].ctypes.data != at
    del second
    first, second = new_arrays(*WANTED)
    assert first.ctypes.data == at
    assert not second.any()


@needs_huge_pages
@pytest.mark.usefixtures("no_blocks")
def test_the_block_that_was_freed_last_is_used_first():
    older, newer = new_arrays(*WANTED), new_arrays(*WANTED)
    at = newer[0].ctypes.data
    del older
    del newer
    assert new_arrays(*WANTED)[0].ctypes.data == at


@needs_huge_pages
@pytest.mark.usefixtures("no_blocks")
def test_few_blocks_are_kept(monkeypatch):
    monkeypatch.setattr(module, "MAX_KEPT", 3 * MIN_BLOCK * 6)
    made = [new_arrays(*WANTED) for _ in range(6)]
    del made
    assert 0 < len(module._kept) <= 3
    # Much smaller arrays do not take a large block.
    new_arrays((ArrayKind("uint8", is_zero=True),), MIN_BLOCK)
    assert 0 < len(module._kept) <= 3


def test_small_arrays_have_memory_of_their_own():
    first, second = new_arrays(
        (ArrayKind("int32", is_zero=True), ArrayKind("float32", is_zero=False)), 3, 0
    )
    assert first.tolist() == [0, 0, 0]
    assert second.size == 0
    assert first.base is None


@pytest.mark.parametrize("size", [10, MIN_BLOCK])
def test_the_end_of_an_array_is_given_back(size):
    array = new_arrays((ArrayKind("int64", is_zero=False),), size)[0]
    array[:4] = np.arange(4)
    assert without_end(array, 4).tolist() == [0, 1, 2, 3]
