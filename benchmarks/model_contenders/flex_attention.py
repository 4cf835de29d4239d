"""FlexAttention, compiled, with a mask of blocks. PyTorch has no gradients of it on CPUs."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from benchmarks.model_contenders.model_steps import Build, Forward, Tensors, prepare_with
from benchmarks.models.model_case import ModelCase, dense_mask


def _attention(case: ModelCase, t: Tensors) -> Forward:
    """Attend with the blocks of 128 x 128 in which the mask is true somewhere."""
    mask = torch.from_numpy(dense_mask(case.arrays["indptr"], case.arrays["indices"]))
    length = len(mask)

    def is_stored(_batch: Any, _head: Any, query: Any, key: Any) -> Any:
        return mask[query, key]

    blocks = create_block_mask(is_stored, None, None, length, length, device="cpu")
    compiled = torch.compile(flex_attention)
    return lambda: compiled(t["q"][None], t["k"][None], t["v"][None], block_mask=blocks)[0]


BUILDERS: dict[str, Build] = {"attention": _attention}
prepare = partial(prepare_with, BUILDERS)
