"""Groups of products: threads wait for the oldest ones."""

import numpy as np

from gossamer_cuda_mma_sp.interpreter.async_products import AsyncProducts

LANES = np.arange(4)
BYTES = np.arange(8)


class Uses:
    """Registers and memory, of which products say what they use."""

    def __init__(self):
        self.log = []

    def release(self, registers, lanes):
        self.log.append(("release", registers, lanes.tolist()))

    def hold(self, registers, sums, lanes):
        self.log.append(("hold", registers, lanes.tolist()))

    def end_async_read(self, at):
        self.log.append(("end", at.tolist()))


def test_the_last_groups_remain():
    products, uses = AsyncProducts(4), Uses()
    for register in ("d", "e"):
        products.begin(LANES, (register,), (register,), BYTES)
        products.commit(LANES)
    products.wait(LANES, 1, uses, uses)
    assert ("release", ("d",), [0, 1, 2, 3]) in uses.log
    assert ("hold", ("e",), [0, 1, 2, 3]) in uses.log
    assert not products.is_idle
    products.wait(LANES, 0, uses, uses)
    assert products.is_idle


def test_memory_is_read_until_all_threads_have_waited():
    products, uses = AsyncProducts(4), Uses()
    products.begin(LANES, ("d",), ("d",), BYTES)
    products.commit(LANES)
    products.wait(LANES[:2], 0, uses, uses)
    assert ("end", BYTES.tolist()) not in uses.log
    assert ("hold", ("d",), [2, 3]) in uses.log
    products.wait(LANES[2:], 0, uses, uses)
    assert ("end", BYTES.tolist()) in uses.log


def test_a_product_without_a_group_is_never_complete():
    products, uses = AsyncProducts(4), Uses()
    products.begin(LANES, ("d",), ("d",), BYTES)
    products.wait(LANES, 0, uses, uses)
    assert not products.is_idle
