"""Index tensors in compiled graphs, which reuse memory without telling torch."""

from __future__ import annotations

import torch

from gossamer_torch.kept_results import ResultKey

NUMBERS = ResultKey[list[int]]("the numbers in a list")


def entered(tensor):
    """Return an index tensor as it enters an operator in a compiled graph."""
    return torch.ops.gossamer.index_tensor(tensor)


def test_memory_that_a_compiled_graph_reuses_has_new_results():
    numbers = torch.tensor([1, 2])
    first = entered(numbers)
    assert NUMBERS.get([first], first.tolist) == [1, 2]
    numbers.numpy()[0] = 5
    second = entered(numbers)
    assert NUMBERS.get([second], second.tolist) == [5, 2]


def test_equal_contents_keep_their_results():
    numbers = torch.tensor([1, 2])
    first, second = entered(numbers), entered(numbers)
    result = NUMBERS.get([first], first.tolist)
    assert NUMBERS.get([second], second.tolist) is result
    again = entered(second)
    assert NUMBERS.get([again], again.tolist) is result


def test_a_copy_in_memory_that_is_reused_is_not_taken_for_its_original():
    copy = entered(torch.tensor([1, 2]))
    copy.numpy()[0] = 5
    assert entered(copy).tolist() == [5, 2]
