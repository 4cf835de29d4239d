"""Memory that is used again: by the same stream only, and never before its block is collected."""

import pytest

from gossamer_cuda_mma_sp.device.memory_pool import MemoryPool


class Driver:
    """Counts what is allocated, freed and waited for."""

    def __init__(self, *, is_emulated=False):
        self.is_emulated = is_emulated
        self.allocated, self.freed, self.waits = [], [], []

    def allocate(self, size):
        self.allocated.append(size)
        return 1 << 20 | len(self.allocated)

    def free(self, address):
        self.freed.append(address)

    def wait(self, stream):
        self.waits.append(stream)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, 512), (1, 512), (512, 512), (513, 1024), (2 << 20, 2 << 20), ((2 << 20) + 1, 4 << 20)],
)
def test_sizes_are_rounded_up(size, expected):
    driver = Driver()
    block = MemoryPool(driver).take(size, stream=0)
    assert driver.allocated == [block.size] == [expected]


def test_a_stream_uses_memory_again_once_its_block_is_collected():
    driver = Driver()
    pool = MemoryPool(driver)
    first, second = pool.take(100, stream=7), pool.take(100, stream=7)
    assert first.address != second.address
    address = first.address
    del first
    assert pool.take(400, stream=7).address == address
    assert (len(driver.allocated), driver.freed) == (2, [])


def test_other_streams_and_other_sizes_get_other_memory():
    driver = Driver()
    pool = MemoryPool(driver)
    address = pool.take(100, stream=7).address
    others = [pool.take(100, stream=8), pool.take(600, stream=7)]
    assert address not in {block.address for block in others}


def test_unused_memory_is_freed_when_all_work_is_done():
    driver = Driver()
    pool = MemoryPool(driver)
    used, unused = pool.take(100, stream=0), pool.take(100, stream=1).address
    pool.release()
    assert (driver.freed, driver.waits) == ([unused], [None])
    assert pool.take(100, stream=1).address not in (unused, used.address)


def test_an_emulated_device_has_new_memory_of_the_exact_size():
    driver = Driver(is_emulated=True)
    pool = MemoryPool(driver)
    address = pool.take(100, stream=0).address
    assert (driver.allocated, driver.freed) == ([100], [address])
    assert pool.take(100, stream=0).address != address


@pytest.mark.parametrize(("stream", "waits"), [(7, []), (8, [None])])
def test_memory_that_other_streams_used_is_used_again_when_their_work_is_done(stream, waits):
    driver = Driver()
    pool = MemoryPool(driver)
    block = pool.take(100, stream=7)
    block.use_on(stream)
    address = block.address
    del block
    assert driver.waits == []
    assert pool.take(100, stream=7).address == address
    assert driver.waits == waits
