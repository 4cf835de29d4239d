"""Index tensors in compiled graphs.

Results made from the contents of an index tensor are kept with it. A compiled graph may reuse the memory of a
tensor that it computed, for another one, which torch does not count as a write. So each index tensor that
enters our operators there is compared with what it was, and the operators get a copy.
"""

from __future__ import annotations

import torch

from gossamer_torch.custom_ops.registration import torch_operator
from gossamer_torch.kept_results import copy_with_results, kept_contents


def _new_index_tensor(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.new_empty(tensor.shape)


@torch_operator("index_tensor", new_result=_new_index_tensor, runs_anywhere=True)
def _index_tensor(tensor: torch.Tensor) -> torch.Tensor:
    return copy_with_results(kept_contents(tensor))


def checked_indices(tensor: torch.Tensor) -> torch.Tensor:
    """Return an index tensor whose kept results are those of its contents: in a compiled graph a copy.

    >>> numbers = torch.tensor([1, 2])
    >>> checked_indices(numbers) is numbers
    True
    """
    return _index_tensor(tensor) if torch.compiler.is_compiling() else tensor
